"""Joins the records of one attempt to rounds, calls, children and questions, in one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from workflow_execute.children._child import ChildRecord
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.transcript._calls import AFTER_RESULT, CallDraft, RoundEnd
from workflow_execute.transcript._keys import Place, child_of, place_of
from workflow_execute.transcript._model import (
    Asked,
    Call,
    ChildStart,
    LostCall,
    Part,
    Recorded,
    Round,
    RoundState,
)
from workflow_execute.transcript._questions import QuestionDraft
from workflow_execute.transcript._replies import SaidReply, WrittenCallReader, read_said


class _Refusal(msgspec.Struct):
    message: str = ""


def join_records(
    entries: Iterable[JournalEntry],
    *,
    is_committed: bool,
    skipped: Collection[str] = (),
    written_call: WrittenCallReader | None = None,
) -> list[Part]:
    """Give the parts of an attempt, in the order of each one's first record.

    Args:
        entries: all records of the attempt.
        is_committed: it gave the value of a committed step.
        skipped: keys of calls that came after the result.
        written_call: reads calls that dialects write into text.
    """
    drafts: dict[tuple[str, ...], list[JournalEntry]] = {}
    last_rounds: dict[str, int] = {}
    for entry in entries:
        place = place_of(entry.record.key)
        if place.kind not in {"", "child"}:
            last_rounds[place.scope] = max(last_rounds.get(place.scope, 0), place.round)
        drafts.setdefault(_part_of(entry, place), []).append(entry)
    parts: list[Part] = []
    for (kind, *names), records in drafts.items():
        try:
            match kind:
                case "child":
                    parts.append(_child(records))
                case "question":
                    parts += _questions(records)
                case "round":
                    scope, number = names[0], int(names[1])
                    is_last = last_rounds[scope] == number
                    end = RoundEnd(is_last=is_last, is_committed=is_committed, skipped=skipped)
                    parts.append(_round(scope, number, records, end, written_call))
                case _:
                    parts += map(_recorded, records)
        except (msgspec.DecodeError, UnicodeError):  # somebody else's record under such a key
            parts += map(_recorded, records)
    return parts


def _part_of(entry: JournalEntry, place: Place) -> tuple[str, ...]:
    """What a record is put together with."""
    key = entry.record.key
    if place.kind == "child":
        return "child", child_of(key)
    if place.kind:
        return "round", place.scope, str(place.round)
    if entry.record.kind in {"question", "answer", "unasked"}:
        return "question", key
    return "record", entry.hash


def _round(
    scope: str,
    number: int,
    entries: list[JournalEntry],
    end: RoundEnd,
    written_call: WrittenCallReader | None,
) -> Round:
    """One round of a loop, of all records that are under its number."""
    own: list[JournalEntry] = []
    calls: dict[int, CallDraft] = {}
    for entry in entries:
        place = place_of(entry.record.key)
        if place.kind in {"llm", "run", "refused", "skipped"}:
            own.append(entry)
        else:
            calls.setdefault(place.call, CallDraft()).add(entry)
    reply = next((each for each in own if _is_reply(each)), None)
    said = SaidReply()
    if reply is not None:
        said = read_said(reply.bytes, number, has_calls=bool(calls), written_call=written_call)
    refusal = _refusal([each for each in own if place_of(each.record.key).kind == "refused"])
    lost = tuple(_lost(each) for each in own if each.record.kind == "lost")
    prefix = f"{scope}/" if scope else ""
    joined = _calls(f"{prefix}tool/{number}", said, calls, end)
    kind = place_of(own[0].record.key).kind if own else "llm"
    kind = kind if kind == "run" else "llm"
    return Round(
        key=f"{prefix}{kind}/{number}",
        scope=scope,
        number=number,
        state=_round_state(own, reply, said, joined, end, refusal),
        at_ms=(reply or entries[0]).record.at_ms,
        took_ms=(reply.record.took_ms or None) if reply is not None else None,
        model=said.model,
        text=said.text,
        reasoning=said.reasoning,
        finish=said.finish,
        usage=said.usage,
        cost_micros=_cost(reply, said),
        fault=said.fault or refusal,
        calls=joined,
        lost=lost,
        records=tuple(each.hash for each in own if each.record.kind != "lost"),
    )


def _calls(
    prefix: str, said: SaidReply, drafts: dict[int, CallDraft], end: RoundEnd
) -> tuple[Call, ...]:
    """The calls that were written, and those of which only records tell."""
    calls: list[Call] = []
    for index in sorted({*range(len(said.calls)), *drafts}):
        written = said.calls[index] if index < len(said.calls) else None
        calls.append(drafts.get(index, CallDraft()).call(f"{prefix}/{index}", written, end))
    return tuple(_with_one_result(calls))


def _with_one_result(calls: list[Call]) -> list[Call]:
    """Of several `resolve` the last that was read gave the value; the others were refused."""
    accepted = [at for at, call in enumerate(calls) if call.state == "accepted"]
    if not accepted:
        return calls
    result = accepted[-1]
    for at, call in enumerate(calls):
        if call.state == "accepted" and at != result:
            calls[at] = msgspec.structs.replace(call, state="refused")
        elif call.state == "refused" and at > result:
            calls[at] = msgspec.structs.replace(call, state="skipped", text=AFTER_RESULT)
    return calls


def _round_state(
    own: list[JournalEntry],
    reply: JournalEntry | None,
    said: SaidReply,
    calls: tuple[Call, ...],
    end: RoundEnd,
    refusal: str,
) -> RoundState:
    if reply is None and not refusal:
        return "lost" if own else "calls"
    if reply is None:
        return "failed"
    if not said.is_readable:
        return "unreadable"
    if calls:
        return "calls"
    if said.fault and not said.finish:
        return "failed"
    if not end.is_last:
        return "corrected"
    return "result" if end.is_committed or not said.finish else "open"


def _is_reply(entry: JournalEntry) -> bool:
    place = place_of(entry.record.key)
    return entry.record.kind == "result" and place.kind in {"llm", "run"}


def _refusal(entries: list[JournalEntry]) -> str:
    """The provider's words, where it refused the request for its content."""
    words = [
        msgspec.json.decode(each.data, type=_Refusal).message
        for each in entries
        if each.data is not None and each.data.startswith(b"{")
    ]
    return words[-1] if words else ""


