"""What can be wrong with the configuration, a bundle or a name, by what a caller would do.

WorkflowError
└── RegisterError
    ├── ConfigError       fix workflow.yaml or the environment; `faults` has everything at once
    ├── EntryError        fix the entry script or a module of it; `path`, `line`
    ├── BundleCorrupt     build or fetch the bundle again: these are not the bytes it was made of
    ├── NameRejected      choose another name
    ├── UnknownWorkflow   choose one of `known`, or add it
    └── UnknownVersion    choose one of `known`
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from workflow_protocol import WorkflowError
from workflow_reactor import without_keys


class RegisterError(WorkflowError):
    """The configuration, a bundle or the registry could not give what was asked."""


class ConfigFault(NamedTuple):
    """One thing that is wrong with the configuration, and how to mend it."""

    path: Path | None
    """The file, or `None` when the fault is in the environment."""
    line: int | None
    """From 1; `None` where no line is to blame."""
    key: str
    """Such as `providers.openai.base_url`; empty for the file as a whole."""
    message: str
    """What is wrong, and what to do."""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        place = "" if self.path is None else f"{self.path}{line}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ConfigError(RegisterError):
    """The configuration can't be used. The message has one line for each of `faults`.

    What looks like a key, or may be one in a URL, stands in neither.
    """

    def __init__(self, faults: Sequence[ConfigFault]) -> None:
        self.faults = tuple(
            each._replace(key=without_keys(each.key), message=without_keys(each.message))
            for each in faults
        )
        super().__init__("\n".join(map(str, self.faults)))


def file_error(path: Path, message: str, line: int | None = None) -> ConfigError:
    """The one fault of a configuration file as a whole."""
    return ConfigError([ConfigFault(path, line, "", message)])


class EntryError(RegisterError):
    """An entry script, or a module that it needs, can't be used.

    Attributes:
        path: the file, on disk or inside the bundle.
        line: from 1, or `None` when no single line is to blame.
        reason: the message without the place.
    """

    def __init__(self, path: Path | str, reason: str, *, line: int | None = None) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        place = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}")


class BundleCorrupt(RegisterError):
    """These bytes are not a bundle, or not the one they were said to be."""


class NameRejected(RegisterError):
    """A workflow can't have this name. `name` is what was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} can't name a workflow: use lower-case words joined by '-', "
            "verb first, such as 'review-code'"
        )


class UnknownWorkflow(RegisterError):
    """No workflow is registered under `name`. `known` are those that are."""

    def __init__(self, name: str, known: Sequence[str], nearest: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        guess = f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
        super().__init__(
            f"no workflow is registered as {name!r}{guess or ';'} "
            f"register one with `uwf add {name} ENTRY.py`"
        )


class UnknownVersion(RegisterError):
    """A workflow has no such version. `known` are the numbers of those that it has.

    `version` is what was asked for; empty where an earlier one was wanted and there is none.
    """

    def __init__(self, name: str, version: str, known: Sequence[int]) -> None:
        self.name = name
        self.version = version
        self.known = tuple(known)
        if not version:
            reason = "no earlier bundle in its history to go back to"
        else:
            reason = f"no version {version[:64]!r}"
        super().__init__(
            f"the workflow {name!r} has {reason}; `uwf workflow history {name}` lists its versions"
        )
