"""Reads a provider's reply, whatever shape it came in. Pure: the same bytes give the same message.

Two things can be wrong with a body: it is no reply at all (`NotAReply`: the provider's fault,
handled by the retry layer), or the model wrote something odd (kept as text, or as a call whose
`fault` says what is wrong, handled by the loop).
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from workflow_protocol import Usage
from workflow_reactor._json_text import NotOneValue, find_json, looks_cut, parse_strict
from workflow_reactor._messages import AssistantMessage, Finish, ToolCall, assistant, clean
from workflow_reactor._provider import Profile

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "refusal": "refused",
}


class NotAReply(ValueError):
    """The body is no chat completion. `error` is the provider's error object, if it has one."""

    def __init__(self, message: str, error: object = None) -> None:
        self.error = error
        super().__init__(message)


def read_reply(body: bytes, profile: Profile, *, round: int = 0) -> AssistantMessage:
    """Decode one chat completion.

    Args:
        round: makes the ids of the calls unique in the conversation.

    Raises:
        NotAReply: not JSON, an error object under status 200, or no message in it.
    """
    data = _decode(body)
    message = _message(data)
    usage = _usage(data.get("usage"))
    finish = _finish(data, usage, profile.max_tokens)
    refusal = message.get("refusal")
    text = _text(message.get("content")) or (refusal if isinstance(refusal, str) else "")
    calls = _calls(message, round=round, cut=finish == "length")
    if not calls and profile.text_tool_calls:
        calls = _calls_in_text(text, round=round)
    reasoning, echo = _reasoning(message, profile)
    return AssistantMessage(
        text=text,
        tool_calls=calls,
        finish="refused" if refusal and not calls else finish,
        usage=usage,
        reasoning=reasoning,
        message=assistant(text, calls, **echo),
        raw=body,
    )


def _decode(body: bytes) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        try:  # lone surrogates and the like, which only the standard library lets through
            data = json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise NotAReply(_describe(body)) from None
    except RecursionError:
        raise NotAReply("the reply is nested too deeply") from None
    if not isinstance(data, dict):
        raise NotAReply("the reply is JSON, but not an object")
    return cast("dict[str, Any]", data)


def _describe(body: bytes) -> str:
    start = body.strip()[:200].decode("utf-8", "replace")
    if not start:
        return "the reply was empty"
    if start.startswith("<"):
        return f"the reply was a web page, not JSON: {start!r}"
    return f"the reply was not JSON: {start!r}"


def _message(data: dict[str, Any]) -> dict[str, Any]:
    choices = data.get("choices")
    first = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    message = cast("dict[str, Any]", first).get("message") if isinstance(first, dict) else None
    if isinstance(message, dict):
        return cast("dict[str, Any]", message)
    error = data.get("error") or (
        cast("dict[str, Any]", first).get("error") if isinstance(first, dict) else None
    )
    if error:
        raise NotAReply("the reply was an error under status 200", error)
    raise NotAReply("the reply has no choices[0].message")


def _text(content: object) -> str:
    """Content is a string, null, or a list of parts of which the text ones count."""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        parts: list[str] = []
        for part in cast("list[Any]", content):
            text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                parts.append(text)
        return clean("".join(parts))
    return ""


def _reasoning(message: dict[str, Any], profile: Profile) -> tuple[str, dict[str, str]]:
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if isinstance(value, str) and value:
            value = clean(value)
            return value, {key: value} if profile.echo_reasoning else {}
    return "", {}


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage(calls=1, unknown_calls=1)
    found = cast("dict[str, Any]", usage)
    details = found.get("prompt_tokens_details")
    tokens_in, tokens_out = _count(found, "prompt_tokens"), _count(found, "completion_tokens")
    if tokens_in is None or tokens_out is None:
        return Usage(calls=1, unknown_calls=1)
    cached = _count(cast("dict[str, Any]", details), "cached_tokens") if details else None
    return Usage(
        input_tokens=tokens_in, output_tokens=tokens_out, cached_tokens=cached or 0, calls=1
    )


