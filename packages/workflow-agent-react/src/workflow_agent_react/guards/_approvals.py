"""Whether a call may run: the guards, and the person they ask, through the journal."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from workflow_agent_react._history import CallHistory
from workflow_agent_react._read_call import CallReader, ReadCall, UnusableArguments, call_digest
from workflow_agent_react.guards._guards import (
    Allow,
    Ask,
    Deny,
    Guard,
    ProposedCall,
    approval_hash,
    judge,
)
from workflow_protocol import (
    SHOWN_KEYS,
    Answer,
    Journal,
    JsonObject,
    Question,
    Suspended,
    ThreadContext,
)
from workflow_reactor import ToolCall, make_call


class _NothingRecorded(Exception):
    """Raised and caught here, to ask the journal whether it knows what was shown."""


class ShownArguments(msgspec.Struct):
    """What a person is shown of one call: recorded once, and read to the same value ever after."""

    journal: Journal
    reader: CallReader
    key: str
    call: ToolCall
    """As it was written."""
    is_recorded: bool = False

    async def read(self) -> ReadCall:
        """The call as it was shown before, else as it is read now.

        Raises:
            UnusableArguments: it can't be read, or not any more to what was shown.
        """

        async def raise_if_run() -> str:
            raise _NothingRecorded

        try:
            before = await self._record_once(raise_if_run)
        except _NothingRecorded:
            return self.reader.read(self.call)
        self.is_recorded = True
        return self.reader.reread(self.call, before)

    async def record(self, read: ToolCall) -> None:
        """Record what is about to be shown. Nothing is recorded twice."""

        async def arguments() -> str:
            return read.arguments

        if not self.is_recorded:
            await self._record_once(arguments)
            self.is_recorded = True

    async def _record_once(self, arguments: Callable[[], Awaitable[str]]) -> str:
        digest = call_digest(self.call)
        return await self.journal.run(self.key, arguments, type=str, digest=digest)


class Permit(msgspec.Struct, frozen=True):
    """A call may run: as it is, or with the arguments that a person put in."""

    call: ToolCall
    note: str = ""
    """What the model is told along with the result."""
    shown: ShownArguments | None = None
    """Where it is recorded what a person is shown of it."""


class Refusal(msgspec.Struct, frozen=True):
    """A call may not run; the reason is what the model sees as its result."""

    reason: str
    arguments: str = ""
    """What the guards judged."""
    error: str = "denied"
    """See `ToolFinished.error`."""


class Gate(msgspec.Struct, frozen=True):
    """Decides about calls. Each needs an approval of its own, even if it repeats another.

    What a person is shown is recorded first, so that it is what runs once they have answered.
    """

    guard: Guard
    reader: CallReader
    ctx: ThreadContext

    async def check(
        self, call: ToolCall, place: str, history: CallHistory
    ) -> Permit | Refusal | Suspended:
        """Give leave, or the refusal that the model sees, or that a person must answer first.

        Args:
            place: where the call stands in the turn, such as `3/0`.
        """
        shown = ShownArguments(self.ctx.journal, self.reader, f"{SHOWN_KEYS}{place}", call)
        try:
            read = await shown.read()
        except UnusableArguments as misread:
            return Refusal(str(misread), error="invalid_arguments")
        proposed = self._proposed(read, history)
        decision = await judge(self.guard, proposed, self.ctx)
        match decision:
            case Allow():
                return Permit(read, shown=shown)
            case Deny(reason):
                return Refusal(f"not allowed: {reason}", read.arguments)
            case Ask(question):
                await shown.record(read)
                return await self._ask(question, read, proposed, shown, place)

    async def _ask(
        self, words: str, call: ReadCall, proposed: ProposedCall, shown: ShownArguments, place: str
    ) -> Permit | Refusal | Suspended:
        key = f"ask/{place}/{approval_hash(words, proposed, self.guard)[:32]}"
        problem = ""
        for attempt in range(10):
            key_now = f"{key}/{attempt}" if attempt else key
            question = Question(text=words + problem, details=shown_call(call))
            try:
                answer = await self.ctx.journal.ask(key_now, question)
            except Suspended as suspended:
                return suspended
            if not answer.approved:
                return Refusal(f"a person declined this call{_comment(answer)}", call.arguments)
            if not answer.arguments:
                return Permit(call, f"a person approved this call{_comment(answer)}", shown)
            try:
                replacement = self._read_replacement(call, answer.arguments, key_now)
                changed = await replacement.read()
            except UnusableArguments as fault:
                reason = fault.reason
                problem = f"\n(The arguments that were given instead can't be used: {reason})"
            else:
                return await self._judge_replacement(changed, answer, proposed.history, replacement)
        reason = "a person asked for other arguments, but gave none that can be used"
        return Refusal(reason, call.arguments)

    def _read_replacement(self, call: ReadCall, arguments: str, asked: str) -> ShownArguments:
        """A person's arguments, to be read as the model's are."""
        given = make_call(call.name, arguments, round=0, index=0)
        if given.fault:  # whose words are for a model
            raise UnusableArguments(f"{arguments[:200]!r} is not one JSON object")
        given = replace(given, id=call.id, raw_arguments="")
        return ShownArguments(self.ctx.journal, self.reader, f"{SHOWN_KEYS}{asked}", given)

    async def _judge_replacement(
        self, changed: ReadCall, answer: Answer, history: CallHistory, shown: ShownArguments
    ) -> Permit | Refusal:
        """What a person put in needs no question, but what is forbidden stays forbidden."""
        decision = await judge(self.guard, self._proposed(changed, history), self.ctx)
        words = f"a person changed the arguments to {changed.arguments}"
        if isinstance(decision, Deny):
            return Refusal(f"not allowed: {words}, and {decision.reason}", changed.arguments)
        return Permit(changed, f"{words} and approved{_comment(answer)}", shown)

    def _proposed(self, call: ReadCall, history: CallHistory) -> ProposedCall:
        arguments = msgspec.json.decode(call.arguments, type=JsonObject)
        tool = self.reader.tools[call.name]
        return ProposedCall(name=call.name, arguments=arguments, tool=tool, history=history)


def shown_call(call: ToolCall) -> str:
    """A call in JSON for a person: each character that can't be seen is written as an escape."""
    arguments = msgspec.json.format(call.arguments.encode(), indent=2).decode()
    seen = "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in arguments)
    return f"{call.name} {seen}"


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _comment(answer: Answer) -> str:
    return f": {answer.text}" if answer.text else ""
