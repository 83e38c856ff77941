"""Child processes that never outlive the call that started them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import anyio
from anyio.abc import Process

_REAP_S = 5.0


async def spawn(
    command: Sequence[str], *, stdin: int, stdout: int, stderr: int | IO[bytes]
) -> Process:
    """Start `command` as the leader of its own process group. The caller ends it with `stop`."""
    with anyio.CancelScope(shield=True):  # a start that is cut short would leave nobody to stop it
        return await anyio.open_process(
            command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
        )
    raise AssertionError("a shielded start can't be cancelled")


async def stop(process: Process, *, grace_s: float = 0.0) -> None:
    """End the process with its whole group, politely for `grace_s` seconds, and reap it."""
    with anyio.CancelScope(shield=True):
        if grace_s and process.returncode is None:
            _signal_group(process, signal.SIGTERM)
            with anyio.move_on_after(grace_s):
                await process.wait()
        if process.returncode is None:
            _signal_group(process, signal.SIGKILL)
        with anyio.move_on_after(_REAP_S):
            await process.aclose()


def _signal_group(process: Process, signal_number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal_number)
