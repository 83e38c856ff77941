"""Runs the calls of one reply: in order, reads together, `resolve` where it may end the role."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

from workflow_agent_react._errors import GuardError
from workflow_agent_react._invoke import Invoker, Verdict
from workflow_agent_react._read_call import (
    ReadCall,
    UnusableArguments,
    invalid_result_message,
    normal,
)
from workflow_agent_react.guards._approvals import Permit
from workflow_protocol import (
    Effect,
    Resolved,
    SchemaMismatch,
    Suspended,
    ToolFinished,
    WorkflowError,
    recorded_result,
)
from workflow_reactor import RESOLVE, ResultSchema, ToolCall, ToolDefinition, ToolResult

T = TypeVar("T")

_log = logging.getLogger("workflow_agent_react")

MAX_AT_ONCE = 16
"""So many reads of a reply run together; a search may be a process and some megabytes."""


class SerialCallsWarning:
    """Says once for an adapter that calls ran one by one only because nobody declared them."""

    def __init__(self) -> None:
        self._said = False

    def check(self, tools: Sequence[ToolDefinition]) -> None:
        """Put it into the log, where a reply called several undeclared tools.

        Args:
            tools: what the reply called, a tool as often as it did.
        """
        undeclared = [each.name for each in tools if not each.effect_is_declared]
        if self._said or len(undeclared) < 2:
            return
        self._said = True
        _log.warning(
            "a reply called %d tools that don't say what running them twice means (%s), so they "
            "ran one after the other; those that only read run together with @tool(effect="
            "Effect.READ)",
            len(undeclared),
            ", ".join(dict.fromkeys(undeclared)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRunner(Generic[T]):
    """Everything it takes to run the calls of one turn of a role."""

    invoker: Invoker
    result: ResultSchema[T]
    serial_calls: SerialCallsWarning

    async def run(
        self, calls: Sequence[ToolCall], round: int
    ) -> tuple[list[tuple[ToolCall, ToolResult]], Resolved[T] | None]:
        """Run the calls of a reply and give their results, up to a valid `resolve`.

        A `resolve` after a failed call is held back, so that the failure is not hidden. Calls
        after a valid one are skipped, and observers are told.

        Raises:
            Suspended: a person must answer first. Every question of the reply has been asked
                then; calls after the first that waits have not run.
        """
        self.serial_calls.check([t for call in calls if (t := self.tools.get(call.name))])
        results: list[tuple[ToolCall, ToolResult]] = []
        waiting: list[Suspended] = []
        for start, group in self._groups(calls):
            if waiting:
                await self._ask_ahead(group, round, start)
                continue
            if group[0].name == RESOLVE:
                outcomes = [await self._resolve(group[0], f"{round}/{start}", results)]
            else:
                outcomes = await self._run_group(group, round, start)
            for call, outcome in zip(group, outcomes, strict=True):
                match outcome:
                    case Resolved():
                        await self._note_skipped(calls[start + 1 :], round, start + 1)
                        return results, outcome
                    case ToolResult():
                        self.invoker.remember(call, outcome)
                        results.append((call, outcome))
                    case Suspended():
                        waiting.append(outcome)
        if waiting:
            raise waiting[0]
        return results, None

    @property
    def tools(self) -> Mapping[str, ToolDefinition]:
        """All that are offered."""
        return self.invoker.tools

    def text(self, result: ToolResult) -> str:
        """A result in the words for the model, cut if it is long."""
        return self.invoker.kept.shown(result.words())

    def _groups(self, calls: Sequence[ToolCall]) -> list[tuple[int, list[ToolCall]]]:
        """Neighbouring reads form a group that runs together; every other call is its own."""
        groups: list[tuple[int, list[ToolCall]]] = []
        joining = False
        for index, call in enumerate(calls):
            tool = self.tools.get(call.name)
            is_read = tool is not None and tool.effect is Effect.READ and call.name != RESOLVE
            if is_read and joining:
                groups[-1][1].append(call)
            else:
                groups.append((index, [call]))
            joining = is_read
        return groups

    async def _resolve(
        self, call: ToolCall, place: str, before: Sequence[tuple[ToolCall, ToolResult]]
    ) -> Resolved[T] | ToolResult | Suspended:
        for each, result in before:
            if not result.ok and each.name != RESOLVE:
                return ToolResult(
                    False,
                    f"not accepted, because {each.name} failed in the same reply; "
                    "see its result, then call resolve again",
                )
        try:
            if self.invoker.guard is None:
                return self.result.read_call(call)
            verdict = await self.invoker.verdict(call, place)
            outcome = await self.invoker.carry_out(call, place, verdict)
            if isinstance(outcome, ToolResult) and outcome.ok:
                return self._judged_value(call, verdict, outcome)
            return outcome
        except SchemaMismatch as misfit:
            return ToolResult(False, invalid_result_message(misfit))
        except UnusableArguments as misread:
            return ToolResult(False, str(misread))

    def _judged_value(self, call: ToolCall, verdict: Verdict, outcome: ToolResult) -> Resolved[T]:
        """The value that was judged, not one that is read from it once more."""
        if isinstance(verdict, Permit) and isinstance(verdict.call, ReadCall):
            return verdict.call.value
        arguments = outcome.arguments or normal(call.arguments)
        return self.invoker.reader.reread(call, arguments, outcome.text).value

    async def _run_group(
        self, calls: Sequence[ToolCall], round: int, start: int
    ) -> Sequence[ToolResult | Suspended]:
        """Run calls together. As long as one of them may not start, none does."""
        places = [f"{round}/{start + index}" for index in range(len(calls))]
        verdicts = [
            await self.invoker.verdict(call, place)
            for call, place in zip(calls, places, strict=True)
        ]
        waiting = next((each for each in verdicts if isinstance(each, Suspended)), None)
        if waiting is not None:
            return [waiting] * len(calls)
        if len(calls) == 1:
            return [await self.invoker.carry_out(calls[0], places[0], verdicts[0])]
        results: dict[int, ToolResult | Suspended] = {}
        limiter = anyio.CapacityLimiter(MAX_AT_ONCE)

        async def run(index: int) -> None:
            async with limiter:
                results[index] = await self.invoker.carry_out(
                    calls[index], places[index], verdicts[index]
                )

        try:
            async with anyio.create_task_group() as group:
                for index in range(len(calls)):
                    group.start_soon(run, index)
        except ExceptionGroup as group:  # tools' own exceptions are results; this is the journal's
            raise group.exceptions[0] from group
        return [results[index] for index in range(len(calls))]

    async def _ask_ahead(self, calls: Sequence[ToolCall], round: int, start: int) -> None:
        """Have a person asked about calls that can't run yet: the answers serve later."""
        for index, call in enumerate(calls, start=start):
            if call.name == RESOLVE:  # what it says may depend on the calls that wait
                continue
            try:
                await self.invoker.verdict(call, f"{round}/{index}")
            except Exception as error:
                if isinstance(error, WorkflowError) and not isinstance(error, GuardError):
                    raise
                # A guard may need the history of the calls that wait. It is asked again before
                # this one runs, and only then its failure ends the role.

    async def _note_skipped(self, calls: Sequence[ToolCall], round: int, start: int) -> None:
        if not calls:
            return
        journal, key = self.invoker.ctx.journal, f"skipped/{round}"
        is_known = recorded_result(journal, key) is not None

        async def count() -> int:
            return len(calls)

        await journal.run(key, count, type=int)  # so that a resume tells them as known
        for index, call in enumerate(calls, start=start):
            await journal.note(
                ToolFinished(
                    key=f"tool/{round}/{index}",
                    recorded=is_known,
                    name=call.name,
                    ok=False,
                    skipped=True,
                    summary="skipped: the role had resolved",
                    call_id=call.id,
                    round=round,
                )
            )
