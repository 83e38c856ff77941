"""A model in process that replies from a script."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.lowlevel
import msgspec

from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import Profile
from workflow_reactor.reply._reply import read_reply
from workflow_reactor.request._bodies import NO_OPTIONS, Frame, Framer, RequestOptions
from workflow_reactor.request._conversation import call_ids
from workflow_reactor.request._tools import ToolDefinition
from workflow_reactor.testing._script import Reply, Request, Script


class ScriptedLlm(Script[bytes]):
    """An `LlmFn` that replies from a script and keeps the requests it got, as plain data."""

    def __init__(self, replies: Sequence[Reply], profile: Profile | None = None) -> None:
        super().__init__(replies)
        self.profile = profile or Profile()
        self._framer = Framer("scripted", self.profile, provider="scripted")

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
        return read_reply(
            self.answer(request),
            self.profile,
            round=round,
            tools=tools,
            taken_ids=call_ids(messages),
        )
