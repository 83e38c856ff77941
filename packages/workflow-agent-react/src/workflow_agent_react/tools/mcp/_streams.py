"""What a transport gives a session, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Streams(NamedTuple):
    """Messages in and out, and what is known of the other side once it is gone."""

    incoming: Any
    """Of `SessionMessage`s; ends when the connection does. The SDK's own types, as its two
    transports have different ones."""
    outgoing: Any
    how_it_ended: Callable[[], str]
    """Why no more messages come, in words; empty where nothing is known."""
    said: Callable[[], str]
    """What stands on standard error, shortened."""


class ServerFault(Exception):
    """A request that got no result.

    Args:
        reason: why, in words.
        sent: the server may have carried it out.
        lost: the connection is of no more use.
        answered: the server itself said so.
        status: of HTTP, where it was that.
    """

    def __init__(
        self, reason: str, *, sent: bool, lost: bool, answered: bool = False, status: int = 0
    ) -> None:
        self.reason = reason
        self.sent = sent
        self.lost = lost
        self.answered = answered
        self.status = status
        super().__init__(reason)