def _cost(reply: JournalEntry | None, said: SaidReply) -> int | None:
    """By the price table, else as the provider says."""
    charged = reply.record.charged_micros if reply is not None else 0
    return charged or said.usage.cost_micros


def _lost(entry: JournalEntry) -> LostCall:
    return LostCall(
        at_ms=entry.record.at_ms,
        charged_tokens=entry.record.charged_tokens,
        charged_micros=entry.record.charged_micros,
        records=(entry.hash,),
    )


def _questions(entries: list[JournalEntry]) -> list[Asked]:
    draft = QuestionDraft()
    for entry in entries:
        draft.add(entry)
    return draft.questions()


def _child(entries: list[JournalEntry]) -> ChildStart:
    """A child from its two records; either may be missing."""
    results = [each for each in entries if each.record.kind == "result"]
    thread, done = "", None
    for entry in results:
        if entry.bytes.startswith(b"{"):
            done = msgspec.json.decode(entry.bytes, type=ChildRecord)
        else:
            thread = msgspec.json.decode(entry.bytes, type=str)
    began, ended = entries[0].record.at_ms, entries[-1].record
    return ChildStart(
        key=entries[0].record.key,
        thread=thread or (done.thread_id if done is not None else ""),
        at_ms=began,
        took_ms=(ended.took_ms or ended.at_ms - began) if done is not None else None,
        return_code=done.return_code if done is not None else None,
        summary=done.summary if done is not None else "",
        value=done.value if done is not None else msgspec.Raw(b"null"),
        records=tuple(each.hash for each in entries),
    )


def _recorded(entry: JournalEntry) -> Recorded:
    record = entry.record
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text = ""
    if entry.data is not None:
        try:
            msgspec.json.decode(entry.data)
            value = msgspec.Raw(entry.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            text = entry.data.decode("utf-8", "replace")
    return Recorded(
        key=record.key,
        record=record.kind,
        effect=record.effect,
        at_ms=record.at_ms,
        took_ms=record.took_ms or None,
        value=value,
        text=text,
        records=(entry.hash,),
    )
