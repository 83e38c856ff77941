"""A conversation: messages that are only ever added to, with a digest that grows with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import overload

from workflow_reactor._messages import Message
from workflow_reactor.request._bodies import Frame


class Conversation(Sequence[Message]):
    """The messages of one turn of a role, oldest first.

    Nothing can be taken out or changed, so the next request begins with the bytes of the last
    one, as the prompt caches of providers need it. The digest of a request hashes only what was
    added since the last.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.is_new = True
        """Nothing of it was sent in this run of the turn, though all may have been in another."""
        self.call_ids: set[str] = set()
        """The ids of all its tool calls."""
        self._messages: list[Message] = []
        self._joined = bytearray()
        self._body: tuple[Frame, int, bytes] | None = None
        self._head: bytes | None = None
        self._hash = hashlib.sha256()
        self._hashed = 0
        self.extend(messages)

    def append(self, message: Message) -> None:
        """Add one message."""
        if self._messages:
            self._joined += b","
        self._joined += message.json
        self._messages.append(message)
        if message.call_ids:
            self.call_ids.update(message.call_ids)

    def extend(self, messages: Iterable[Message]) -> None:
        """Add messages in their order."""
        for message in messages:
            self.append(message)

    def body(self, frame: Frame) -> bytes:
        """`frame.body(self)`, made once for as long as nothing is added."""
        last = self._body
        if last is None or last[0] is not frame or last[1] != len(self._messages):
            body = b"".join((frame.head, self._joined, frame.tail))
            last = self._body = (frame, len(self._messages), body)
        return last[2]

    def digest(self, frame: Frame) -> str:
        """SHA-256 of `body(frame)`, in hex: of exactly the bytes that are sent."""
        if frame.head != self._head:
            self._head, self._hash, self._hashed = frame.head, hashlib.sha256(frame.head), 0
        self._hash.update(self._joined[self._hashed :])
        self._hashed = len(self._joined)
        whole = self._hash.copy()
        whole.update(frame.tail)
        return whole.hexdigest()

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]


def call_ids(messages: Sequence[Message]) -> Set[str]:
    """The ids of all tool calls in a conversation."""
    if isinstance(messages, Conversation):
        return messages.call_ids
    return {id for message in messages for id in message.call_ids}
