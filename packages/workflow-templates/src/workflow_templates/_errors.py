"""What can't go on: a folder that is no repository, or git that refuses."""

from __future__ import annotations

from workflow_protocol import RoleFailed


class GitFailed(RoleFailed):
    """Git is not there, the folder is no repository, or git refused; the message has its words."""


class IssueNotRead(RoleFailed):
    """The issue could not be fetched or read; the message says which and why."""
