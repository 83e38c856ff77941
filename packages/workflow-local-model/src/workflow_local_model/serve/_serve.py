"""Serve a model from a child process that lives as long as a `with` block."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from workflow_local_model._catalogue import (
    LocalModel,
    default_cache,
    find_model,
    present_path,
)
from workflow_local_model._errors import ServerError
from workflow_local_model.serve._process import spawn, stop
from workflow_local_model.serve._server import ERROR_PREFIX, default_threads

_START_S = 180.0
_STOP_GRACE_S = 4.0
_MAX_LINE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A running server. `base_url` ends in `/v1` and speaks the OpenAI protocol, without a key."""

    base_url: str
    """Where it listens, with `/v1` at the end."""
    model: LocalModel
    """What it serves."""
    pid: int
    """Its process."""
    wait: Callable[[], Awaitable[int]] = field(repr=False, compare=False)
    """Waits for the end of the process, whoever ends it."""


@asynccontextmanager
async def serving(
    model: LocalModel,
    *,
    cache: Path | None = None,
    threads: int | None = None,
    port: int = 0,
    start_timeout_s: float = _START_S,
) -> AsyncGenerator[ServedModel]:
    """Serve a model of the catalogue while the block runs, in a child process on loopback.

    The child is ended and reaped however the block is left. It also ends by itself when this
    process dies, since its standard input then ends (during its start, as soon as it has loaded).

    Args:
        threads: by default `$UWF_MODEL_THREADS`, else the processors this process may use, up to 4.
        port: 0 picks a free one.

    Raises:
        UnknownModel: the catalogue doesn't have this model.
        ModelAbsent: its weights aren't there; the message ends with the command that fetches them.
        ServerError: it did not start, or not within `start_timeout_s`.
    """
    model = find_model(model.name)
    cache = cache or default_cache()
    present_path(model, cache)
    threads = threads or default_threads(model)
    # -P: no module is imported from the working directory, which may be anyone's repository.
    command = [sys.executable, "-P", "-m", "workflow_local_model", "serve", model.name]
    options = ["--cache", str(cache.absolute()), "--port", str(port), "--threads", str(threads)]
    with tempfile.TemporaryFile() as messages:
        process = await spawn(
            [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages
        )
        try:
            base_url = await _base_url(process, model, messages, start_timeout_s)
            yield ServedModel(base_url, model, process.pid, process.wait)
        finally:
            await stop(process, grace_s=_STOP_GRACE_S)


async def _base_url(
    process: Process, model: LocalModel, messages: IO[bytes], timeout_s: float
) -> str:
    assert process.stdout is not None
    try:
        with anyio.fail_after(timeout_s):
            line = await _first_line(process.stdout)
            if line is None:
                await process.wait()
    except TimeoutError as error:
        raise ServerError(
            model.name, _error_line(messages) or f"not ready within {timeout_s:g} s"
        ) from error
    if line is None:
        raise ServerError(model.name, _error_line(messages) or _exit_reason(process))
    return str(json.loads(line)["base_url"])


async def _first_line(stream: ByteReceiveStream) -> bytes | None:
    try:
        return await BufferedByteReceiveStream(stream).receive_until(b"\n", _MAX_LINE_BYTES)
    except anyio.IncompleteRead:
        return None


def _error_line(messages: IO[bytes]) -> str:
    """What the command said is wrong, else the last line of what it wrote."""
    messages.seek(0)
    lines = [line.strip() for line in messages.read().decode(errors="replace").split("\n")]
    said = [line.removeprefix(ERROR_PREFIX) for line in lines if line.startswith(ERROR_PREFIX)]
    return (said or [line for line in reversed(lines) if line] or [""])[0]


def _exit_reason(process: Process) -> str:
    code = process.returncode
    if code is not None and code < 0:
        return f"signal {-code} ended the server as it started; is there enough memory?"
    return f"the server ended with exit code {code} and no message"