def _count(data: object, key: str) -> int | None:
    value = cast("dict[str, Any]", data).get(key) if isinstance(data, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _finish(data: dict[str, Any], usage: Usage, max_tokens: int | None) -> Finish:
    if max_tokens is not None and usage.output_tokens >= max_tokens:
        return "length"
    reason = data["choices"][0].get("finish_reason")
    return _FINISH.get(reason, "other") if isinstance(reason, str) else "other"


def _calls(message: dict[str, Any], *, round: int, cut: bool) -> tuple[ToolCall, ...]:
    raw = message.get("tool_calls")
    if not isinstance(raw, list):
        return ()
    calls: list[ToolCall] = []
    for item in cast("list[Any]", raw):
        if not isinstance(item, dict):
            continue
        entry = cast("dict[str, Any]", item)
        function = entry.get("function")
        fields = cast("dict[str, Any]", function) if isinstance(function, dict) else entry
        name, provider_id = fields.get("name"), entry.get("id")
        calls.append(
            make_call(
                name if isinstance(name, str) else "",
                fields.get("arguments"),
                round=round,
                index=len(calls),
                cut=cut,
                provider_id=provider_id if isinstance(provider_id, str) else "",
            )
        )
    return tuple(calls)


def make_call(
    name: str,
    arguments: object,
    *,
    round: int,
    index: int,
    cut: bool = False,
    provider_id: str = "",
) -> ToolCall:
    """Build a call from arguments of any shape; `fault` says why they can't be used.

    The id is nine letters and digits, the one form that every known endpoint accepts.
    """
    text, fault = _arguments(arguments, cut=cut)
    as_written = arguments if isinstance(arguments, str) else _as_json(arguments)
    return ToolCall(
        id=f"c{round:05d}{index:03d}",
        name=clean(name.strip()),
        arguments="{}" if fault else text,
        fault=fault,
        raw_arguments=clean(as_written),
        provider_id=provider_id,
    )


def _arguments(arguments: object, *, cut: bool) -> tuple[str, str]:
    """Give the arguments as the text of a JSON object, and what is wrong with them."""
    if isinstance(arguments, dict):
        return _as_json(cast("dict[str, Any]", arguments)), ""
    if arguments is None:
        return "{}", ""
    if not isinstance(arguments, str):
        return "{}", f"the arguments must be a JSON object, not {_kind(arguments)}"
    text = arguments.strip()
    if not text:
        return "{}", ""
    if "\ufffd" not in text and text != clean(text):
        text = clean(text)
    try:
        value = parse_strict(text)
    except NotOneValue as error:
        if cut or looks_cut(text):
            return "{}", (
                "the arguments were cut off at the output limit, so the call was not run; "
                "send them in smaller pieces"
            )
        try:
            value = _mended(text)
        except NotOneValue:
            return "{}", f"the arguments are not one valid JSON object: {error}"
        text = _as_json(value)
    if not isinstance(value, dict):
        return "{}", f"the arguments must be a JSON object, not {_kind(value)}"
    return text, ""


def _mended(text: str) -> object:
    """Parse what is nearly JSON: line ends inside strings; a fence or words around one object."""
    try:
        return parse_strict(text, raw_line_ends=True)
    except NotOneValue:
        if text.startswith(("{", "[")):
            raise
        return parse_strict(find_json(text))


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "a number"


def _as_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, msgspec.MsgspecError, TypeError, RecursionError):
        return json.dumps(value)


def _calls_in_text(text: str, *, round: int) -> tuple[ToolCall, ...]:
    """A call written as `{"name": …, "arguments": …}`, fenced or in <tool_call> tags."""
    inside = text.partition("<tool_call>")[2].partition("</tool_call>")[0] or text
    try:
        value = parse_strict(find_json(inside))
    except NotOneValue:
        return ()
    if not isinstance(value, dict):
        return ()
    call = cast("dict[str, Any]", value)
    name: object = call.get("name")
    arguments: object = call.get("arguments", call.get("parameters"))
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        return ()
    return (make_call(name, cast("object", arguments), round=round, index=0),)
