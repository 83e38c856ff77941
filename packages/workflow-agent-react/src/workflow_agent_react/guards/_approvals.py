"""Whether a call may run: the guards, and the person they ask, through the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from workflow_agent_react.guards._guards import (
    Allow,
    Ask,
    CallHistory,
    Deny,
    Guard,
    ProposedCall,
    approval_hash,
    judge,
)
from workflow_protocol import (
    Answer,
    JsonObject,
    Question,
    SchemaMismatch,
    Suspended,
    ThreadContext,
)
from workflow_reactor import RESOLVE, ResultSchema, ToolCall, ToolDefinition, make_call


class Permit(msgspec.Struct, frozen=True):
    """A call may run: as it is, or with the arguments that a person put in."""

    call: ToolCall
    note: str = ""
    """What the model is told along with the result."""
    changed: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """A call may not run; the reason is what the model sees as its result."""

    reason: str


class Gate(msgspec.Struct, frozen=True):
    """Decides about calls. Each needs an approval of its own, even if it repeats another."""

    guard: Guard
    tools: Mapping[str, ToolDefinition]
    ctx: ThreadContext
    result: ResultSchema[Any]

    async def check(
        self, call: ToolCall, place: str, history: CallHistory
    ) -> Permit | Refusal | Suspended:
        """Give leave, or the refusal that the model sees, or that a person must answer first.

        Args:
            place: where the call stands in the turn, such as `3/0`.
        """
        proposed = self._proposed(call, history)
        decision = await judge(self.guard, proposed, self.ctx)
        match decision:
            case Allow():
                return Permit(call)
            case Deny(reason):
                return Refusal(f"not allowed: {reason}")
            case Ask(question):
                return await self._ask(question, call, proposed, place)

    async def _ask(
        self, words: str, call: ToolCall, proposed: ProposedCall, place: str
    ) -> Permit | Refusal | Suspended:
        key = f"ask/{place}/{approval_hash(words, proposed, self.guard)[:32]}"
        problem = ""
        for attempt in range(10):
            question = Question(text=words + problem, details=_details(proposed))
            try:
                answer = await self.ctx.journal.ask(
                    f"{key}/{attempt}" if attempt else key, question
                )
            except Suspended as suspended:
                return suspended
            if not answer.approved:
                return Refusal(f"a person declined this call{_words(answer)}")
            if not answer.arguments:
                return Permit(call, f"a person approved this call{_words(answer)}")
            changed = self._received(call.name, answer.arguments)
            if not changed.fault:
                return await self._changed(call, changed.arguments, answer, proposed)
            problem = f"\n(The arguments that were given instead can't be used: {changed.fault})"
        return Refusal("a person wanted other arguments, but gave none that can be used")

    def _received(self, name: str, arguments: str) -> ToolCall:
        """A person's arguments, checked as the model's are; the person is told of a fault."""
        call = make_call(name, arguments, round=0, index=0)
        if call.fault:  # whose words are for a model
            return replace(call, fault=f"{arguments[:200]!r} is not one JSON object")
        if name != RESOLVE:
            return self.tools[name].receive_strictly(call)
        try:
            self.result.read_call(call)
        except SchemaMismatch as misfit:
            return replace(call, fault=str(misfit))
        return call

    async def _changed(
        self, call: ToolCall, arguments: str, answer: Answer, proposed: ProposedCall
    ) -> Permit | Refusal:
        """What a person put in needs no question, but what is forbidden stays forbidden."""
        mended = replace(call, arguments=arguments)
        decision = await judge(self.guard, self._proposed(mended, proposed.history), self.ctx)
        if isinstance(decision, Deny):
            reason = f"a person changed the arguments to {arguments}, and {decision.reason}"
            return Refusal(f"not allowed: {reason}")
        note = f"a person changed the arguments to {arguments} and approved{_words(answer)}"
        return Permit(mended, note, changed=True)

    def _proposed(self, call: ToolCall, history: CallHistory) -> ProposedCall:
        arguments = msgspec.json.decode(call.arguments, type=JsonObject)
        return ProposedCall(
            name=call.name, arguments=arguments, tool=self.tools[call.name], history=history
        )


def _words(answer: Answer) -> str:
    return f": {answer.text}" if answer.text else ""


def _details(call: ProposedCall) -> str:
    arguments = msgspec.json.format(msgspec.json.encode(call.arguments), indent=2).decode()
    return f"{call.name} {arguments}"
