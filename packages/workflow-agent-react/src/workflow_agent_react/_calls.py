"""Runs the calls of one reply: in order, reads together, every fault a result for the model."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio
import msgspec

from workflow_protocol import (
    Effect,
    OutcomeUnknown,
    SchemaMismatch,
    Suspended,
    ThreadContext,
    ToolFinished,
    ToolStarted,
    WorkflowError,
)
from workflow_reactor import RESOLVE, ResultSchema, ToolCall, ToolDefinition, ToolHandler

T = TypeVar("T")


class ToolResult(msgspec.Struct, frozen=True, array_like=True):
    """What a call came to. The journal records it."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Resolved(Generic[T]):
    """The role's value, in a box, as it may be any value at all."""

    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRunner(Generic[T]):
    """Everything it takes to run a role's calls."""

    ctx: ThreadContext
    tools: Mapping[str, ToolDefinition]
    handler: ToolHandler
    result: ResultSchema[T]
    max_result_chars: int

    async def run(
        self, calls: Sequence[ToolCall], round: int
    ) -> tuple[list[tuple[ToolCall, ToolResult]], Resolved[T] | None]:
        """Run the calls of a reply and give their results, up to a valid `resolve`.

        A `resolve` after a failed call is held back, so that the failure is not hidden. Calls
        after a valid one are skipped, and observers are told.
        """
        results: list[tuple[ToolCall, ToolResult]] = []
        for start, group in self._groups(calls):
            if group[0].name == RESOLVE:
                outcome = self._resolve(group[0], results)
                if isinstance(outcome, Resolved):
                    await self._skip(calls[start + 1 :])
                    return results, outcome
                results.append((group[0], outcome))
            else:
                results += zip(group, await self._run_group(group, round, start), strict=True)
        return results, None

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

    def _resolve(
        self, call: ToolCall, before: Sequence[tuple[ToolCall, ToolResult]]
    ) -> Resolved[T] | ToolResult:
        failed = next((each.name for each, result in before if not result.ok), None)
        if failed is not None:
            return ToolResult(
                False,
                f"not accepted, because {failed} failed in the same reply; "
                "see its result, then call resolve again",
            )
        try:
            return Resolved(self.result.read_call(call))
        except SchemaMismatch as misfit:
            return ToolResult(
                False, f"the result is not valid; mend it and resolve again:\n{misfit}"
            )

    async def _run_group(
        self, calls: Sequence[ToolCall], round: int, start: int
    ) -> list[ToolResult]:
        if len(calls) == 1:
            return [await self._run_one(calls[0], round, start)]
        results: dict[int, ToolResult] = {}

        async def run(index: int) -> None:
            results[index] = await self._run_one(calls[index], round, start + index)

        try:
            async with anyio.create_task_group() as group:
                for index in range(len(calls)):
                    group.start_soon(run, index)
        except ExceptionGroup as group:  # tools' own exceptions are results; this is the journal's
            raise group.exceptions[0] from group
        return [results[index] for index in range(len(calls))]

    async def _run_one(self, call: ToolCall, round: int, index: int) -> ToolResult:
        journal = self.ctx.journal
        await journal.note(ToolStarted(name=call.name, arguments=call.arguments))
        started = time.monotonic()
        result = await self._recorded(call, f"tool/{round}/{index}")
        elapsed_ms = int((time.monotonic() - started) * 1000)
        await journal.note(
            ToolFinished(
                name=call.name, ok=result.ok, summary=result.text[:200], elapsed_ms=elapsed_ms
            )
        )
        return result

    async def _recorded(self, call: ToolCall, key: str) -> ToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            return ToolResult(False, _unknown_tool(call.name, self.tools))
        if call.fault:
            known = json.dumps(tool.parameters.get("properties", {}))
            return ToolResult(False, f"{call.fault}; the parameters are {known}")
        try:
            return await self.ctx.journal.run(
                key, lambda: self._perform(tool, call), type=ToolResult, effect=tool.effect
            )
        except OutcomeUnknown as unknown:
            return ToolResult(False, str(unknown))

    async def _perform(self, tool: ToolDefinition, call: ToolCall) -> ToolResult:
        """Run the handler. Its exceptions become results, cancellation never does."""
        try:
            with anyio.move_on_after(tool.timeout_s):
                text = await self.handler(call, self.ctx)
                return ToolResult(True, shorten(text, self.max_result_chars))
        except Suspended:
            raise
        except Exception as error:  # noqa: BLE001 - a tool may raise anything; the model is told
            return ToolResult(False, _words(error))
        return ToolResult(False, f"{tool.name} took longer than {tool.timeout_s:g} s")

    async def _skip(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            await self.ctx.journal.note(
                ToolFinished(name=call.name, ok=False, summary="skipped: the role had resolved")
            )


def shorten(text: str, max_chars: int) -> str:
    """Cut the middle out of a long text and say how much is missing."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n[… {missing} characters left out …]\n{text[-half:]}"


def canonical(arguments: str) -> str:
    """Arguments with sorted keys and no spacing, to compare calls by."""
    return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))


def _words(error: Exception) -> str:
    """A `WorkflowError` is written for its reader; of others the type says half of it."""
    text = str(error)
    return text if isinstance(error, WorkflowError) and text else f"{type(error).__name__}: {text}"


def _unknown_tool(name: str, tools: Mapping[str, ToolDefinition]) -> str:
    near = difflib.get_close_matches(name, tools, n=len(tools), cutoff=0.6)
    names = [*near, *(each for each in tools if each not in near)]
    return f"there is no tool {name!r}; the tools are {', '.join(names)}"
