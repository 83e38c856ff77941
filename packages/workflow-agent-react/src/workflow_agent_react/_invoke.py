"""Makes one call: asks the guards, then the tool, both at most once, by the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import anyio
import msgspec

from workflow_agent_react._errors import BadArguments
from workflow_agent_react._history import CallHistory, PastCall, history_of_turn
from workflow_agent_react._read_call import (
    CallReader,
    ReadCall,
    UnusableArguments,
    call_digest,
    error_words,
    normal,
)
from workflow_agent_react._results import READ_RESULT, KeptResults, bounded
from workflow_agent_react.dialects._describe import parameter_words
from workflow_agent_react.guards._approvals import Gate, Permit, Refusal, shown_call
from workflow_agent_react.guards._guards import Guard
from workflow_agent_react.tools._names import nearest_names
from workflow_protocol import (
    Effect,
    JsonObject,
    OutcomeUnknown,
    Question,
    Suspended,
    ThreadContext,
    error_type,
    recorded_result,
)
from workflow_reactor import (
    RESOLVE,
    CallOutcome,
    ResultSchema,
    ToolCall,
    ToolDefinition,
    ToolHandler,
    ToolResult,
    tell_call,
)

Verdict: TypeAlias = Permit | Refusal | Suspended | ToolResult
"""Of a call before it runs: it may, it may not, a person must say, or what is recorded of it."""


_TOLD = "told/"
"""Begins the key of what was told of a call that has no result of its own: it was at work when the
process died, or read on in another one's result."""


class _NotRecorded(Exception):
    """Raised and caught here, to ask the journal whether it has a result."""


