"""Makes one call: asks the guards, then the tool, both at most once, by the journal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import anyio
import msgspec

from workflow_agent_react._read_call import CallReader, ReadCall, call_digest, error_words, normal
from workflow_agent_react._results import READ_RESULT, KeptResults, bounded
from workflow_agent_react.dialects._describe import parameter_words
from workflow_agent_react.guards._approvals import Gate, Permit, Refusal, shown_call
from workflow_agent_react.guards._guards import CallHistory, Guard, PastCall
from workflow_agent_react.tools._names import nearest_names
from workflow_protocol import (
    Effect,
    JsonObject,
    OutcomeUnknown,
    Question,
    Suspended,
    ThreadContext,
    ToolFinished,
    ToolStarted,
)
from workflow_reactor import (
    RESOLVE,
    ResultSchema,
    ToolCall,
    ToolDefinition,
    ToolHandler,
    ToolResult,
)

Verdict: TypeAlias = Permit | Refusal | Suspended | ToolResult
"""Of a call before it runs: it may, it may not, a person must say, or what it came to."""


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

    @property
    def reader(self) -> CallReader:
        """Reads calls as their tools do."""
        return CallReader(self.tools, self.result)

    async def verdict(self, call: ToolCall, place: str) -> Verdict:
        """Say what is known of the call before it runs. A call that has run is not judged again."""
        tool = self.tools.get(call.name)
        if tool is None:
            words = f"there is no tool {call.name!r}; {nearest_names(call.name, self.told)}"
            return ToolResult(False, words)
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
        return await gate.check(call, place, CallHistory(tuple(self._past)))

    async def carry_out(
        self, call: ToolCall, place: str, verdict: Verdict
    ) -> ToolResult | Suspended:
        """Run a call that may run, record what it came to, and tell observers."""
        if isinstance(verdict, Suspended):
            return verdict
        journal = self.ctx.journal
        key = f"tool/{place}"
        await journal.note(
            ToolStarted(key=key, name=call.name, arguments=call.arguments, call_id=call.id)
        )
        started = time.monotonic()
        try:
            result = await self._result(call, place, verdict)
        except Suspended as suspended:
            return suspended
        elapsed_ms = int((time.monotonic() - started) * 1000)
        summary = result.text[:200]
        await journal.note(
            ToolFinished(
                key=key,
                name=call.name,
                ok=result.ok,
                summary=summary,
                elapsed_ms=elapsed_ms,
                call_id=call.id,
            )
        )
        return result

    def remember(self, call: ToolCall, result: ToolResult) -> None:
        """Put a call into the history that guards see."""
        if self.guard is not None:
            ran_with = result.arguments or call.arguments
            arguments = msgspec.json.decode(ran_with, type=JsonObject)
            self._past.append(
                PastCall(name=call.name, arguments=arguments, ok=result.ok, text=result.text)
            )

    async def _result(
        self, call: ToolCall, place: str, verdict: Permit | Refusal | ToolResult
    ) -> ToolResult:
        match verdict:
            case ToolResult():
                return verdict
            case Refusal(reason, judged):
                refused = ToolResult(False, bounded(reason), _other(judged, call))
                return await self._record(call, place, refused)
            case Permit() if call.name == READ_RESULT:
                return self.kept.read(call.arguments)  # this turn's own: nothing to record
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

    async def _record(self, call: ToolCall, place: str, result: ToolResult) -> ToolResult:
        """Record a refusal, so that a replay finds it even when the rules have changed."""

        async def same() -> ToolResult:
            return result

        return await self.ctx.journal.run(
            f"tool/{place}", same, type=ToolResult, digest=call_digest(call)
        )

    async def _run(
        self, tool: ToolDefinition, call: ToolCall, place: str, permit: Permit
    ) -> ToolResult:
        effect = Effect.READ if tool.name == RESOLVE else tool.effect
        try:
            return await self.ctx.journal.run(
                f"tool/{place}",
                lambda: self._perform(tool, permit, call),
                type=ToolResult,
                effect=effect,
                digest=call_digest(call),
            )
        except OutcomeUnknown as unknown:
            if not tool.ask_if_unknown:
                return ToolResult(False, str(unknown))
        return await self._after_crash(tool, call, place, permit)

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
            False, f"it was interrupted by a crash; a person who checked says: {words}"
        )

    async def _perform(self, tool: ToolDefinition, permit: Permit, written: ToolCall) -> ToolResult:
        """Run the handler. Its exceptions become results, cancellation never does."""
        call = permit.call
        ran_with = _other(call.arguments, written) if self.guard is not None else ""
        if isinstance(call, ReadCall) and tool.name == RESOLVE:
            return ToolResult(True, call.written, ran_with, permit.note)
        ok, text = False, f"{tool.name} took longer than {tool.timeout_s or 0:g} s"
        try:
            with anyio.move_on_after(tool.timeout_s):
                ok, text = True, bounded(await self.handler(call, self.ctx))
        # A tool may raise anything; the model is told. A command's code may call sys.exit.
        except (Exception, SystemExit) as error:
            suspended = _suspension_in(error)
            if suspended is not None:
                raise suspended from error
            ok, text = False, bounded(error_words(error))
        return ToolResult(ok, text, ran_with, permit.note)


def _other(arguments: str, written: ToolCall) -> str:
    """The arguments that a call ran with; empty where they say what is written."""
    return "" if not arguments or arguments == normal(written.arguments) else arguments


def _misfit(tool: ToolDefinition, received: ToolCall) -> ToolResult:
    words = parameter_words(tool) or "none"
    return ToolResult(False, f"{received.fault}; the parameters are {words}")


def _suspension_in(error: Exception | SystemExit) -> Suspended | None:
    """The question to a person inside a group, where the tool asked it in a task of its own."""
    if isinstance(error, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", error).exceptions
        return next(filter(None, map(_suspension_in, members)), None)
    return error if isinstance(error, Suspended) else None
