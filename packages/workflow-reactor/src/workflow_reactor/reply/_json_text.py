"""JSON out of what models write: fences, reasoning blocks, prose around it."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

from workflow_reactor._messages import clean

MAX_DEPTH = 200
_MAX_FALSE_STARTS = 200

_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_REASONING_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL)
_OBJECT_START = re.compile(r'\{\s*"')
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: one character
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",  # half a pair | any other escape
    re.DOTALL,
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_CUT_WORD = re.compile(r"(?:-|\.|\.?[eE][+-]?|t|tr|tru|f|fa|fal|fals|n|nu|nul)")
_DECODER = json.JSONDecoder()


class NotOneValue(ValueError):
    """The text holds no JSON value, a broken one, or several; the message says which."""


def parse_strict(text: str) -> Any:
    """Parse JSON text: no NaN, no key twice, at most 200 levels, nothing after the value.

    Raises:
        NotOneValue: in words for a model.
    """
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise NotOneValue(_explain(text, error)) from None
    except RecursionError:
        raise NotOneValue("the JSON is nested too deeply") from None
    except NotOneValue:
        raise
    except ValueError:  # the interpreter's own limit
        raise NotOneValue("a number in it has too many digits") from None
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_deep(value):
        raise NotOneValue("the JSON is nested too deeply")
    return value


def well_formed(text: str) -> str:
    """Replace halves of surrogate pairs, literal or as `\\ud83d`, by U+FFFD.

    No UTF-8 text can carry them: a strict decoder refuses them, a file or a log can't be written.
    """
    text = clean(text)
    if "\\u" in text:
        text = _ESCAPES.sub(lambda found: "\ufffd" if found[1] else found[0], text)
    return text


def escape_controls(text: str) -> str:
    """Escape the line ends and tabs that a model wrote into strings as they are."""
    return _STRING.sub(
        lambda found: _CONTROL.sub(lambda one: json.dumps(one[0])[1:-1], found[0]), text
    )


def looks_cut(text: str) -> bool:
    """Whether the text is the beginning of a JSON value whose end is missing."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if not rest or error.msg.startswith("Unterminated string") or _CUT_WORD.fullmatch(rest):
            return True
        return error.msg.startswith("Invalid \\") and len(rest) < len("uXXXX") + 1
    except (RecursionError, ValueError):
        return False
    return False


def without_reasoning(text: str) -> str:
    """Take reasoning blocks off, also one whose opening tag was in the prompt."""
    return _REASONING_END.sub("", _REASONING.sub("", text))


def find_json(text: str) -> str:
    """Return the one JSON object or array in a model's text, as text that any decoder takes.

    Reasoning blocks and code fences (closed or not) are taken off, prose around is ignored. The
    same value written twice is one value; two different ones are an error, not a guess.

    Raises:
        NotOneValue: there is none, or more than one.
    """
    whole = well_formed(text)
    for candidate in (whole, without_reasoning(whole)):
        candidate = candidate.strip().lstrip("\ufeff").strip()
        try:
            parse_strict(candidate)
        except NotOneValue:
            continue
        return candidate
    found = find_values(without_reasoning(whole))
    if not found:
        raise NotOneValue("it holds no JSON value")
    values = [parse_strict(each) for each in found]
    if any(not _same(value, values[0]) for value in values[1:]):
        raise NotOneValue(f"it holds {len(found)} different JSON values; write exactly one")
    return found[0]


def find_values(text: str) -> list[str]:
    """Find every JSON object and array in a text, outermost ones only.

    Raises:
        NotOneValue: an object begins and does not end. Its parts are no values of their own.
    """
    found: list[str] = []
    position = false_starts = 0
    while (start := _next_open(text, position)) >= 0:
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            false_starts += 1
            if _OBJECT_START.match(text, start) or false_starts > _MAX_FALSE_STARTS:
                problem = _explain(text, error) if isinstance(error, json.JSONDecodeError) else ""
                raise NotOneValue(
                    f"the JSON in it is broken or incomplete{problem and f' ({problem})'}"
                ) from None
            position = start + 1
            continue
        found.append(text[start:end])
        position = end
    return found


def _next_open(text: str, position: int) -> int:
    starts = [i for i in (text.find("{", position), text.find("[", position)) if i >= 0]
    return min(starts, default=-1)


def _same(a: Any, b: Any) -> bool:
    """JSON's equality: `True` is not 1."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _is_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += cast("dict[str, object]", each).values()
            elif isinstance(each, list):
                inner += cast("list[object]", each)
        if not inner:
            return False
        level = inner
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    double = next(key for key, _ in pairs if key in seen or seen.add(key))
    raise NotOneValue(f"the key {double!r} stands twice; write it once")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotOneValue(f"the number {digits[:20]} is too large")
    return number


def _no_constant(name: str) -> Any:
    raise NotOneValue(f"{name} is not JSON")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
)


def _explain(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "there is more after the first JSON value; write exactly one"
    near = text[max(0, error.pos - 20) : error.pos + 20]
    return f"{error.msg.lower()} at line {error.lineno} column {error.colno}, near {near!r}"
