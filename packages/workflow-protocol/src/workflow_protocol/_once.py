"""The one effect of a role that is code: performed once, with what a person says after a crash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from workflow_protocol._errors import OutcomeUnknown, Suspended
from workflow_protocol._journal import Effect, Journal, Question


class _Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one attempt at an unsafe effect."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    """The type of what it raised."""


async def run_once(
    journal: Journal,
    key: str,
    perform: Callable[[], Awaitable[bytes]],
    *,
    effect: Effect,
    what: str,
    details: str = "",
    digest: str = "",
) -> bytes:
    """Perform the effect that a role consists of, and give its result, the same one ever after.

    It is `Journal.run` with an answer to what may go wrong. What `perform` raises is raised, and
    the next time that the turn is carried out it is performed again, for its outcome is known. An
    unsafe effect that was cut off, by a crash or a stop, is performed again only if a person says
    so, who is asked.

    Args:
        journal: of the turn.
        key: as for `Journal.run`; an unsafe effect has `<key>/<attempt>` for each attempt.
        perform: the effect. Its result is JSON.
        effect: what doing it twice means.
        what: names the effect in the question to a person.
        details: what exactly it does, for the same.
        digest: names the input.

    Raises:
        OutcomeUnknown: it was cut off, and the person said no.
        Suspended: the person was not asked yet.
    """
    if effect is not Effect.UNSAFE:
        return await journal.run(key, perform, type=bytes, effect=effect, digest=digest)
    attempt = 0
    while True:
        attempt += 1
        place = f"{key}/{attempt}"
        try:
            outcome, raised = await _attempt(journal, place, perform, digest)
        except OutcomeUnknown as unknown:
            question = Question(
                text=f"{what} was cut off by a crash or a stop, so its outcome is unknown. "
                "Check what it did: may it run again?",
                details=details,
            )
            answer = await journal.ask(f"unknown/{place}", question)
            if not answer.approved:
                raise OutcomeUnknown(place, answer.text or "a person said no") from unknown
            continue
        if raised is not None:
            raise raised
        if not outcome.error:
            return bytes(outcome.value)


async def _attempt(
    journal: Journal, key: str, perform: Callable[[], Awaitable[bytes]], digest: str
) -> tuple[_Outcome, Exception | SystemExit | None]:
    """What came of an attempt, and what it raised just now."""
    raised: Exception | SystemExit | None = None

    async def noting_errors() -> _Outcome:
        nonlocal raised
        try:
            return _Outcome(value=msgspec.Raw(await perform()))
        except Suspended:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code may raise anything
            raised = error
            return _Outcome(error=type(error).__name__)

    outcome = await journal.run(
        key, noting_errors, type=_Outcome, effect=Effect.UNSAFE, digest=digest
    )
    return outcome, raised
