"""JSON out of what models write: fences, reasoning blocks, prose around it."""

from __future__ import annotations

import json
import re
from typing import Any

_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)
_OBJECT_START = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder()


class NotOneValue(ValueError):
    """The text holds no JSON value, a broken one, or several; the message says which."""


def parse_strict(text: str, *, raw_line_ends: bool = False) -> Any:
    """Parse JSON text: no NaN, no key twice, nothing after the value.

    Args:
        text: the JSON.
        raw_line_ends: let strings hold line ends and tabs that are not escaped.

    Raises:
        NotOneValue: in words for a model.
    """
    try:
        return json.loads(
            text,
            strict=not raw_line_ends,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        raise NotOneValue(_explain(text, error)) from None
    except RecursionError:
        raise NotOneValue("the JSON is nested too deeply") from None


def looks_cut(text: str) -> bool:
    """Whether the text is the beginning of a JSON value whose end is missing."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        return not rest or error.msg.startswith("Unterminated string")
    except RecursionError:
        return False
    return False


def find_json(text: str) -> str:
    """Return the one JSON object or array in a model's text, as text.

    Reasoning blocks and code fences (closed or not) are taken off, prose around is ignored. The
    same value written twice is one value; two different ones are an error, not a guess.

    Raises:
        NotOneValue: there is none, or more than one.
    """
    for candidate in (text, _REASONING.sub("", text)):
        candidate = candidate.lstrip("\ufeff").strip()
        try:
            parse_strict(candidate)
        except NotOneValue as error:
            problem = error
        else:
            return candidate
    found: list[str] = []
    position = 0
    while (start := _next_open(candidate, position)) >= 0:
        try:
            _, end = _DECODER.raw_decode(candidate, start)
        except (json.JSONDecodeError, RecursionError):
            if _OBJECT_START.match(candidate, start):  # a broken object: its parts are no answer
                raise NotOneValue(f"the JSON in it is broken or incomplete ({problem})") from None
            position = start + 1
            continue
        found.append(candidate[start:end])
        position = end
    if not found:
        raise NotOneValue("it holds no JSON value")
    if any(_canonical(each) != _canonical(found[0]) for each in found[1:]):
        raise NotOneValue(f"it holds {len(found)} different JSON values; write exactly one")
    parse_strict(found[0])
    return found[0]


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _next_open(text: str, position: int) -> int:
    starts = [i for i in (text.find("{", position), text.find("[", position)) if i >= 0]
    return min(starts, default=-1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise NotOneValue(f"the key {key!r} stands twice; write it once")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise NotOneValue(f"{name} is not JSON")


def _explain(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "there is more after the first JSON value; write exactly one"
    near = text[max(0, error.pos - 20) : error.pos + 20]
    return f"{error.msg.lower()} at line {error.lineno} column {error.colno}, near {near!r}"
