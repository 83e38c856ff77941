"""Tells observers of a tool call: when it begins, and once how it ends, whatever ends it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from workflow_protocol import Journal, ToolFinished, ToolStarted, error_message, error_type
from workflow_reactor._messages import ToolCall

T = TypeVar("T")

_SUMMARY_CHARS = 200


class CallOutcome(NamedTuple):
    """How a call ended, for observers."""

    text: str
    """The result, or what was wrong."""
    error: str = ""
    """See `ToolFinished.error`; empty where it went well."""


async def tell_call(
    journal: Journal,
    call: ToolCall,
    perform: Callable[[], Awaitable[T]],
    outcome_of: Callable[[T], CallOutcome],
    *,
    key: str,
    round: int,
    recorded: bool = False,
) -> T:
    """Perform a call, and tell observers of it.

    Args:
        journal: passes the events on.
        call: what the model asked for.
        perform: runs it, by the journal; its result is given back, what it raises is raised.
        outcome_of: reads off the result how it went.
        key: the call's in the journal, such as `tool/3/0`.
        round: of the reply that made the call.
        recorded: an earlier run has told it, although the journal has no result under `key`.
    """
    await journal.note(
        ToolStarted(
            key=key,
            recorded=recorded,
            name=call.name,
            arguments=call.arguments,
            call_id=call.id,
            round=round,
        )
    )
    began_s = time.monotonic()

    async def tell_end(outcome: CallOutcome) -> None:
        await journal.note(
            ToolFinished(
                key=key,
                recorded=recorded,
                name=call.name,
                ok=not outcome.error,
                summary=outcome.text[:_SUMMARY_CHARS],
                elapsed_ms=int((time.monotonic() - began_s) * 1000),
                call_id=call.id,
                round=round,
                error=outcome.error,
            )
        )

    try:
        result = await perform()
    except BaseException as error:
        await tell_end(CallOutcome(error_message(error), error_type(error)))
        raise
    await tell_end(outcome_of(result))
    return result
