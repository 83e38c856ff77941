"""A folder's versions as trees of objects, and what git and `.gitignore` say of a folder."""

from workflow_workspace._beside import ENVIRONMENTS, remove_beside, restore_beside
from workflow_workspace._errors import NotVersioned, RestoreError
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
from workflow_workspace.versions._folder import FolderVersions, Version
from workflow_workspace.versions._options import Versioned
from workflow_workspace.versions._put_back import put_back
from workflow_workspace.versions._records import GitState, VersionEntry, VersionRecord
from workflow_workspace.versions._restore import restore
from workflow_workspace.versions._trees import (
    FileChange,
    FileDiff,
    compare,
    diff,
    read_content,
    read_files,
    version_record,
)

__all__ = [
    "ENVIRONMENTS",
    "GIT_FOLDER",
    "Effort",
    "FileChange",
    "FileDiff",
    "FolderVersions",
    "GitPlaces",
    "GitSettings",
    "GitState",
    "NotVersioned",
    "RestoreError",
    "Rules",
    "Version",
    "VersionEntry",
    "VersionRecord",
    "Versioned",
    "compare",
    "diff",
    "enclosing_repository",
    "find_git_places",
    "git_folder_of",
    "git_settings",
    "linked_repositories",
    "nested_repositories",
    "put_back",
    "read_content",
    "read_files",
    "remove_beside",
    "restore",
    "restore_beside",
    "set_aside",
    "version_record",
]
