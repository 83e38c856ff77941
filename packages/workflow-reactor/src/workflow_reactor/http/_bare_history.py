"""A conversation without reasoning, for a server that refuses what it was shown of its own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from workflow_reactor._messages import Message
from workflow_reactor.http._faults import ProviderFault
from workflow_reactor.reply._unknown import REASONING, Fields
from workflow_reactor.request._bodies import Frame

_decode = msgspec.json.Decoder(Fields).decode
_encode = msgspec.json.Encoder().encode


class BareHistory:
    """Takes the reasoning out of assistant messages, each message once."""

    def __init__(self) -> None:
        self._seen: list[Message] = []
        self._bare: list[bytes] = []
        self.changed = False
        """Whether there was any reasoning."""

    def body(self, frame: Frame, messages: Sequence[Message]) -> bytes:
        """The request as `frame.body(messages)`, without reasoning."""
        known = len(self._seen)
        if known and (len(messages) < known or messages[known - 1] is not self._seen[-1]):
            self._seen, self._bare, self.changed = [], [], False  # it is another conversation
        for message in messages[len(self._seen) :]:
            self._seen.append(message)
            self._bare.append(self._without_reasoning(message))
        return b"".join([frame.head, b",".join(self._bare), frame.tail])

    def _without_reasoning(self, message: Message) -> bytes:
        if message.role != "assistant":
            return message.json
        fields = _decode(message.json)
        kept = {name: value for name, value in fields.items() if not REASONING.search(name)}
        if len(kept) == len(fields):
            return message.json
        self.changed = True
        return _encode(kept)


def may_refuse_reasoning(fault: ProviderFault) -> bool:
    """Whether an endpoint may have refused a request for the reasoning in it.

    A wrong request may be wrong for it; a fault of the server only where it names it, as the
    templates of some do that can't show text and reasoning beside calls.
    """
    if fault.status in {400, 422}:
        return fault.kind == "permanent"
    return fault.status == 500 and REASONING.search(fault.message) is not None
