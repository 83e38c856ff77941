"""What the strictest endpoint asks of a request, for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from workflow_reactor.reply._json_text import NotOneValue, parse_strict

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def history_faults(request: dict[str, Any]) -> list[str]:
    """Everything for which some known endpoint would answer 400; empty for a good request.

    Each rule is one that is in force somewhere: ids unique and not empty, each call answered once,
    in order and before anything else; arguments a string that holds a JSON object; names of
    letters, digits, `_` and `-`; content never blank, and null only beside calls; no user's message
    right after a tool's or another user's; tools offered as long as the history holds calls.
    """
    messages = cast("list[dict[str, Any]]", request.get("messages") or [])
    tools = cast("list[dict[str, Any]]", request.get("tools") or [])
    faults = [*_message_faults(messages), *_call_faults(messages), *_tool_faults(tools)]
    if not tools and any(message.get("tool_calls") for message in messages):
        faults.append("the history holds calls, but no tools are offered")
    return faults


def _message_faults(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    before = ""
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in {"system", "user", "assistant", "tool"}:
            yield f"messages[{index}] has the role {role!r}"
        if role == "system" and index:
            yield f"messages[{index}] is a system message and not the first"
        if role == "user" and before in {"user", "tool"}:
            yield f"messages[{index}] is a user's right after a {before}'s"
        if role == "assistant" and before == "assistant":
            yield f"messages[{index}] is an assistant's right after an assistant's"
        calls = message.get("tool_calls")
        if not (isinstance(content, str) and content.strip()) and (
            content is not None or not calls
        ):
            yield f"messages[{index}] has the content {content!r}"
        if "tool_calls" in message and not (isinstance(calls, list) and calls):
            yield f"messages[{index}] has the tool_calls {calls!r}"
        before = str(role)


def _call_faults(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            id = message.get("tool_call_id")
            if not waiting or waiting[0] != id:
                yield f"messages[{index}] answers {id!r}, but {waiting!r} wait"
            waiting = waiting[1:]
            continue
        if waiting:
            yield f"messages[{index}] stands where {waiting!r} wait for their results"
            waiting = []
        for call in cast("list[dict[str, Any]]", message.get("tool_calls") or []):
            id, function = call.get("id"), cast("dict[str, Any]", call.get("function") or {})
            if not isinstance(id, str) or not id or id in seen:
                yield f"messages[{index}] has a call with the id {id!r}"
            if call.get("type") != "function":
                yield f"messages[{index}] has a call of the type {call.get('type')!r}"
            if not _NAME.fullmatch(str(function.get("name"))):
                yield f"messages[{index}] calls {function.get('name')!r}"
            if not _is_object(function.get("arguments")):
                yield f"messages[{index}] has the arguments {function.get('arguments')!r}"
            seen.add(str(id))
            waiting.append(str(id))
    if waiting:
        yield f"the calls {waiting!r} have no results"


def _tool_faults(tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        function = cast("dict[str, Any]", tool.get("function") or {})
        name, parameters = str(function.get("name")), function.get("parameters")
        if not _NAME.fullmatch(name) or name in names:
            yield f"tools[{index}] has the name {name!r}"
        names.add(name)
        schema = cast("dict[str, Any]", parameters) if isinstance(parameters, dict) else {}
        if schema.get("type") != "object" or schema.keys() & {"anyOf", "oneOf", "allOf", "$ref"}:
            yield f"tools[{index}] has parameters whose root is not a plain object"


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(parse_strict(arguments), dict)
    except NotOneValue:
        return False
