"""JSON out of what models write: fences, reasoning blocks, prose around it.

Everything here takes time in proportion to the text: no pattern and no loop reads a part twice
because what it hoped for did not come. `tests/adversary` holds that.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from workflow_reactor._json import MAX_DEPTH, is_deep
from workflow_reactor._messages import replace_surrogates

_MAX_FALSE_STARTS = 200
_MAX_VALUES = 1_000

_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_REASONING_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL)
_OPENER = re.compile(r"[{\[]")
_OBJECT_START = re.compile(r'\{\s*+"')
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: one character
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",  # half a pair | any other escape
    re.DOTALL,
)
STRING = r'"(?:[^"\\]++|\\.?)*+"?'
"""A pattern of a JSON string, whole or cut off (with DOTALL). It matches from each quote on, so no
search begins again inside a string that has no end."""
_STRING = re.compile(STRING, re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_CUT_TOKEN = re.compile(r"(?:-|\.|\.?[eE][+-]?|t|tr|tru|f|fa|fal|fals|n|nu|nul)")
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
    if text.count("{") + text.count("[") > MAX_DEPTH and is_deep(value):
        raise NotOneValue("the JSON is nested too deeply")
    return value


def replace_all_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, literal or as `\\ud83d`, by U+FFFD.

    No UTF-8 text can carry them: a strict decoder refuses them, a file or a log can't be written.
    """
    text = replace_surrogates(text)
    if "\\u" in text:
        text = _ESCAPES.sub(lambda found: "\ufffd" if found[1] else found[0], text)
    return text


def escape_controls(text: str) -> str:
    """Escape the line ends and tabs that a model wrote into strings as they are."""
    if not _CONTROL.search(text):
        return text
    return _STRING.sub(
        lambda found: _CONTROL.sub(lambda one: json.dumps(one[0])[1:-1], found[0]), text
    )


def looks_cut(text: str) -> bool:
    """Whether the text is the beginning of a JSON value whose end is missing."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if not rest or error.msg.startswith("Unterminated string") or _CUT_TOKEN.fullmatch(rest):
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
    whole = replace_all_surrogates(text)
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
    forms = [_sorted_json(parse_strict(each)) for each in found]
    if any(form != forms[0] for form in forms):
        raise NotOneValue(f"it holds {len(found)} different JSON values; write exactly one")
    return found[0]


def find_values(text: str) -> list[str]:
    """Find every JSON object and array in a text, outermost ones only.

    A bracket that begins no JSON is text, and the search goes on where it stopped being JSON.

    Raises:
        NotOneValue: an object, or an array with objects, begins and does not end. Its parts are no
            values of their own. Or there are more than a thousand values.
    """
    found: list[str] = []
    position = false_starts = 0
    while opener := _OPENER.search(text, position):
        start = opener.start()
        try:
            _, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            false_starts += 1
            if _has_an_object(text, start, error.pos) or false_starts > _MAX_FALSE_STARTS:
                problem = _explain(text, error)
                raise NotOneValue(f"the JSON in it is broken or incomplete ({problem})") from None
            position = max(start + 1, error.pos)
        except RecursionError:
            raise NotOneValue("the JSON in it is nested too deeply") from None
        except ValueError:  # the interpreter's own limit
            raise NotOneValue("a number in it has too many digits") from None
        else:
            found.append(text[start:position])
            if len(found) > _MAX_VALUES:
                raise NotOneValue(f"it holds more than {_MAX_VALUES} JSON values")
    return found


def _has_an_object(text: str, start: int, end: int) -> bool:
    """Whether what begins like JSON at `start` and breaks off at `end` is more than a bracket."""
    return bool(_OBJECT_START.match(text, start) or _OBJECT_START.search(text, start, end))


def _sorted_json(value: Any) -> str:
    """The same text for what is equal in JSON's sense: `True` is not 1."""
    return json.dumps(value, sort_keys=True)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    double = next(key for key, _ in pairs if key in seen or seen.add(key))
    raise NotOneValue(f"the key {double!r} stands twice; write it once")


def _finite_number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotOneValue(f"the number {digits[:20]} is too large")
    return number


def _refuse_constant(name: str) -> Any:
    raise NotOneValue(f"{name} is not JSON")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_without_doubles, parse_constant=_refuse_constant, parse_float=_finite_number
)


def _explain(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "there is more after the first JSON value; write exactly one"
    near = text[max(0, error.pos - 20) : error.pos + 20]
    return f"{error.msg.lower()} at line {error.lineno} column {error.colno}, near {near!r}"
