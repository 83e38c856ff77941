"""The calls of one round: what the reply wrote, joined with what is recorded of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from workflow_execute.journal._entry import JournalEntry
from workflow_execute.transcript._keys import place_of
from workflow_execute.transcript._model import Asked, Call, CallState
from workflow_execute.transcript._questions import QuestionDraft
from workflow_reactor import RESOLVE, ToolCall, ToolResult

_STATE_OF_ERROR: Mapping[str, CallState] = {
    "denied": "denied",
    "unknown_tool": "refused",
    "invalid_arguments": "refused",
    "unknown_outcome": "unknown",
}
AFTER_RESULT = "it came after the result"
_READ_RESULT = "read_result"
"""The tool of the ReAct adapter that shows more of a result of the same turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEnd:
    """What followed a round, which says what came of calls that left no record."""

    is_last: bool
    """No later round of the same part of the turn is recorded."""
    is_committed: bool
    """The step was committed, and this attempt is the one that gave its value."""
    skipped: Collection[str] = ()
    """Keys of calls that came after the result."""


@dataclass(slots=True)
class CallDraft:
    """The records of one call, as they come."""

    entries: list[JournalEntry] = field(default_factory=list[JournalEntry])
    questions: dict[str, QuestionDraft] = field(default_factory=dict[str, QuestionDraft])

    def add(self, entry: JournalEntry) -> None:
        """Take in a record."""
        if entry.record.kind in {"question", "answer", "unasked"}:
            self.questions.setdefault(entry.record.key, QuestionDraft()).add(entry)
        else:
            self.entries.append(entry)

    def call(self, key: str, written: ToolCall | None, end: RoundEnd) -> Call:
        """What is known of the call.

        Args:
            written: the call as the reply has it, if it can be read.
        """
        asked = tuple(each for draft in self.questions.values() for each in draft.questions())
        result = self._result()
        state, text = _outcome(written, result, self._has_begun(), asked, end, key)
        last = self.entries[-1].record if self.entries else None
        return Call(
            key=key,
            name=written.name if written is not None else "",
            arguments=_arguments_of(written),
            state=state,
            text=text,
            error=result.error if result is not None else "",
            note=result.note if result is not None else "",
            ran_with=result.arguments if result is not None else "",
            effect=last.effect if last is not None else None,
            at_ms=last.at_ms if last is not None else None,
            took_ms=self._took_ms(),
            questions=asked,
            records=tuple(each.hash for each in self.entries),
        )

    def _result(self) -> ToolResult | None:
        """What the call came to; where it ran again after a crash, what that came to."""
        found = self._results("tool") or self._results("told")
        return read_tool_result(found[-1].bytes) if found else None

    def _results(self, kind: str) -> list[JournalEntry]:
        return [
            each
            for each in self.entries
            if each.record.kind == "result" and place_of(each.record.key).kind == kind
        ]

    def _has_begun(self) -> bool:
        begun = False
        for entry in self.entries:
            begun = entry.record.kind == "intent" or (begun and entry.record.kind != "withdrawn")
        return begun

    def _took_ms(self) -> int | None:
        """How long the tool was at work; nothing is known of a call that no tool ran."""
        return next((each.record.took_ms for each in self._results("tool")), 0) or None


def read_tool_result(data: bytes) -> ToolResult:
    """Read the record of a call: a `ToolResult`, the text that a ThreadReactor keeps, any JSON."""
    try:
        return msgspec.json.decode(data, type=ToolResult)
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        text = msgspec.json.decode(data, type=str)
    except (msgspec.DecodeError, UnicodeError):
        return ToolResult(True, data.decode("utf-8", "replace"))
    failed = text.startswith("Error: ")
    return ToolResult(not failed, text.removeprefix("Error: ") if failed else text)


def _arguments_of(written: ToolCall | None) -> str:
    if written is None:
        return ""
    return written.raw_arguments if written.fault else written.arguments


def _outcome(
    written: ToolCall | None,
    result: ToolResult | None,
    has_begun: bool,
    asked: tuple[Asked, ...],
    end: RoundEnd,
    key: str,
) -> tuple[CallState, str]:
    """What came of a call, and the words for it."""
    if result is not None:
        return _recorded_state(written, result, end), result.text
    if key in end.skipped:
        return "skipped", AFTER_RESULT
    if any(each.approved is None and not each.withdrawn for each in asked):
        return "waiting", ""
    if has_begun:
        return "unknown", ""
    return _unrecorded_outcome(written, end)


def _recorded_state(written: ToolCall | None, result: ToolResult, end: RoundEnd) -> CallState:
    """What came of a call that left a result."""
    name = written.name if written is not None else ""
    if result.error:
        return _STATE_OF_ERROR.get(result.error, "failed")
    if not result.ok:
        return "failed"
    if name == RESOLVE and end.is_committed:
        return "accepted" if end.is_last else "refused"
    return "unrecorded" if name == _READ_RESULT else "done"


def _unrecorded_outcome(written: ToolCall | None, end: RoundEnd) -> tuple[CallState, str]:
    """What came of a call that left no record: by what it is, and by what followed."""
    if written is not None and written.fault:
        return "refused", written.fault
    if end.is_last and not end.is_committed:
        return "open", ""
    name = written.name if written is not None else ""
    if name == RESOLVE:
        return ("accepted" if end.is_last else "refused"), ""
    return ("unrecorded" if name == _READ_RESULT else "refused"), ""
