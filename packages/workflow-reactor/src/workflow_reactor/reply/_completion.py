"""The wire form of a chat completion, decoded level by level: each level may be anything."""

from __future__ import annotations

import re
from typing import Generic, TypeVar, cast

import msgspec

from workflow_reactor.reply._json_text import STRING, escape_controls, replace_all_surrogates
from workflow_reactor.reply._unknown import (
    CALL_FIELDS,
    FUNCTION_FIELDS,
    MESSAGE_FIELDS,
    Fields,
    unknown_fields,
)

T = TypeVar("T")

_ABSENT = msgspec.Raw()
_STRING_OR_WORD = re.compile(STRING + r"|-?\b(?:NaN|Infinity)\b", re.DOTALL)


class NotAReply(ValueError):
    """The body is no chat completion. `error` is the provider's error object, if it has one;
    `began` whether the beginning of a reply stands beside it."""

    def __init__(self, message: str, error: object = None, *, began: bool = False) -> None:
        self.error = error
        self.began = began
        super().__init__(message)


class MessageBody(msgspec.Struct):
    """`choices[0].message`."""

    content: object = None
    refusal: object = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: msgspec.Raw = _ABSENT
    function_call: msgspec.Raw = _ABSENT


class CallBody(msgspec.Struct, frozen=True):
    """A native call as it came."""

    name: object
    arguments: object
    """The text that the model wrote, also where the provider sent an object; a decoded value where
    the call is a part of the content. `None`: nothing."""
    id: object = None
    extra: Fields = {}
    """What else the provider put on the call, and on its function."""
    function_extra: Fields = {}


class ReplyBody(msgspec.Struct, frozen=True):
    """What a reply is read from."""

    message: MessageBody
    calls: list[CallBody]
    finish_reason: object
    usage: object
    extra: Fields = {}
    """What else the provider put on the message, reasoning included."""
    model: object = None
    """What says that it has replied."""


class _Function(msgspec.Struct):
    name: object = None
    arguments: msgspec.Raw = _ABSENT


class _Call(msgspec.Struct):
    id: object = None
    function: msgspec.Raw = _ABSENT
    name: object = None
    arguments: msgspec.Raw = _ABSENT


class _Choice(msgspec.Struct):
    message: msgspec.Raw = _ABSENT
    finish_reason: object = None
    error: object = None


class _Top(msgspec.Struct):
    choices: msgspec.Raw = _ABSENT
    usage: object = None
    error: object = None
    model: object = None


class _TolerantDecoder(Generic[T]):
    """Decodes one level, and gives `None` for whatever is something else."""

    def __init__(self, type_: type[T]) -> None:
        self._decode = msgspec.json.Decoder(type_).decode

    def read(self, raw: msgspec.Raw) -> T | None:
        try:
            return self._decode(raw) if raw is not _ABSENT else None
        except msgspec.ValidationError:
            return None


_TOP = msgspec.json.Decoder(_Top)
_TEXT = msgspec.json.Decoder(str)
_ITEMS = _TolerantDecoder(list[msgspec.Raw])
_CHOICE, _MESSAGE = _TolerantDecoder(_Choice), _TolerantDecoder(MessageBody)
_CALL, _FUNCTION = _TolerantDecoder(_Call), _TolerantDecoder(_Function)


def read_body(body: bytes) -> ReplyBody:
    """Decode a body; what only strict decoders refuse is mended first.

    Raises:
        NotAReply: not JSON, an error object under status 200, or no message in it.
    """
    try:
        return _read(body)
    except (NotAReply, msgspec.ValidationError, RecursionError) as error:
        raise _no_reply(error, body) from None
    except (msgspec.MsgspecError, ValueError):
        pass
    try:
        return _read(_repaired(body))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _no_reply(error, body) from None


def _read(body: bytes) -> ReplyBody:
    top = _TOP.decode(body)
    choices = _ITEMS.read(top.choices)
    choice = _CHOICE.read(choices[0]) if choices else None
    message = _MESSAGE.read(choice.message) if choice is not None else None
    error = top.error or (choice.error if choice is not None else None)
    if _says_something(error):  # what stands beside it, such as half a text, broke off with it
        began = message is not None
        raise NotAReply("the reply was an error under status 200", error, began=began)
    if choice is None or message is None:
        raise NotAReply("the reply has no choices[0].message")
    extra = unknown_fields(choice.message, MESSAGE_FIELDS)
    calls = _calls(message)
    return ReplyBody(message, calls, choice.finish_reason, top.usage, extra, top.model)


def _says_something(error: object) -> bool:
    """Whether an error is more than an empty form of one, as it stands in good replies too."""
    if isinstance(error, dict):
        return any(cast("dict[str, object]", error).values())
    return bool(error)


def _calls(message: MessageBody) -> list[CallBody]:
    """The calls of `tool_calls` (a list, or a single one), or of the older `function_call`."""
    items = _ITEMS.read(message.tool_calls)
    calls: list[CallBody] = []
    for item in [message.tool_calls] if items is None else items:
        call = _CALL.read(item)
        if call is not None:  # some leave the wrapper `function` out
            function = _FUNCTION.read(call.function)
            wrapped = {} if function is None else unknown_fields(call.function, FUNCTION_FIELDS)
            function = function or call
            extra = unknown_fields(item, CALL_FIELDS)
            arguments = _arguments(function.arguments)
            calls.append(CallBody(function.name, arguments, call.id, extra, wrapped))
    older = _FUNCTION.read(message.function_call) if not calls else None
    if older is not None and (older.name or (_arguments(older.arguments) or "").strip()):
        calls.append(CallBody(older.name, _arguments(older.arguments)))
    return calls


def _arguments(raw: msgspec.Raw) -> str | None:
    if raw is _ABSENT:
        return None
    data = bytes(raw)
    if data.startswith(b'"'):
        return _TEXT.decode(data)
    return None if data == b"null" else data.decode()


def _repaired(body: bytes) -> bytes:
    """What some endpoints get wrong: a BOM, broken UTF-8, half surrogates, line ends, NaN."""
    text = replace_all_surrogates(body.decode("utf-8-sig", "replace").strip().lstrip("\ufeff"))
    text = _STRING_OR_WORD.sub(lambda found: found[0] if found[0][0] == '"' else "null", text)
    return escape_controls(text).encode()


def _no_reply(error: Exception, body: bytes) -> NotAReply:
    match error:
        case NotAReply():
            return error
        case RecursionError():
            return NotAReply("the reply is nested too deeply")
        case msgspec.ValidationError():
            return NotAReply("the reply is JSON, but not an object")
        case _:
            return NotAReply(_describe_body(body))


def _describe_body(body: bytes) -> str:
    start = body.strip()[:200].decode("utf-8", "replace")
    if not start:
        return "the reply was empty"
    if start.startswith("<"):
        return f"the reply was a web page, not JSON: {start!r}"
    if start.startswith(("data:", "event:")):
        return f"the reply was a stream, which was not asked for: {start!r}"
    if start.startswith("{"):
        return f"the reply was broken or half a JSON body of {len(body)} bytes: {start!r}"
    return f"the reply was not JSON: {start!r}"
