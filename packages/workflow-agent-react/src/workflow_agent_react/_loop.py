"""The ReAct loop: ask, run the calls, show the results, until a valid `resolve`."""

from __future__ import annotations

from typing import TypeVar

from workflow_agent_react._calls import CallRunner, ToolResult, canonical
from workflow_agent_react._dialect import Dialect, Turn
from workflow_agent_react._repetition import Repetition
from workflow_protocol import Effect, ThreadContext
from workflow_reactor import (
    LlmFn,
    MaxRoundsExceeded,
    Message,
    NoProgress,
    ToolCall,
    ask_model,
    user,
)

T = TypeVar("T")

WARN_ROUNDS_LEFT = 3


async def react(
    ctx: ThreadContext,
    llm: LlmFn,
    dialect: Dialect,
    runner: CallRunner[T],
    messages: list[Message],
    *,
    max_rounds: int,
) -> T:
    """Carry a conversation on until the model resolves; `messages` grows by each turn.

    Raises:
        MaxRoundsExceeded: no valid `resolve` in `max_rounds` model calls.
        NoProgress: the model repeats itself although it was told.
        ProviderError: the model could not be asked.
    """
    repetition = Repetition()
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
            return resolved.value
        if turn.calls:
            messages += dialect.show([(call, _text(result)) for call, result in results])
        else:
            messages.append(user(turn.problem))
        match _judge(repetition, turn, results, runner):
            case "stop":
                raise NoProgress(
                    "the model keeps making the same calls with the same results",
                    messages=messages,
                    rounds=round + 1,
                )
            case "tell":
                messages.append(user("You have done this before, with the same result. Go on."))
            case _:
                pass
        if left == WARN_ROUNDS_LEFT:
            messages.append(user(f"Only {left} replies are left. Call `resolve` in time."))
    raise MaxRoundsExceeded(
        f"the model did not resolve in {max_rounds} rounds", messages=messages, rounds=max_rounds
    )


def _text(result: ToolResult) -> str:
    return result.text if result.ok else f"Error: {result.text}"


def _judge(
    repetition: Repetition,
    turn: Turn,
    results: list[tuple[ToolCall, ToolResult]],
    runner: CallRunner[T],
) -> str:
    """The worst that repetition has to say about this turn."""
    verdicts = {"fine"}
    if not turn.calls:
        verdicts.add(repetition.saw("", "", turn.message.json.decode(), changes_things=False))
    for call, result in results:
        tool = runner.tools.get(call.name)
        if tool is None or not tool.pollable:
            changes = tool is not None and tool.effect is not Effect.READ
            arguments = call.raw_arguments if call.fault else canonical(call.arguments)
            verdicts.add(repetition.saw(call.name, arguments, result.text, changes_things=changes))
    return max(verdicts, key=["fine", "tell", "stop"].index)
