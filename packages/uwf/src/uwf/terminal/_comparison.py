"""Two threads side by side, as lines for people."""

from __future__ import annotations

import msgspec

from uwf.terminal._shorten import Cut, value_lines
from uwf.terminal._transcript import Line, used_words
from workflow_execute import StoredThread
from workflow_execute.transcript import (
    RequestDifference,
    RequestPlace,
    StepPair,
    StepSide,
    ThreadComparison,
    ValueDifference,
)

_CUT = Cut(lines=8, chars=200)
_AROUND = 40
"""So many characters stand before the place where two texts part."""
_TEXT_FROM = 200
"""A longer text is shown from shortly before the place where it differs."""
_REQUEST_PLACES = 5


def comparison_lines(comparison: ThreadComparison, a: StoredThread, b: StoredThread) -> list[Line]:
    """All of a comparison."""
    lines = [_thread_line("a", a), _thread_line("b", b), Line(0, "")]
    if comparison.shared_steps:
        count = comparison.shared_steps
        steps = "The first step is" if count == 1 else f"The first {count} steps are"
        lines.append(Line(0, f"{steps} the same one: one thread was forked from the other."))
    lines += _request_lines(comparison)
    for pair in comparison.steps:
        lines += [Line(0, ""), *_pair_lines(pair)]
    if comparison.not_compared:
        lines += [Line(0, ""), Line(0, "not compared", "warn")]
        lines += [Line(2, each) for each in comparison.not_compared]
    return lines


def _thread_line(name: str, thread: StoredThread) -> Line:
    status = thread.status
    code = "" if status.return_code is None else f" ({status.return_code})"
    count = len(thread.steps)
    noun = "step" if count == 1 else "steps"
    words = f"{thread.thread_id}  {thread.start.workflow}  {status.state}{code}"
    return Line(0, f"{name}  {words}  {count} {noun}", "strong")


def _request_lines(comparison: ThreadComparison) -> list[Line]:
    request = comparison.request
    if request is None:
        return [Line(0, f"All {comparison.requests} requests are the same.", "good")]
    before = f"The first {comparison.requests} requests are the same. "
    head = before if comparison.requests else ""
    if request.a is None or request.b is None:
        place = request.a or request.b
        assert place is not None  # there is a difference
        name = "a" if request.b is None else "b"
        return [Line(0, f"{head}Only {name} has more: {_place(place)}.", "warn")]
    lines = [Line(0, f"{head}The first that differs:", "warn")]
    lines += [Line(2, f"a: {_place(request.a)}"), Line(2, f"b: {_place(request.b)}")]
    return lines + _byte_lines(request)


def _place(place: RequestPlace) -> str:
    return f"request {place.number}, in step {place.step} ({place.key})"


def _byte_lines(request: RequestDifference) -> list[Line]:
    lines: list[Line] = []
    for each in request.differences[:_REQUEST_PLACES]:
        lines += _difference_lines(each, 2)
    left = len(request.differences) - _REQUEST_PLACES
    if left > 0:
        lines.append(Line(2, f"and {left} more places (see --json)", "dim"))
    return lines


def _pair_lines(pair: StepPair) -> list[Line]:
    roles = list(dict.fromkeys(side.role for side in (pair.a, pair.b) if side is not None))
    if pair.is_shared:
        return [Line(0, f"{pair.number}. {roles[0]}  the same step", "dim")]
    lines = [Line(0, f"{pair.number}. {' / '.join(roles)}", "strong")]
    for name, side in (("a", pair.a), ("b", pair.b)):
        lines.append(Line(2, f"{name}: {_side_words(side)}", "dim"))
    if pair.a is None or pair.b is None:
        return lines
    if len(roles) > 1:
        return [*lines, Line(2, "the roles differ, so their values are not compared", "warn")]
    if not pair.differences:
        return [*lines, Line(2, "the values are the same", "good")]
    for each in pair.differences:
        lines += _difference_lines(each, 2)
    if pair.more_differences:
        lines.append(Line(2, f"and {pair.more_differences} more differences", "dim"))
    return lines


def _side_words(side: StepSide | None) -> str:
    if side is None:
        return "no such step"
    used = used_words(side.usage, side.cost_micros)
    return "  ".join([side.role, f"{side.elapsed_ms / 1000:.1f} s", *used])


def _difference_lines(difference: ValueDifference, indent: int) -> list[Line]:
    a, b = _from_difference(difference.a, difference.b)
    lines = [Line(indent, difference.path, "name")]
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, msgspec.UnsetType):
            lines.append(Line(indent + 2, f"{name}: (not there)", "dim"))
            continue
        first, *more = value_lines(bytes(value), _CUT)
        lines.append(Line(indent + 2, f"{name}: {first}"))
        lines += [Line(indent + 5, each) for each in more]
    return lines


_Value = msgspec.Raw | msgspec.UnsetType


def _from_difference(a: _Value, b: _Value) -> tuple[_Value, _Value]:
    """Two long texts from shortly before the place where they part."""
    one, two = _long_text(a), _long_text(b)
    if one is None or two is None or max(len(one), len(two)) < _TEXT_FROM:
        return a, b
    pairs = enumerate(zip(one, two, strict=False))
    at = next((at for at, (x, y) in pairs if x != y), min(len(one), len(two)))
    start = max(0, at - _AROUND)
    if not start:
        return a, b
    skipped = f"[… {start:,} characters that are the same …]"
    return _raw(skipped + one[start:]), _raw(skipped + two[start:])


def _long_text(value: _Value) -> str | None:
    if isinstance(value, msgspec.UnsetType) or not bytes(value).startswith(b'"'):
        return None
    return msgspec.json.decode(bytes(value), type=str)


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(text))