class Invoker(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the calls of one turn of a role. A place such as `3/0` names each in the journal."""

    ctx: ThreadContext
    tools: Mapping[str, ToolDefinition]
    """All that there are, `resolve` among them."""
    told: Sequence[str]
    """The names of those that the model knows of: some dialects have no tool `resolve`."""
    handler: ToolHandler
    result: ResultSchema[Any]
    kept: KeptResults
    guard: Guard | None = None
    _past: list[PastCall] = msgspec.field(default_factory=list[PastCall])
    _unread: list[tuple[ToolCall, ToolResult]] = msgspec.field(
        default_factory=list[tuple[ToolCall, ToolResult]]
    )
    """Those that `history` hasn't taken up yet: few turns ask for it."""

    @property
    def reader(self) -> CallReader:
        """Reads calls as their tools do."""
        return CallReader(self.tools, self.result)

    async def verdict(self, call: ToolCall, place: str) -> Verdict:
        """Say what is known of the call before it runs. A call that has run is not judged again."""
        tool = self.tools.get(call.name)
        if tool is None:
            words = f"there is no tool {call.name!r}; {nearest_names(call.name, self.told)}"
            return Refusal(words, error="unknown_tool")
        received = call if call.name == RESOLVE else tool.receive(call)
        if received.fault and call.name != RESOLVE:
            return _misfit(tool, received)
        if self.guard is None or call.name == READ_RESULT:
            return Permit(received)
        try:
            return await self._recorded(call, place)
        except _NotRecorded:
            pass
        gate = Gate(self.guard, self.reader, self.ctx)
        return await gate.check(call, place, self.history())

    async def carry_out(
        self, call: ToolCall, place: str, verdict: Verdict
    ) -> ToolResult | Suspended:
        """Run a call that may run, record what it came to, and tell observers."""
        if isinstance(verdict, Suspended):
            return verdict
        try:
            return await tell_call(
                self.ctx.journal,
                call,
                lambda: self._result(call, place, verdict),
                lambda result: CallOutcome(result.text, result.error),
                key=f"tool/{place}",
                round=int(place.partition("/")[0]),
                recorded=recorded_result(self.ctx.journal, f"{_TOLD}{place}") is not None,
            )
        except Suspended as suspended:
            return suspended

    def remember(self, call: ToolCall, result: ToolResult) -> None:
        """Put a call into the history that guards and tools see."""
        self._unread.append((call, result))

    def history(self) -> CallHistory:
        """The calls of this turn so far."""
        for call, result in self._unread:
            ran_with = result.arguments or call.arguments
            arguments = msgspec.json.decode(ran_with, type=JsonObject)
            self._past.append(
                PastCall(name=call.name, arguments=arguments, ok=result.ok, text=result.text)
            )
        self._unread.clear()
        return CallHistory(tuple(self._past))

    async def _result(
        self, call: ToolCall, place: str, verdict: Permit | Refusal | ToolResult
    ) -> ToolResult:
        match verdict:
            case ToolResult():
                return verdict
            case Refusal(reason, judged, error):
                refused = ToolResult(False, bounded(reason), _other(judged, call), error=error)
                return await self._record(call, f"tool/{place}", refused)
            case Permit() if call.name == READ_RESULT:
                page = self.kept.read(call.arguments)
                told = ToolResult(page.ok, "", error=page.error)  # the text is recorded already
                await self._record(call, f"{_TOLD}{place}", told)
                return page
            case Permit():
                return await self._run(self.tools[call.name], call, place, verdict)

    async def _recorded(self, call: ToolCall, place: str) -> ToolResult:
        """The result that the journal has of this call.

        Raises:
            _NotRecorded: it has none.
        """

        async def none() -> ToolResult:
            raise _NotRecorded

        return await self.ctx.journal.run(
            f"tool/{place}", none, type=ToolResult, digest=call_digest(call)
        )

    async def _record(self, call: ToolCall, key: str, result: ToolResult) -> ToolResult:
        """Record what needs no tool: a replay finds it even when the rules have changed, and a
        resume tells it as what it knows."""

        async def same() -> ToolResult:
            return result

        return await self.ctx.journal.run(key, same, type=ToolResult, digest=call_digest(call))

    async def _run(
        self, tool: ToolDefinition, call: ToolCall, place: str, permit: Permit
    ) -> ToolResult:
        effect = Effect.READ if tool.name == RESOLVE else tool.effect_of(permit.call)
        try:
            return await self.ctx.journal.run(
                f"tool/{place}",
                lambda: self._perform(tool, permit, call),
                type=ToolResult,
                effect=effect,
                digest=call_digest(call),
            )
        except OutcomeUnknown as unknown:
            result = ToolResult(False, str(unknown), error="unknown_outcome")
        if tool.ask_if_unknown:
            result = await self._after_crash(tool, call, place, permit)
        return await self._record(call, f"{_TOLD}{place}", result)

    async def _after_crash(
        self, tool: ToolDefinition, call: ToolCall, place: str, permit: Permit
    ) -> ToolResult:
        """Let a person say whether a call that may have been carried out runs again."""
        if permit.shown is not None:
            await permit.shown.record(permit.call)
        question = Question(
            text=f"{tool.name} was at work when the process died, so its outcome is unknown. "
            "Check what it did: may it run again?",
            details=shown_call(permit.call),
        )
        answer = await self.ctx.journal.ask(f"unknown/{place}", question)
        if answer.approved:
            return await self._run(tool, call, f"{place}/again", permit)
        words = answer.text or "it is not run again"
        return ToolResult(
            False,
            f"it was interrupted by a crash; a person who checked says: {words}",
            error="unknown_outcome",
        )

    async def _perform(self, tool: ToolDefinition, permit: Permit, written: ToolCall) -> ToolResult:
        """Run the handler. Its exceptions become results, cancellation never does."""
        call = permit.call
        ran_with = _other(call.arguments, written) if self.guard is not None else ""
        if isinstance(call, ReadCall) and tool.name == RESOLVE:
            return ToolResult(True, call.written, ran_with, permit.note)
        text, fault = f"{tool.name} took longer than {tool.timeout_s or 0:g} s", "timeout"
        before = history_of_turn.set(self.history)
        try:
            with anyio.move_on_after(tool.timeout_s):
                text, fault = bounded(await self.handler(call, self.ctx)), ""
        # A tool may raise anything; the model is told. A command's code may call sys.exit.
        except (Exception, SystemExit) as error:
            suspended = _suspension_in(error)
            if suspended is not None:
                raise suspended from error
            text, fault = bounded(error_words(error)), _fault_of(error)
        finally:
            history_of_turn.reset(before)
        return ToolResult(not fault, text, ran_with, permit.note, fault)


def _other(arguments: str, written: ToolCall) -> str:
    """The arguments that a call ran with; empty where they say what is written."""
    return "" if not arguments or arguments == normal(written.arguments) else arguments


def _fault_of(error: Exception | SystemExit) -> str:
    is_misfit = isinstance(error, BadArguments | UnusableArguments)
    return "invalid_arguments" if is_misfit else error_type(error)


def _misfit(tool: ToolDefinition, received: ToolCall) -> Refusal:
    words = parameter_words(tool) or "none"
    words = f"{received.fault}; the parameters are {words}"
    return Refusal(words, error="invalid_arguments")


def _suspension_in(error: Exception | SystemExit) -> Suspended | None:
    """The question to a person inside a group, where the tool asked it in a task of its own."""
    if isinstance(error, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", error).exceptions
        return next(filter(None, map(_suspension_in, members)), None)
    return error if isinstance(error, Suspended) else None
