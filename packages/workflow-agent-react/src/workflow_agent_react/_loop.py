"""The ReAct loop: ask, run the calls, show the results, until a valid `resolve`."""

from __future__ import annotations

from typing import TypeVar

from workflow_agent_react._calls import CallRunner
from workflow_agent_react._repetition import RepetitionDetector
from workflow_agent_react.dialects._dialect import Dialect
from workflow_protocol import ThreadContext
from workflow_reactor import (
    AssistantMessage,
    Conversation,
    LlmFn,
    MaxRoundsExceeded,
    NoProgress,
    ToolCall,
    ask_model,
    user,
)

T = TypeVar("T")

WARN_ROUNDS_LEFT = 3
REPEATED_CALL_NOTE = (
    "You have done this three times with the same result. Do something else, "
    "or give the final result with what you know."
)


async def react(
    ctx: ThreadContext,
    llm: LlmFn,
    dialect: Dialect,
    runner: CallRunner[T],
    messages: Conversation,
    *,
    max_rounds: int,
) -> T:
    """Carry a conversation on until the model resolves; `messages` grows by each turn.

    Raises:
        MaxRoundsExceeded: no valid `resolve` in `max_rounds` model calls.
        NoProgress: the model repeats itself although it was told.
        ProviderError: the model could not be asked.
    """
    repetition = RepetitionDetector(runner.tools)
    reply: AssistantMessage | None = None
    for round in range(max_rounds):
        left = max_rounds - round - 1
        reply = await ask_model(
            llm,
            ctx.journal,
            messages,
            dialect.offered,
            dialect.options(only_resolve=left == 0),
            round=round,
            max_rounds=max_rounds,
        )
        turn = dialect.read(reply, round)
        messages.append(turn.message)
        results, resolved = await runner.run(turn.calls, round)
        if resolved is not None:
            await ctx.journal.note(resolved)
            return resolved.value
        verdict = repetition.count_turn(turn, results)
        notes = [REPEATED_CALL_NOTE] if verdict == "tell" else []
        if left == WARN_ROUNDS_LEFT:
            notes.append(f"Only {left} replies are left. Give the final result in time.")
        if turn.calls:
            shown = [(call, runner.text(result)) for call, result in results]
            messages.extend(dialect.show(_with_notes(shown, notes)))
        else:
            messages.append(user("\n\n".join([turn.problem, *notes])))
        if verdict == "stop":
            raise NoProgress(
                "the model keeps making the same calls with the same results"
                f"{_how_it_ended(reply)}",
                messages=messages,
                rounds=round + 1,
            )
    raise MaxRoundsExceeded(
        f"the model gave no final result in {max_rounds} rounds{_how_it_ended(reply)}",
        messages=messages,
        rounds=max_rounds,
    )


def _how_it_ended(reply: AssistantMessage | None) -> str:
    return f"; its last reply {reply.broke_off}" if reply and reply.broke_off else ""


def _with_notes(shown: list[tuple[ToolCall, str]], notes: list[str]) -> list[tuple[ToolCall, str]]:
    """Results with notes at their end: some endpoints refuse a user's message after a tool's."""
    call, text = shown[-1]
    return [*shown[:-1], (call, "\n\n".join([text, *notes]))]
