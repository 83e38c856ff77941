"""The root of every error and the errors that belong to the contracts.

WorkflowError
├── DefinitionError      fix the workflow's code: all faults at once, each with its place
├── SchemaTypeError      fix the role's schema: no validator can handle the type
├── SchemaMismatch       a value does not fit its schema: paths and what was expected
├── RoutingError         fix the table: no transition of a role applied
├── RoleFailed           the role could not do it: `on_failure` may say where the thread goes
├── ArtifactError        an artifact isn't there, is of another type, or can't be published
├── Suspended            not a failure: the thread waits for an answer or a limit
└── OutcomeUnknown       an unsafe effect may or may not have happened before a crash

Packages above derive their own from `WorkflowError`, by what a caller would do about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workflow_protocol._short import short

_SHOWN_MISFITS = 10


class WorkflowError(Exception):
    """The root of all errors that these packages raise on purpose."""


class Fault(NamedTuple):
    """One thing that is wrong: the place and what to do about it."""

    place: str
    """Where in the definition, such as `table[writer][0]`; empty for the whole."""
    message: str
    """What is wrong, and what to do."""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class DefinitionError(WorkflowError):
    """A workflow definition can't work. `faults` holds everything that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))
        lines = "".join(f"\n  {fault}" for fault in self.faults)
        count = len(self.faults)
        super().__init__(f"the workflow definition has {count} fault{'s' * (count != 1)}:{lines}")


class SchemaTypeError(WorkflowError, TypeError):
    """Neither msgspec nor pydantic can validate this type."""

    def __init__(self, type_: object, reason: str) -> None:
        self.type = type_
        name = type_.__qualname__ if isinstance(type_, type) else short(type_)
        super().__init__(f"{name} can't be used as a schema: {reason}")


class SchemaMismatch(WorkflowError, ValueError):
    """A JSON value does not fit the schema. `faults` has a path and a message for each misfit.

    The message has a line for each of the first ten.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:_SHOWN_MISFITS]]
        if len(self.faults) > _SHOWN_MISFITS:
            lines.append(f"and {len(self.faults) - _SHOWN_MISFITS} more")
        super().__init__("\n".join(lines))


class RoutingError(WorkflowError):
    """No transition of the current role applied, so nothing says where the thread goes next."""

    def __init__(self, role: str, reason: str = "end its row with a bare role or END") -> None:
        self.role = role
        super().__init__(f"no transition from {role!r} applied; {reason}")


class RoleFailed(WorkflowError):
    """The role could not do its work, though nobody's code is wrong.

    The model ran out of rounds or went in circles, its provider refused or was not there, an agent
    or a child workflow gave up. What is derived from this class is a failure that `on_failure` of a
    workflow leads on from; no other exception is. Raise it, or a class of your own derived from it,
    where code that carries out a role finds that the work can't be done.
    """


class ArtifactError(WorkflowError):
    """An artifact isn't there, is of another type, or can't be published. `name` is which."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"artifact {name!r}: {reason}")


class Suspended(WorkflowError):
    """The thread waits: `reason` says for what. It goes on once that is settled."""

    def __init__(self, reason: str, *, key: str = "") -> None:
        self.reason = reason
        self.key = key
        super().__init__(reason)


class OutcomeUnknown(WorkflowError):
    """The process died while this unsafe effect ran; it is not run again by itself.

    `decision` is what a person said who was asked whether it may.
    """

    def __init__(self, key: str, decision: str = "") -> None:
        self.key = key
        self.decision = decision
        asked = (
            f"and is not run again: {decision}. To begin the turn anew, resume it as `fresh`"
            if decision
            else "check what it did before doing it again"
        )
        super().__init__(
            f"{key!r} was started before a crash and its result was never recorded; {asked}"
        )
