"""Models for tests: scripted in process, and a loopback server that speaks the protocol.

    llm = ScriptedLlm([call("read_file", path="a.txt"), call("resolve", answer=42)])

Both take the same script: a list of replies, one for each request. A reply is what `say` and
`call` make, a raw body (`bytes`), or a function of the request that returns either. Running out
of replies is an error, so that a loop that asks too often shows. To the server a `Wire` says what
goes over the socket instead: another status, half a body, a reset.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio.lowlevel
import msgspec

from workflow_reactor._history import history_faults
from workflow_reactor._loopback import LoopbackServer, Wire, http, loopback_server
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import Profile
from workflow_reactor._reply import read_reply
from workflow_reactor._request import NO_OPTIONS, Frame, Framer, RequestOptions
from workflow_reactor._script import (
    Reply,
    Request,
    Script,
    ScriptExhausted,
    call,
    function,
    say,
    turn,
)
from workflow_reactor._tools import ToolDefinition

__all__ = [
    "LoopbackServer",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedLlm",
    "Wire",
    "call",
    "function",
    "history_faults",
    "http",
    "loopback_server",
    "say",
    "turn",
]


class ScriptedLlm(Script[bytes]):
    """An `LlmFn` that replies from a script and keeps the requests it got, as plain data."""

    def __init__(self, replies: Sequence[Reply], profile: Profile | None = None) -> None:
        super().__init__(replies)
        self.profile = profile or Profile()
        self._framer = Framer("scripted", self.profile)

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        """What a request has around its messages."""
        return self._framer.frame(tools, options)

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = NO_OPTIONS,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        """Reply with the next of the script."""
        await anyio.lowlevel.checkpoint()
        request: Request = msgspec.json.decode(self.frame(tools, options).body(messages))
        return read_reply(self.answer(request), self.profile, round=round, tools=tools)
