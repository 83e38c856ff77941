"""A folder's versions as trees of objects, and what git and `.gitignore` say of a folder."""

from workflow_workspace._gitignore import Effort, Rules
from workflow_workspace.git._links import linked_repositories, set_aside
from workflow_workspace.git._places import (
    GIT_FOLDER,
    GitPlaces,
    enclosing_repository,
    find_git_places,
    git_folder_of,
    nested_repositories,
)
from workflow_workspace.git._settings import GitSettings, git_settings

__all__ = [
    "GIT_FOLDER",
    "Effort",
    "GitPlaces",
    "GitSettings",
    "Rules",
    "enclosing_repository",
    "find_git_places",
    "git_folder_of",
    "git_settings",
    "linked_repositories",
    "nested_repositories",
    "set_aside",
]
