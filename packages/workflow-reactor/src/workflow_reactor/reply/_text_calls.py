"""Tool calls that a model without a working template wrote into its text."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast

import msgspec

from workflow_reactor._messages import ToolCall
from workflow_reactor.reply._calls import broken_call, make_call
from workflow_reactor.reply._json_text import (
    NotOneValue,
    find_values,
    parse_strict,
    replace_all_surrogates,
    without_reasoning,
)

_TAG = re.compile(
    r"<(tool_calls?|function_calls?)>(.*?)(?:</\1>|(?=<\1>)|\Z)", re.DOTALL | re.IGNORECASE
)
_NAME = re.compile(r'"name"\s*+:\s*+"([^"\\]{1,64})"')


def calls_in_text(text: str, names: Collection[str] | None, *, round: int) -> tuple[ToolCall, ...]:
    """Find calls written as `{"name": …, "arguments": …}`: in tags, fenced, bare, one or several.

    Inside tags anything that is named is a call. Outside of them it must name a tool that was
    offered, and all values in the text must be calls: an answer may have a `name` as well.

    Args:
        text: the reply's content.
        names: the tools that were offered; `None` if that isn't known.
        round: which reply of the conversation it is.
    """
    text = without_reasoning(replace_all_surrogates(text))
    blocks = [block for _, block in _TAG.findall(text)]
    calls: list[ToolCall] = []
    if blocks:
        for block in blocks:
            calls += _in_block(block, None, round=round, first=len(calls))
        return tuple(calls)
    return tuple(_in_block(text, names, round=round, first=0, bare=True))


def _in_block(
    block: str, names: Collection[str] | None, *, round: int, first: int, bare: bool = False
) -> list[ToolCall]:
    try:
        values = [parse_strict(each) for each in find_values(block)]
    except NotOneValue as error:
        named = _NAME.search(block)
        if named is None or (bare and (names is None or named[1] not in names)):
            return []
        fault = f"the call in your text is not one valid JSON object: {error}"
        return [broken_call(named[1], block.strip(), fault, round=round, index=first)]
    found: list[tuple[str, object]] = []
    for value in values:
        inside = _calls_of(value, bare=bare)
        if not inside:
            return []
        found += inside
    if names is not None and any(name not in names for name, _ in found):
        return []
    return [
        make_call(name, arguments, round=round, index=first + number)
        for number, (name, arguments) in enumerate(found)
    ]


def _calls_of(value: object, *, bare: bool) -> list[tuple[str, object]]:
    """The calls that a JSON value spells; none if any part of it is something else."""
    found: list[tuple[str, object]] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list) and value:
            waiting += reversed(cast("list[object]", value))
            continue
        if not isinstance(value, dict):
            return []
        fields = cast("dict[str, Any]", value)
        inner = _wrapped(fields)
        if inner is not None:
            waiting.append(inner)
            continue
        name: object = fields.get("name")
        arguments: object = fields.get("arguments", fields.get("parameters"))
        if not isinstance(name, str) or not (
            isinstance(arguments, dict | str) or (arguments is None and not bare)
        ):
            return []
        found.append((name, cast("object", arguments)))
    return found


def _wrapped(fields: dict[str, Any]) -> object:
    """What stands under `tool_calls` or `function`, in which models wrap their calls."""
    if isinstance(fields.get("tool_calls"), list):
        return fields["tool_calls"]
    return fields["function"] if isinstance(fields.get("function"), dict) else None


def calls_as_text(calls: Collection[ToolCall]) -> str:
    """Native calls as text, for a conversation without tools."""
    return "\n".join(
        msgspec.json.encode(
            {"name": call.name, "arguments": call.raw_arguments if call.fault else call.arguments}
        ).decode()
        for call in calls
    )
