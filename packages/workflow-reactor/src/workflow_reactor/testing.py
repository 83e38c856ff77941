"""Models for tests: scripted in process, and a loopback server that speaks the protocol.

    llm = ScriptedLlm([call("read_file", path="a.txt"), call("resolve", answer=42)])

Both take the same script: a list of replies, one for each request. A reply is what `say` and
`call` make, a raw body (`bytes`), or a function of the request that returns either. Running out
of replies is an error, so that a loop that asks too often shows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import msgspec

from workflow_reactor._errors import ReactorError
from workflow_reactor._llm import RequestOptions
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import LlmProvider, Profile, Secret
from workflow_reactor._reply import read_reply
from workflow_reactor._tools import ToolDefinition

Request = dict[str, Any]
Reply = bytes | Callable[[Request], bytes]


class ScriptExhausted(ReactorError):
    """A scripted model was asked more often than it has replies."""


def say(
    text: str | None,
    *calls: Mapping[str, Any],
    finish: str = "",
    usage: tuple[int, int] | None = (10, 5),
    **message: Any,
) -> bytes:
    """Make a reply: text, calls or both.

    Args:
        text: the content.
        calls: what `function` makes.
        finish: `finish_reason`; by default what the reply calls for.
        usage: input and output tokens; `None` leaves usage out.
        message: more fields of the message.
    """
    body: dict[str, Any] = {"role": "assistant", "content": text, **message}
    if calls:
        body["tool_calls"] = list(calls)
    reason = finish or ("tool_calls" if calls else "stop")
    data: dict[str, Any] = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": body, "finish_reason": reason}],
    }
    if usage is not None:
        tokens_in, tokens_out = usage
        data["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
    return msgspec.json.encode(data)


def function(name: str, arguments: object = None, *, id: str = "k1", **kwargs: Any) -> Request:
    """Make one native tool call. `arguments` go in as they are, `kwargs` as a JSON object."""
    given = json.dumps(kwargs) if arguments is None else arguments
    return {"id": id, "type": "function", "function": {"name": name, "arguments": given}}


def call(name: str, **arguments: Any) -> bytes:
    """Make a reply with one native tool call."""
    return say(None, function(name, **arguments))


def turn(name: str, **arguments: Any) -> bytes:
    """Make a reply in the json dialect."""
    return say(json.dumps({"tool": name, "args": arguments}))


class Script:
    """Replies in order, and the requests that they answered."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    def answer(self, request: Request) -> bytes:
        """Take the next reply.

        Raises:
            ScriptExhausted: there is none.
        """
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._replies):
            raise ScriptExhausted(f"request {number} came, but the script has {number - 1} replies")
        reply = self._replies[number - 1]
        return reply if isinstance(reply, bytes) else reply(request)


class ScriptedLlm(Script):
    """An `LlmFn` that replies from a script and keeps the requests it got, as plain data."""

    def __init__(self, replies: Sequence[Reply], profile: Profile | None = None) -> None:
        super().__init__(replies)
        self.profile = profile or Profile()

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = RequestOptions(),  # noqa: B008 - frozen
        *,
        round: int = 0,
    ) -> AssistantMessage:
        """Reply with the next of the script."""
        await anyio.lowlevel.checkpoint()
        request: Request = {"messages": [message.data for message in messages]}
        if tools:
            request["tools"] = [msgspec.json.decode(tool.json) for tool in tools]
        if options.tool_choice:
            request["tool_choice"] = options.tool_choice
        if options.response_format:
            request["response_format"] = options.response_format
        return read_reply(self.answer(request), self.profile, round=round)


class LoopbackServer(Script):
    """A server on a loopback port that answers chat completions from a script.

    What the script can't answer is a 500 whose message says so. `bodies` holds the raw requests,
    `connections` how many there were.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(replies)
        self.bodies: list[bytes] = []
        self.connections = 0
        self.port = 0

    def provider(self, profile: Profile | None = None) -> LlmProvider:
        """Give the provider that leads here; it does not retry."""
        return LlmProvider(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            model="scripted",
            api_key=Secret("sk-loopback"),
            max_attempts=1,
            timeout_s=30,
            profile=profile or Profile(),
        )

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Answer requests on one connection until it is closed."""
        self.connections += 1
        connection = h11.Connection(h11.SERVER)
        async with stream:
            while True:
                body = await _receive(connection, stream)
                if body is None:
                    return
                self.bodies.append(body)
                status, reply = self._reply(body)
                headers = [
                    ("content-type", "application/json"),
                    ("content-length", str(len(reply))),
                ]
                response = h11.Response(status_code=status, headers=headers)
                parts = (response, h11.Data(data=reply), h11.EndOfMessage())
                await stream.send(b"".join(connection.send(part) or b"" for part in parts))
                connection.start_next_cycle()

    def _reply(self, body: bytes) -> tuple[int, bytes]:
        try:
            return 200, self.answer(msgspec.json.decode(body))
        except ScriptExhausted as error:
            return 500, msgspec.json.encode({"error": {"message": str(error)}})


@asynccontextmanager
async def loopback_server(replies: Sequence[Reply]) -> AsyncGenerator[LoopbackServer]:
    """Start a `LoopbackServer` on a free port and stop it at the end."""
    server = LoopbackServer(replies)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


async def _receive(connection: h11.Connection, stream: anyio.abc.SocketStream) -> bytes | None:
    """Read one request's body; `None` when the client is gone."""
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            try:
                connection.receive_data(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return None
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return body
        elif isinstance(event, h11.ConnectionClosed):
            return None
