"""Makes tool calls of arguments in whichever shape a model or a provider gave them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import chain, count
from typing import Any, cast

import msgspec

from workflow_reactor._json import is_deep
from workflow_reactor._messages import ToolCall
from workflow_reactor.reply._json_text import (
    NotOneValue,
    escape_controls,
    find_json,
    looks_cut,
    parse_strict,
    replace_all_surrogates,
)

_DECODER = json.JSONDecoder()
_OTHER_VALUE = re.compile(r"[{}\[\]]")
_NAME_PARTS = re.compile(r"[A-Za-z0-9_-]+")

CUT = (
    "the arguments were cut off at the output limit, so the call was not run; "
    "send them in smaller pieces"
)


def make_call(
    name: str,
    arguments: object,
    *,
    round: int,
    index: int,
    cut: bool = False,
    id: str = "",
    **more: Any,
) -> ToolCall:
    """Build a call from arguments of any shape; `fault` says why they can't be used.

    Args:
        name: as the model wrote it.
        arguments: JSON text, which should hold an object; or a decoded value.
        round: which reply of the conversation it is in.
        index: its place among the calls of the reply.
        cut: the reply ended at the output limit.
        id: what it is sent back with; one of ours if not given.
        more: other fields of the call.
    """
    if isinstance(arguments, str):
        raw = replace_all_surrogates(arguments)
        text, fault = _read_text(raw, cut=cut)
    else:
        raw, text, fault = _read_value(arguments)
    return ToolCall(
        id=id or own_id(round, index),
        name=replace_all_surrogates(name).strip().removeprefix("functions."),
        arguments="{}" if fault else text,
        fault=fault,
        raw_arguments=raw,
        **more,
    )


def own_id(round: int, index: int, taken: Collection[str] = ()) -> str:
    """Nine letters and digits, the one form of an id that every known endpoint accepts."""
    ids = (f"{letter}{round:05d}{index:03d}" for letter in "cdefghijklmnopqrstuvwxyz")
    more = (f"{number:09d}" for number in count())  # a provider may have used them all
    return next(id for id in chain(ids, more) if id not in taken)


def broken_call(name: str, raw: str, fault: str, *, round: int, index: int) -> ToolCall:
    """Build a call that can't be run: only its name could be read."""
    empty = make_call(name, None, round=round, index=index)
    return ToolCall(id=empty.id, name=empty.name, arguments="{}", fault=fault, raw_arguments=raw)


def _read_value(value: object) -> tuple[str, str, str]:
    """Decoded arguments, an object or nothing at all: their text as raw and as used, the fault."""
    if value is None:
        return "", "{}", ""
    if is_deep(value):
        return "", "{}", "the arguments are nested too deeply"
    try:
        text = replace_all_surrogates(msgspec.json.encode(cast("Any", value)).decode())
    except UnicodeEncodeError:  # half a surrogate pair in some text of it
        text = replace_all_surrogates(json.dumps(value))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError):
        return "", "{}", "the arguments hold a value that JSON has no form for"
    return (text, text, "") if isinstance(value, dict) else (text, "{}", _not_an_object(value))


def _read_text(raw: str, *, cut: bool) -> tuple[str, str]:
    """Give the arguments as the text of a JSON object, and what is wrong with them."""
    text = raw.strip().lstrip("\ufeff").strip()
    if not text:
        return "{}", ""
    try:
        value, text = _parse(text, cut=cut)
    except NotOneValue as error:
        if cut or looks_cut(text[max(0, text.find("{")) :]):
            return "{}", CUT
        return "{}", f"the arguments are not one valid JSON object: {error}"
    if isinstance(value, str):  # an object that was encoded twice
        try:
            inner = parse_strict(value)
        except NotOneValue:
            inner = None
        if isinstance(inner, dict):
            return value, ""
    return (text, "") if isinstance(value, dict) else ("{}", _not_an_object(value))


def _parse(text: str, *, cut: bool) -> tuple[object, str]:
    """Parse JSON, or what nearly is: line ends inside strings; a fence or words around it."""
    try:
        return parse_strict(text), text
    except NotOneValue as error:
        problem = error
    if text.startswith(("{", "[")):
        mended = escape_controls(text)
        if not cut:  # what follows may be the beginning of more
            mended = _without_prose_after(mended)
        if mended == text:
            raise problem
    else:
        mended = find_json(text)
    return parse_strict(mended), mended


def _without_prose_after(text: str) -> str:
    """The JSON value that a text begins with, where only words follow: no other value."""
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return text
    return text if _OTHER_VALUE.search(text, end) else text[:end]


def own_name(name: str, names: Collection[str]) -> str:
    """The one tool that a decorated name means, such as `add` by `functions.add:0`.

    What stands around it is set off by a character that no tool's name has. Where none or several
    of the tools are in it, the name stays as it is.
    """
    if name in names:
        return name
    inside = [each for each in dict.fromkeys(_NAME_PARTS.findall(name)) if each in names]
    return inside[0] if len(inside) == 1 else name


def _not_an_object(value: object) -> str:
    match value:
        case None:
            kind = "null"
        case bool():
            kind = "true or false"
        case str():
            kind = "a string"
        case list():
            kind = "an array"
        case _:
            kind = "a number"
    return f"the arguments must be a JSON object, not {kind}"
