"""The other side of `check_bundle`: imports what stdin holds and reports on the real stdout."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import anyio
import msgspec

from workflow_protocol import WorkflowDescription, describe
from workflow_register._errors import EntryError, NameRejected
from workflow_register._names import check_name
from workflow_register.bundles._archive import read_bundle
from workflow_register.bundles._environment import Environment, environment_of
from workflow_register.bundles._load import load_workflow


@runtime_checkable
class HasChildren(Protocol):
    """What `create_workflow`, above, makes: it knows what its children run."""

    @property
    def registered_children(self) -> Mapping[str, str]:
        """The names of registered workflows, and which roles run them."""
        ...


class ValidEntry(msgspec.Struct, frozen=True, kw_only=True, tag="described"):
    """The entry is fine."""

    workflow: WorkflowDescription
    environment: Environment
    children: dict[str, str] = {}


class InvalidEntry(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The entry can't be used."""

    path: str
    message: str
    line: int | None = None


CheckReport = ValidEntry | InvalidEntry

ALARM_S = 120
"""More than any check may take; the end of a child whose parent was killed."""


def main() -> None:
    """Report on the bundle in stdin. Whatever its code prints goes to stderr instead.

    The import runs inside an event loop, as it does when the workflow is run: an entry that
    starts a loop of its own at its top level is refused here already.
    """
    signal.alarm(ALARM_S)  # the parent ends it sooner, if there still is one
    real_stdout = os.dup(1)
    os.dup2(2, 1)
    said, _, data = sys.stdin.buffer.read().partition(b"\n")
    origin, local_folders = json.loads(said)
    report = msgspec.json.encode(anyio.run(inspect, data, origin, local_folders))
    with os.fdopen(real_stdout, "wb") as out:
        out.write(report)
    os._exit(0)  # threads that the import started, and handlers it left, don't get a say


async def inspect(data: bytes, origin: str | None, local_folders: list[str]) -> CheckReport:
    """Import a bundle here and describe its workflow; a fault is part of the report."""
    bundle = replace(
        read_bundle(data),
        origin=None if origin is None else Path(origin),
        local_folders=tuple(map(Path, local_folders)),
    )
    place = bundle.place(bundle.manifest.entry)
    try:
        workflow = load_workflow(bundle)
    except EntryError as error:
        return InvalidEntry(path=str(error.path), message=error.reason, line=error.line)
    try:
        described = describe(workflow.definition)
    except Exception as error:  # noqa: BLE001 - a role's schema may run any code
        words = " ".join(str(error).split())
        message = f"a role's schema can't be given as JSON Schema: {words}; change the role's type"
        return InvalidEntry(path=place, message=message)
    try:
        children = dict(workflow.registered_children) if isinstance(workflow, HasChildren) else {}
    except Exception as error:  # noqa: BLE001 - a function that gives a child's workflow is code
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        message = f"a function that gives a child's workflow raised {words}"
        return InvalidEntry(path=place, message=message)
    for name, role in children.items():
        try:
            check_name(name)
        except NameRejected as error:
            message = f"{role} runs what is registered under a name, but {error}"
            return InvalidEntry(path=place, message=message)
    return ValidEntry(workflow=described, environment=environment_of(bundle), children=children)
