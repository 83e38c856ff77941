"""Errors of the command line itself. Packages below bring their own."""

from __future__ import annotations

from workflow_protocol import WorkflowError


class UsageError(WorkflowError):
    """The command can't be carried out as it was given. Exit code 2."""


class Failed(WorkflowError):
    """A step of a command failed and has said why. Exit code `code`."""

    def __init__(self, code: int, message: str = "") -> None:
        self.code = code
        super().__init__(message)
