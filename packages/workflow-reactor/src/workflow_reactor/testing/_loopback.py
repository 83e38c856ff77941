"""A server on a loopback port that speaks the protocol, or breaks it where a test says so."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import anyio.abc
import h11
import msgspec

from workflow_reactor._provider import LlmProvider, Profile, Secret
from workflow_reactor.testing._history import history_faults
from workflow_reactor.testing._script import Reply, Script, ScriptExhausted


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Bytes for the socket as they are, and what becomes of the connection after them."""

    data: bytes = b""
    """What `http` makes, a part of it, or anything else."""
    then: Literal["keep", "close", "reset", "stall"] = "keep"
    """Keep the connection, close it, reset it, or say nothing more."""
    drip_s: float = 0.0
    """Seconds between one byte and the next; 0 sends all at once."""


def http(status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Make the bytes of an HTTP reply, with its length."""
    fields = {"content-type": "application/json", "content-length": str(len(body))}
    lines = [f"{name}: {value}\r\n" for name, value in (fields | dict(headers or {})).items()]
    return f"HTTP/1.1 {status} Scripted\r\n{''.join(lines)}\r\n".encode() + body


class LoopbackServer(Script[Wire]):
    """A server on a loopback port that answers chat completions from a script.

    What the script can't answer is a 500 whose message says so. `bodies` holds the raw requests,
    `connections` how many there were. A strict server answers 400 to a request with any of
    `history_faults`, and keeps these in `faults`. `GET …/models` is answered by `models`, a list of
    names or what goes over the wire; without it there is no such list.
    """

    def __init__(self, replies: Sequence[Reply | Wire], *, strict: bool = False) -> None:
        super().__init__(replies)
        self.strict = strict
        self.bodies: list[bytes] = []
        self.faults: list[str] = []
        self.connections = 0
        self.models: Sequence[str] | Wire | None = None
        self.authorizations: list[str] = []
        """The header of each request, empty where it has none."""
        self.port = 0

    def provider(self, profile: Profile | None = None, **settings: Any) -> LlmProvider:
        """Give the provider that leads here; it does not retry unless `settings` say so."""
        defaults: dict[str, Any] = {
            "base_url": f"http://127.0.0.1:{self.port}/v1",
            "model": "scripted",
            "api_key": Secret("sk-loopback"),
            "max_attempts": 1,
            "timeout_s": 30,
            "profile": profile or Profile(),
        }
        return LlmProvider(**{**defaults, **settings})

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Answer requests on one connection until it is closed."""
        self.connections += 1
        async with stream:
            while (received := await _receive(stream)) is not None:
                request, body = received
                headers = dict(request.headers)
                self.authorizations.append(headers.get(b"authorization", b"").decode())
                if request.method == b"GET":
                    wire = self._listing(request.target)
                else:
                    self.bodies.append(body)
                    wire = self._reply(body)
                try:
                    await _send(stream, wire)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                match wire.then:
                    case "keep":
                        continue
                    case "close":
                        return
                    case "reset":
                        linger = struct.pack("ii", 1, 0)  # closing then sends RST, not FIN
                        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        return
                    case "stall":
                        await anyio.sleep_forever()

    def _listing(self, target: bytes) -> Wire:
        if self.models is None or not target.endswith(b"/models"):
            return Wire(data=http(404, _error("there is nothing here")))
        if isinstance(self.models, Wire):
            return self.models
        entries = [{"id": name, "object": "model"} for name in self.models]
        return Wire(data=http(200, msgspec.json.encode({"object": "list", "data": entries})))

    def _reply(self, body: bytes) -> Wire:
        request = msgspec.json.decode(body)
        faults = history_faults(request) if self.strict else []
        if faults:
            self.faults += faults
            return Wire(data=http(400, _error("; ".join(faults))))
        try:
            reply = self.answer(request)
        except ScriptExhausted as error:
            return Wire(data=http(500, _error(str(error))))
        return reply if isinstance(reply, Wire) else Wire(data=http(200, reply))


@asynccontextmanager
async def loopback_server(
    replies: Sequence[Reply | Wire], *, strict: bool = False
) -> AsyncGenerator[LoopbackServer]:
    """Start a `LoopbackServer` on a free port and stop it at the end."""
    server = LoopbackServer(replies, strict=strict)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def _error(message: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message}})


async def _send(stream: anyio.abc.SocketStream, wire: Wire) -> None:
    if not wire.drip_s:
        if wire.data:
            await stream.send(wire.data)
        return
    for index in range(len(wire.data)):
        await stream.send(wire.data[index : index + 1])
        await anyio.sleep(wire.drip_s)


async def _receive(stream: anyio.abc.SocketStream) -> tuple[h11.Request, bytes] | None:
    """Read one request and its body; `None` when the client is gone or is no HTTP client."""
    connection = h11.Connection(h11.SERVER)
    body = b""
    request: h11.Request | None = None
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive())
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                return request, body
            elif isinstance(event, h11.ConnectionClosed):
                return None
    except h11.RemoteProtocolError as error:
        await _send(stream, Wire(data=http(400, _error(str(error)))))
        return None
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return None
