"""Imports a bundle in a process of its own and asks what it holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import msgspec

from workflow_protocol import WorkflowDescription
from workflow_register._errors import EntryError
from workflow_register.bundles._archive import Bundle
from workflow_register.bundles._check_child import CheckReport, InvalidEntry, ValidEntry
from workflow_register.bundles._environment import Environment

CHECK_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0
MAX_REPORT_BYTES = 16 * 2**20
MAX_LAST_OUTPUT_BYTES = 4_000

_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from workflow_register.bundles._check_child import main; main()"
)
_decoder = msgspec.json.Decoder(CheckReport)


class CheckedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle says of itself, and what it was imported under."""

    workflow: WorkflowDescription
    """What it holds."""
    environment: Environment
    """The versions that it was imported under."""
    children: dict[str, str] = {}
    """The names under which child workflows have to be registered, and which roles run them."""


async def check_bundle(bundle: Bundle, *, timeout_s: float = CHECK_TIMEOUT_S) -> CheckedBundle:
    """Import a bundle where it can break nothing here, and return what it says of itself.

    It runs in a process without the user's environment variables, in an empty folder and without
    the folders that it was built from: what is not in the bundle has to be installed. What it
    prints is dropped. That finds mistakes; it is no sandbox against a hostile script.

    Args:
        timeout_s: seconds for the whole import; then the process and its children are killed.

    Raises:
        EntryError: the entry can't be imported, takes too long, exports no workflow, or wants a
            child of a name that no workflow can have.
    """
    entry = bundle.place(bundle.manifest.entry)
    with tempfile.TemporaryDirectory(prefix="uwf-check-") as folder:
        try:
            with anyio.fail_after(timeout_s):
                returncode, report, last_output = await _run_child(bundle, Path(folder))
        except TimeoutError as error:
            message = (
                f"importing it took longer than {timeout_s:g} s; "
                "move work and waiting from the top level into the roles"
            )
            raise EntryError(entry, message) from error
    try:
        found = _decoder.decode(report)
    except msgspec.MsgspecError as error:
        message = (
            f"importing it ended the process ({_exit_reason(returncode)}){_last_line(last_output)}"
        )
        raise EntryError(entry, message) from error
    match found:
        case InvalidEntry(path=path, message=message, line=line):
            raise EntryError(path, message, line=line)
        case ValidEntry(workflow=workflow, environment=environment, children=children):
            return CheckedBundle(workflow=workflow, environment=environment, children=children)


async def _run_child(bundle: Bundle, folder: Path) -> tuple[int, bytes, bytes]:
    """Feed the bundle to a child and collect its return code, its report and its last words."""
    search_path = _search_path(bundle)
    process = await anyio.open_process(
        [sys.executable, "-I", "-X", "utf8", "-c", _CHILD, json.dumps(search_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder),
        start_new_session=True,
    )
    report, last_output = bytearray(), bytearray()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process.stdin, bundle)
            group.start_soon(_drain, process.stdout, report, MAX_REPORT_BYTES)
            group.start_soon(_drain, process.stderr, last_output, MAX_LAST_OUTPUT_BYTES)
            await process.wait()
            _kill_group(process.pid)  # what it left behind would hold the pipes open
        return process.returncode or 0, bytes(report), bytes(last_output)
    finally:
        if process.returncode is None:
            _kill_group(process.pid)
        with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
            await process.aclose()


def _search_path(bundle: Bundle) -> list[str]:
    """Where installed modules are: not the current folder, and not what the bundle is built from.

    An editable install may have put one of these folders on the path.
    """
    left_out = {os.path.realpath(os.curdir), *map(os.path.realpath, bundle.local_folders)}
    return [each for each in sys.path if each and os.path.realpath(each) not in left_out]


async def _feed(stream: anyio.abc.ByteSendStream, bundle: Bundle) -> None:
    folders = [str(each) for each in bundle.local_folders]
    origin = json.dumps([str(bundle.origin) if bundle.origin else None, folders]).encode()
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with stream:
            await stream.send(origin + b"\n" + bundle.data)


async def _drain(stream: anyio.abc.ByteReceiveStream, into: bytearray, keep_bytes: int) -> None:
    """Read to the end, so that the child never waits for us, and keep the last bytes."""
    async for chunk in stream:
        into += chunk
        del into[:-keep_bytes]


def _environment(folder: Path) -> Mapping[str, str]:
    """Nothing of the user's: no keys, no home, no configuration."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "UWF_HOME": str(folder / "nothing"),
    }


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _exit_reason(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    with suppress(ValueError):
        return signal.Signals(-returncode).name
    return f"signal {-returncode}"


def _last_line(last_output: bytes) -> str:
    lines = last_output.decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return f"; its last words were: {said[-1][:300]}" if said else ""
