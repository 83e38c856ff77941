"""A server that is a command: its process, and the messages on its standard streams.

Not by the SDK's `stdio_client`: that one logs a traceback for each line which is no message, hands
standard error to the terminal, and leaves what the server has started when the server ends first.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from workflow_agent_react._errors import McpError
from workflow_agent_react.tools.mcp._lines import NotAMessage, beginning, read_message
from workflow_agent_react.tools.mcp._server import Access, McpServer
from workflow_agent_react.tools.mcp._streams import Streams
from workflow_util_agent.process import ProcessNotStarted, ShortenedOutput, ending, run_command

_log = logging.getLogger("workflow_agent_react")

MAX_LINE_BYTES = 64 * 1024 * 1024
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_CHUNK = 64 * 1024
_EXIT_S = 0.5
"""So long an exit code is waited for, after a server has closed its output."""
_SHOWN_STDERR = 2_000
_SHOWN_LINE = 500
_MAX_WARNINGS = 5


@asynccontextmanager
async def stdio_streams(server: McpServer, access: Access) -> AsyncGenerator[Streams]:
    """Start a server's command, and end it with all that it started when the block ends.

    It sees the end of its input first, and has `close_timeout_s` to go by itself. It is killed
    when the block is cancelled, and when this process is killed.

    Raises:
        McpError: there is no such program or folder.
    """
    env = {name: os.environ[name] for name in _INHERITED if name in os.environ} | access.env
    folder = server.folder or Path.cwd()
    _check(server, access, env, folder)
    process = _Process(server, access)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(process.run, env, folder)
            group.start_soon(process.read_errors)
            group.start_soon(process.read_messages)
            group.start_soon(process.write_messages)
            try:
                yield Streams(
                    process.incoming, process.outgoing, process.how_it_ended, process.said
                )
            finally:
                with anyio.move_on_after(server.close_timeout_s, shield=True):
                    process.close_input()
                    await process.ended.wait()
                group.cancel_scope.cancel()
    finally:
        process.close()


def _check(server: McpServer, access: Access, env: Mapping[str, str], folder: Path) -> None:
    if not folder.is_dir():
        raise McpError(server.place, f"there is no folder {str(folder)!r} to start it in")
    program = access.command[0]
    at = str(folder / program) if "/" in program else program
    if shutil.which(at, path=env.get("PATH")) is None:
        reason = "there is no such program" if "/" in program else "it is not on the PATH"
        raise McpError(server.place, f"{program!r} can't be started: {reason}")


class _Process:
    """The process, our ends of its three pipes, and the streams between these and a session."""

    def __init__(self, server: McpServer, access: Access) -> None:
        self._server = server
        self._access = access
        self._theirs_in, self._input = os.pipe()
        self._output, self._theirs_out = os.pipe()
        self._errors, self._theirs_err = os.pipe()
        self._open = {self._input, self._output, self._errors}
        for each in self._open:
            os.set_blocking(each, False)
        self._open |= {self._theirs_in, self._theirs_out, self._theirs_err}
        self._send, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing, self._receive = anyio.create_memory_object_stream[SessionMessage](0)
        self.ended = anyio.Event()
        self._stderr = ShortenedOutput(_SHOWN_STDERR)
        self._how = ""
        self._warnings = 0

    async def run(self, env: Mapping[str, str], folder: Path) -> None:
        """Start the command and stay until it has ended."""
        theirs = (self._theirs_in, self._theirs_out, self._theirs_err)
        self._open.difference_update(theirs)  # which `run_command` closes
        try:
            result = await run_command(
                self._access.command,
                cwd=folder,
                env=env,
                timeout_s=math.inf,
                max_output_bytes=_SHOWN_STDERR,
                adopt=True,
                stdio=theirs,
            )
            self._how = self._how or f"it ended with {ending(result.exit_code or 0)}"
        except ProcessNotStarted as error:
            self._how = error.reason
        finally:
            self.ended.set()

    async def read_messages(self) -> None:
        """Hand messages on until the output ends; then nobody waits for more."""
        async with self._send:
            async for line in self._lines():
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    # Where the session has gone, the rest is read so that the process can end.
                    if (message := self._message(line)) is not None:
                        await self._send.send(message)
            with anyio.move_on_after(_EXIT_S):
                await self.ended.wait()
            self._how = self._how or "it closed its output"

    async def _lines(self) -> AsyncGenerator[bytes]:
        rest = bytearray()
        while data := await self._read(self._output):
            start = len(rest)
            rest += data
            while (end := rest.find(b"\n", start)) >= 0:
                yield bytes(rest[:end])
                del rest[: end + 1]
                start = 0
            if len(rest) > MAX_LINE_BYTES:
                self._how = f"it sent a message of more than {MAX_LINE_BYTES:,} bytes"
                return
        if rest.strip():
            self._warn(f"it ended in the middle of a message: {beginning(bytes(rest))!r}")

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(read_message(line)))
        except NotAMessage as error:
            self._warn(f"this line on its standard output is no message: {str(error)!r}")
        except ValidationError:
            self._warn(f"this message is none of JSON-RPC: {beginning(line)!r}")
        return None

    def _warn(self, words: str) -> None:
        self._warnings += 1
        if self._warnings <= _MAX_WARNINGS:
            more = "; more such lines aren't told" if self._warnings == _MAX_WARNINGS else ""
            _log.warning(
                "the MCP server %r: %s%s", self._server.place, self._access.hide(words), more
            )

    async def read_errors(self) -> None:
        """Put what it writes to standard error into the log, and keep some for its end."""
        rest = b""
        while data := await self._read(self._errors):
            self._stderr.add(data)
            *lines, rest = (rest + data)[-_CHUNK:].split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace").rstrip()[:_SHOWN_LINE]
                _log.info("the MCP server %r says: %s", self._server.place, self._access.hide(text))

    async def write_messages(self) -> None:
        """Write each message as a line, until the other side reads no more."""
        async with self._receive:
            with suppress(OSError, anyio.ClosedResourceError):
                async for each in self._receive:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._write(f"{text}\n".encode())

    async def _read(self, descriptor: int) -> bytes:
        while True:
            try:
                return os.read(descriptor, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(descriptor)

    async def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._input)

    def how_it_ended(self) -> str:
        """In words; empty as long as it runs."""
        return self._how

    def said(self) -> str:
        """What it wrote to standard error, its beginning and its end."""
        return self._access.hide(self._stderr.text().strip())

    def close_input(self) -> None:
        """Tell the process that there is nothing more to do."""
        self._close(self._input)

    def close(self) -> None:
        """Close what is open."""
        for each in tuple(self._open):
            self._close(each)
        for stream in (self._send, self.incoming, self.outgoing, self._receive):
            stream.close()

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            anyio.notify_closing(descriptor)
            os.close(descriptor)
