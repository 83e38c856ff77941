"""A transcript as lines for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from uwf.terminal._cells import hang
from uwf.terminal._shorten import Cut, argument_lines, changed_arguments, cut_lines, value_lines
from uwf.terminal._style import Style, Styled, printable
from workflow_execute.transcript import (
    Asked,
    Attempt,
    Call,
    CallState,
    ChildStart,
    Decided,
    Part,
    Recorded,
    Round,
    Turn,
)
from workflow_protocol import Failure, Usage

_INLINE_CHARS = 200
"""A result of one line that is longer stands below its mark."""
TOOK_FROM_MS = 100
"""What took less is not worth a number."""


class Line(NamedTuple):
    """A line of a transcript."""

    indent: int
    text: str
    look: Style | None = None


_STATES: Mapping[CallState, tuple[str, Style]] = {
    "done": ("✓", "good"),
    "failed": ("✗ failed", "bad"),
    "denied": ("✗ denied", "bad"),
    "unknown": ("? it began, and nobody knows how it ended", "warn"),
    "waiting": ("? it waits for an answer", "warn"),
    "accepted": ("✓ taken as the result", "good"),
    "refused": ("✗ not accepted", "bad"),
    "skipped": ("- not run", "dim"),
    "unrecorded": ("✓ it shows a part of an earlier result, and is not recorded", "dim"),
    "open": ("… the record ends before it", "warn"),
}


def failure_words(failure: Failure) -> str:
    """Why a turn has no value."""
    return f"✗ failed: {failure.type}: {failure.message}"


class TranscriptLines:
    """Makes lines of turns.

    Args:
        cut: how much of a text is shown; `None` for all of it.
        children: what is known of child threads, by their id.
        has_requests: what the model was told between its replies is known.
    """

    def __init__(
        self, *, cut: Cut | None, children: Mapping[str, str], has_requests: bool = False
    ) -> None:
        self._cut = cut
        self._children = children
        self._has_requests = has_requests

    def turn(self, turn: Turn) -> list[Line]:
        """All of one turn."""
        lines = [Line(0, _turn_head(turn), "strong")]
        for attempt in turn.attempts:
            lines += self._attempt(attempt, alone=len(turn.attempts) == 1)
        if turn.content:
            lines += self._block(2, turn.content)
        if turn.failure is not None:
            lines += self._block(2, failure_words(turn.failure), "bad")
        if turn.value is not msgspec.UNSET:
            first, *more = value_lines(bytes(turn.value), self._cut)
            lines += [Line(2, f"= {first}", "strong"), *(Line(4, each, "strong") for each in more)]
        for each in turn.artifacts:
            first, *more = value_lines(each.json.encode(), self._cut)
            lines += [Line(2, f"{each.name} = {first}", "name"), *(Line(4, row) for row in more)]
        return lines

    def _attempt(self, attempt: Attempt, *, alone: bool) -> list[Line]:
        lines: list[Line] = []
        if not alone:
            end = "" if attempt.is_current else ", given up: the turn was begun anew"
            lines.append(Line(2, f"attempt {attempt.number}{end}", "warn"))
        if attempt.supervisor:
            lines.append(Line(2, "supervisor", "name"))
            for part in attempt.supervisor:
                lines += self._part(part, 4)
        for part in attempt.parts:
            lines += self._part(part, 2)
        return lines

    def _part(self, part: Part | Decided, indent: int) -> list[Line]:
        match part:
            case Round():
                return self._round(part, indent)
            case ChildStart():
                return self._child(part, indent)
            case Asked():
                return self._question(part, indent)
            case Decided():
                words = f"{_clock(part.at_ms)}  {part.decision}: {part.reason}"
                return [Line(indent, f"decision  {words}", "name")]
            case Recorded():
                return self._recorded(part, indent)

    def _round(self, part: Round, indent: int) -> list[Line]:
        lines = [Line(indent, _round_head(part), "dim")]
        inner = indent + 2
        lines += [
            Line(inner, f"✗ a reply was lost, counted as {each.charged_tokens:,} tokens", "bad")
            for each in part.lost
        ]
        if part.reasoning:
            lines.append(Line(inner, "thoughts", "dim"))
            lines += self._block(inner + 2, part.reasoning, "dim")
        if part.text:
            lines += self._block(inner, part.text)
        if part.fault:
            lines += self._block(inner, f"✗ {part.fault}", "bad")
        for call in part.calls:
            lines += self._call(call, inner)
        for told in part.told:
            lines += self._told(told, inner)
        if part.state == "corrected" and not part.told:
            words = f"↻ not accepted; the model was told why{self._hint()}"
            lines.append(Line(inner, words, "warn"))
        if part.state == "open":
            lines.append(Line(inner, "… the record ends after this reply", "warn"))
        return lines

    def _call(self, call: Call, indent: int) -> list[Line]:
        first, *more = [*argument_lines(call.arguments, self._cut), ""][:-1] or [""]
        name = call.name or f"({call.key})"
        if more or first.endswith(":"):
            lines = [Line(indent, f"→ {name}", "name")]
            lines += [Line(indent + 4, each) for each in (first, *more)]
        else:
            lines = [Line(indent, f"→ {name}  {first}".rstrip(), "name")]
        if call.ran_with:
            first, *more = changed_arguments(call.arguments, call.ran_with, self._cut)
            lines.append(Line(indent + 2, f"it ran with  {first}".rstrip(), "dim"))
            lines += [Line(indent + 4, each, "dim") for each in more]
        for asked in call.questions:
            if _repeats(asked, call):
                asked = msgspec.structs.replace(asked, details="")
            lines += self._question(asked, indent + 2)
        return lines + self._outcome(call, indent + 2)

    def _outcome(self, call: Call, indent: int) -> list[Line]:
        words, look = _STATES[call.state]
        took = _took(call.took_ms)
        text = "" if call.state == "accepted" else call.text
        lines: list[Line] = []
        if text and "\n" not in text.rstrip("\n"):
            head = words if call.state == "done" and not took else f"{words}{took}:"
            if len(text) <= _INLINE_CHARS:
                lines.append(Line(indent, f"{head} {text.rstrip()}", look))
            else:
                lines += [Line(indent, head, look), *self._block(indent + 2, text)]
        else:
            is_explained = text or call.told or call.state != "refused"
            why = "" if is_explained else f"; the model was told why{self._hint()}"
            lines.append(Line(indent, f"{words}{took}{why}", look))
            lines += self._block(indent + 2, text)
        return lines + self._told(call.told, indent)

    def _told(self, text: str, indent: int) -> list[Line]:
        return self._block(indent, f"↻ told: {text}", "warn") if text else []

    def _hint(self) -> str:
        return "" if self._has_requests else " (see it with --requests)"

    def _question(self, asked: Asked, indent: int) -> list[Line]:
        lines = self._block(indent, f"? {asked.text}", "warn")
        lines += self._block(indent + 2, asked.details)
        return [*lines, *self._answer(asked, indent + 2)]

    def _answer(self, asked: Asked, indent: int) -> list[Line]:
        if asked.approved is None:
            words = "taken back" if asked.withdrawn else f"no answer yet ({asked.key})"
            return [Line(indent, words, "warn")]
        said = "approved" if asked.approved else "denied"
        by = f" by {asked.by}" if asked.by else ""
        words = f": {asked.answer}" if asked.answer else ""
        head = f"{said}{by} at {_clock(asked.answered_at_ms or 0)}{words}"
        lines = self._block(indent, head, "good" if asked.approved else "bad")
        if asked.arguments:
            lines += [Line(indent, "with other arguments", "dim")]
            lines += [Line(indent + 2, each) for each in argument_lines(asked.arguments, self._cut)]
        return lines

    def _child(self, child: ChildStart, indent: int) -> list[Line]:
        known = f"  {self._children[child.thread]}" if child.thread in self._children else ""
        lines = [Line(indent, f"⇢ child thread {child.thread}{known}", "name")]
        if child.return_code is None:
            end = "it had not ended when the record was made"
        else:
            took = _took(child.took_ms)
            end = f"completed ({child.return_code}){took}: {child.summary}".rstrip(": ")
        return [*lines, *self._block(indent + 2, end)]

    def _recorded(self, part: Recorded, indent: int) -> list[Line]:
        kind = "" if part.record == "result" else f" {part.record}"
        if part.value is msgspec.UNSET:
            return self._headed(indent, f"· {part.key}{kind}", part.text)
        text = "\n".join(value_lines(bytes(part.value), self._cut))
        return self._headed(indent, f"· {part.key}{kind}", text)

    def _headed(self, indent: int, head: str, text: str) -> list[Line]:
        if "\n" in text:
            return [Line(indent, head, "dim"), *self._block(indent + 2, text)]
        return self._block(indent, f"{head}  {text}".rstrip(), "dim")

    def _block(self, indent: int, text: str, look: Style | None = None) -> list[Line]:
        if not text:
            return []
        return [Line(indent, each, look) for each in cut_lines(text, self._cut)]


def _repeats(asked: Asked, call: Call) -> bool:
    """Whether what a person was shown is the call as it stands above the question."""
    shown = asked.details.removeprefix(f"{call.name} ")
    try:
        return msgspec.json.decode(shown) == msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _turn_head(turn: Turn) -> str:
    if turn.state == "ended":
        return f"{turn.number}. the supervisor ended the thread"
    parts = [turn.role or "(role not recorded)"]
    if turn.state == "unfinished":
        parts.append("unfinished turn")
    if turn.at_ms is not None:
        parts.append(_clock(turn.at_ms))
    if turn.elapsed_ms is not None:
        parts.append(f"{turn.elapsed_ms / 1000:.1f} s")
    parts += used_words(turn.usage, turn.cost_micros)
    if turn.inherited:
        parts.append("of the thread that it was forked from")
    return f"{turn.number}. {'  '.join(parts)}"


def _round_head(part: Round) -> str:
    scope = f"{part.scope} " if part.scope else ""
    kind = "run" if part.key.rpartition("/")[0].endswith("run") else "round"
    parts = [f"{scope}{kind} {part.number + 1}", _clock(part.at_ms)]
    parts += [_took(part.took_ms).strip(), part.model]
    parts += used_words(part.usage, part.cost_micros, calls=False)
    if part.finish not in {"", "stop", "tool_calls"}:
        parts.append(f"finish: {part.finish}")
    if part.state == "lost":
        parts.append("no reply")
    return "  ".join(filter(None, parts))


def used_words(usage: Usage, cost_micros: int | None, *, calls: bool = True) -> list[str]:
    """Tokens, calls and cost, as far as there are any."""
    parts: list[str] = []
    if usage.calls:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out")
        if usage.unknown_calls:
            parts.append(f"{usage.unknown_calls} calls without token counts")
    if calls and usage.calls:
        parts.append(f"{usage.calls} model calls" if usage.calls > 1 else "1 model call")
    if cost_micros:
        parts.append(f"cost {cost_micros / 1_000_000:.4f}")
    return parts


def _took(ms: int | None) -> str:
    return "" if ms is None or ms < TOOK_FROM_MS else f" {ms / 1000:.2f} s"


def _clock(at_ms: int) -> str:
    """The local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def lay_out(lines: Iterable[Line], width: int | None) -> list[Styled | str]:
    """The lines as they are printed: escaped, and broken where they are too wide.

    Args:
        width: columns; `None` breaks no line.
    """
    printed: list[Styled | str] = []
    for indent, text, look in lines:
        for row in hang(printable(text), indent, width):
            words = f"{' ' * indent}{row}"
            printed += [words if look is None else Styled(words, look), "\n"]
    return printed[:-1]
