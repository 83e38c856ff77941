"""What does not fit, in a model's words: no library's name, no Python type, one line each.

"expected an integer, got a string" is what a model can act on, whichever validator found it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from workflow_protocol._errors import Fault

_MISSING, _UNKNOWN = "required, but missing", "unknown field"

_KINDS = {
    "null": "null",
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "array": "an array",
    "object": "an object",
    "bytes": "a base64 string",
    "datetime": "a date and time such as 2026-01-31T12:00:00Z",
    "date": "a date such as 2026-01-31",
    "time": "a time such as 12:00:00",
    "duration": "a duration such as PT1H30M",
    "timedelta": "a duration such as PT1H30M",
    "uuid": "a UUID",
    "decimal": "a decimal number as a string",
}
_MSGSPEC = (  # of msgspec 0.19 to 0.20; what is in none of them is passed on as it is
    (re.compile(r"Invalid RFC3339 encoded datetime"), f"expected {_KINDS['datetime']}"),
    (re.compile(r"Invalid RFC3339 encoded date"), f"expected {_KINDS['date']}"),
    (re.compile(r"Invalid RFC3339 encoded time"), f"expected {_KINDS['time']}"),
    (re.compile(r"Invalid ISO8601 duration"), f"expected {_KINDS['duration']}"),
    (re.compile(r"Invalid base64 encoded string"), f"expected {_KINDS['bytes']}"),
    (re.compile(r"Invalid decimal string"), "expected a decimal number"),
    (re.compile(r"Invalid UUID"), f"expected {_KINDS['uuid']}"),
)
_PYDANTIC = {
    "bool_type": "bool",
    "bool_parsing": "bool",
    "int_type": "int",
    "int_parsing": "int",
    "int_from_float": "int",
    "float_type": "float",
    "float_parsing": "float",
    "string_type": "str",
    "string_sub_type": "str",
    "none_required": "null",
    "bytes_type": "bytes",
    "list_type": "array",
    "tuple_type": "array",
    "set_type": "array",
    "frozen_set_type": "array",
    "dict_type": "object",
    "model_type": "object",
    "model_attributes_type": "object",
    "dataclass_type": "object",
    "datetime_type": "datetime",
    "datetime_parsing": "datetime",
    "datetime_from_date_parsing": "datetime",
    "date_type": "date",
    "date_parsing": "date",
    "date_from_datetime_parsing": "date",
    "time_type": "time",
    "time_parsing": "time",
    "time_delta_type": "duration",
    "time_delta_parsing": "duration",
    "uuid_type": "uuid",
    "uuid_parsing": "uuid",
    "decimal_type": "decimal",
    "decimal_parsing": "decimal",
}


def kind_of(value: object) -> str:
    """What a JSON value is, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def msgspec_fault(error: Exception, schema: Mapping[str, Any]) -> Fault:
    """The fault of a msgspec error: "<what> - at `$.a[0]`", the path being the place."""
    message, found, place = str(error).rpartition(" - at `")
    if not found:
        message, place = str(error), ""
    place = place.rstrip("`")
    if named := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", message):
        at = f"{place or '$'}.{named[2]}"
        return Fault(at, _UNKNOWN if named[1] == "contains unknown" else _MISSING)
    if message.startswith(("Invalid enum value", "Invalid value")):
        choices = " or ".join(_choices_at(schema, place))
        given = message.partition("value ")[2]
        return Fault(place, f"expected {choices}, got {given}" if choices else f"{given} is wrong")
    for pattern, words in _MSGSPEC:
        message = pattern.sub(words, message)
    message = re.sub(r"`([^`]*)`", lambda kinds: _kinds(kinds[1]), message)
    return Fault(place, message[:1].lower() + message[1:] if message[:4] != "JSON" else message)


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))


def pydantic_fault(error: Mapping[str, Any], value: object) -> Fault:
    """The fault of one item of a pydantic error; `value` is what was validated."""
    kind, given = str(error["type"]), error.get("input")
    place = _place(error["loc"], value)
    message = str(error["msg"])
    if kind == "missing":
        return Fault(place, _MISSING)
    if kind == "extra_forbidden":
        return Fault(place, _UNKNOWN)
    if kind in _PYDANTIC:
        got = kind_of(given) if not kind.endswith("parsing") else f"{given!r:.60}"
        return Fault(place, f"expected {_KINDS[_PYDANTIC[kind]]}, got {got}")
    for start, words in (
        ("Input should", "should"),
        ("Input tag", "the tag"),
        ("Input is", "is"),
        ("Value error, ", ""),
        ("Input ", "the input "),
    ):
        if message.startswith(start):
            message = words + message[len(start) :]
            break
    return Fault(place, re.sub(r"\bdictionary\b", "object", message))


def _place(location: Sequence[int | str], value: object) -> str:
    """A pydantic location in the notation that msgspec uses: `$.roles[0].name`.

    Locations name the member of a union that was tried, too. That is in no value, so it goes.
    """
    place = "$"
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(part, int):
            items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
            value = items[part] if part < len(items) else None
            place += f"[{part}]"
        elif isinstance(value, dict) and (part in value or (last and "[" not in part)):
            value = cast("Mapping[str, object]", value).get(part)
            place += f".{part}"
    return place


def _choices_at(schema: Mapping[str, Any], place: str) -> list[str]:
    """The constants that may stand at a place of a value, as JSON."""
    nodes: list[Mapping[str, Any]] = [schema]
    for part in re.findall(r"\.([^.\[]++)|(\[[^\]\[]*+\])", place):
        below = [each for node in nodes for each in _step(schema, node, part[0])]
        nodes = list({id(each): each for each in below}.values())
    values = [
        value
        for node in nodes
        for option in _options(schema, node)
        for value in option.get("enum", [option["const"]] if "const" in option else [])
    ]
    return list(dict.fromkeys(msgspec.json.encode(value).decode() for value in values))


def _step(root: Mapping[str, Any], node: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for option in _options(root, node):
        properties = cast("Mapping[str, Any]", option.get("properties", {}))
        named: Any = properties.get(name) if name else option.get("items")
        for below in (named, option.get("additionalProperties")):
            if isinstance(below, dict):
                found.append(cast("Mapping[str, Any]", below))
                break
    return found


def _options(root: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A schema with its references followed, or the members of a union; each once."""
    found: list[Mapping[str, Any]] = []
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        members = cast("Sequence[Mapping[str, Any]]", node.get("anyOf") or node.get("oneOf") or ())
        if "$ref" in node:
            target = root.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2])
            waiting += [] if target is None else [target]
        elif members:
            waiting += reversed(members)
        else:
            found.append(node)
    return found
