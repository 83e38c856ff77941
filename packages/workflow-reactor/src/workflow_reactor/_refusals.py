"""What was refused for its content is not sent again unchanged when the turn is resumed.

A conversation that is too long, or against a policy, is refused as often as it is sent. So the
refusal is recorded, under a key that names the request and where it went: a resume with the same
request to the same place fails at once, with the provider's words. Another model, another base
URL, other settings, or the turn begun anew make another key, and are sent.
"""

from __future__ import annotations

import hashlib

import msgspec

from workflow_protocol import Journal, LastingJournal, recorded_result
from workflow_reactor._errors import ContentRefused
from workflow_reactor.request._bodies import Frame
from workflow_reactor.request._conversation import Conversation


class _Refusal(msgspec.Struct, frozen=True):
    message: str
    status: int | None
    provider_message: str


def was_refused(journal: Journal, conversation: Conversation, frame: Frame, *, round: int) -> bool:
    """Whether the request was refused in an earlier run of the turn."""
    if not isinstance(journal, LastingJournal):
        return False
    return recorded_result(journal, _key(conversation, frame, round)) is not None


def raise_if_refused(
    journal: Journal, conversation: Conversation, frame: Frame, *, round: int
) -> None:
    """Look whether the request was refused in an earlier run of the turn.

    Raises:
        ContentRefused: it was; nothing is sent.
    """
    recorded = recorded_result(journal, _key(conversation, frame, round))
    if recorded is None:
        return
    refusal = msgspec.json.decode(recorded, type=_Refusal)
    raise ContentRefused(
        f"{refusal.message} (refused before, and nothing has changed, so it was not sent again)",
        status=refusal.status,
        provider_message=refusal.provider_message,
        attempts=0,
    )


async def record_refusal(
    journal: Journal, conversation: Conversation, frame: Frame, error: ContentRefused, *, round: int
) -> None:
    """Record that the request was refused."""

    async def refusal() -> _Refusal:
        return _Refusal(str(error), error.status, error.provider_message)

    await journal.run(_key(conversation, frame, round), refusal, type=_Refusal)


def _key(conversation: Conversation, frame: Frame, round: int) -> str:
    named = hashlib.sha256(f"{conversation.digest(frame)} {frame.place}".encode())
    return f"refused/{round}/{named.hexdigest()[:16]}"
