"""What the engine told a model between its replies: read from the requests, as no record has it.

A reminder, a correction, what is wrong with a `resolve`: a loop makes these again each time. They
stand in the next request, which a replay rebuilds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from workflow_execute.threads._replay_journal import ReplayedRequest
from workflow_execute.transcript._keys import place_of
from workflow_execute.transcript._model import Attempt, Call, Part, Round, Transcript, Turn

_ERROR = "Error: "


class _Message(msgspec.Struct):
    role: str = ""
    content: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def text(self) -> str:
        """The content, where that is a text."""
        data = bytes(self.content)
        return msgspec.json.decode(data, type=str) if data.startswith(b'"') else ""


class _Request(msgspec.Struct):
    messages: list[_Message] = []


def add_told(transcript: Transcript, requests: Iterable[ReplayedRequest]) -> Transcript:
    """Add to each round what the model was told after it, as far as the requests say so.

    Args:
        requests: what `Engine.replay` gave to `on_request`, in its order.
    """
    told = _told_by_round(requests)
    turns = [
        _with_told_turn(turn, {key: each for (step, key), each in told.items() if step == at})
        for at, turn in enumerate(transcript.turns)
    ]
    return msgspec.structs.replace(transcript, turns=tuple(turns))


def _told_by_round(
    requests: Iterable[ReplayedRequest],
) -> dict[tuple[int, str], Sequence[_Message]]:
    """The messages that follow each reply, by the step and the key of its request."""
    told: dict[tuple[int, str], Sequence[_Message]] = {}
    before: dict[tuple[int, str], tuple[str, int]] = {}
    for request in requests:
        try:
            messages = msgspec.json.decode(request.data, type=_Request).messages
        except (msgspec.DecodeError, UnicodeError):  # some adapter's own request
            continue
        scope = (request.step, place_of(request.key).scope)
        if scope in before:
            key, count = before[scope]
            told[request.step, key] = messages[count + 1 :]
        before[scope] = (request.key, len(messages))
    return told


def _with_told_turn(turn: Turn, told: dict[str, Sequence[_Message]]) -> Turn:
    if not told or not turn.attempts:
        return turn
    *earlier, current = turn.attempts
    parts: list[Part] = [
        _with_told(part, told[part.key]) if isinstance(part, Round) and part.key in told else part
        for part in current.parts
    ]
    now: Attempt = msgspec.structs.replace(current, parts=tuple(parts))
    return msgspec.structs.replace(turn, attempts=(*earlier, now))


def _with_told(round: Round, messages: Sequence[_Message]) -> Round:
    """Give each result's message to its call; whatever else was said is the round's."""
    texts = [message.text for message in messages]
    if not round.calls:
        return msgspec.structs.replace(round, told=tuple(texts))
    calls = list(round.calls)
    for at, text in enumerate(texts[: len(calls)]):
        calls[at] = _with_words(calls[at], text)
    return msgspec.structs.replace(round, calls=tuple(calls), told=tuple(texts[len(calls) :]))


def _with_words(call: Call, shown: str) -> Call:
    """A call with what stood in its message beside its recorded result."""
    if not call.text:
        return msgspec.structs.replace(call, told=shown.removeprefix(_ERROR))
    _, found, rest = shown.rpartition(call.text)
    return msgspec.structs.replace(call, told=rest.strip()) if found else call
