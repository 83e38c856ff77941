"""The parsers of what a model, an endpoint or a server supplies, each as a function of a text.

Each raises nothing but the errors that it is known for, which are taken for an answer here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from workflow_agent_react.dialects._dialect import JsonDialect, NativeDialect
from workflow_agent_react.dialects._xml_call import XmlFault, read_action
from workflow_agent_react.dialects._xml_dialect import XmlDialect
from workflow_agent_react.dialects._xml_reply import read_reply_text
from workflow_protocol import SchemaMismatch
from workflow_reactor import (
    RESOLVE,
    NotAReply,
    NotOneValue,
    Profile,
    ResultSchema,
    ToolDefinition,
    find_json,
    make_call,
    read_reply,
)
from workflow_reactor._shown_url import without_keys
from workflow_reactor.http._error_body import read_error_body
from workflow_reactor.http._faults import fault_of_status
from workflow_reactor.reply._json_text import escape_controls, looks_cut, replace_all_surrogates
from workflow_reactor.reply._text_calls import calls_in_text
from workflow_reactor.testing import say

TYPED = (NotOneValue, NotAReply, XmlFault, SchemaMismatch)

TOOL = ToolDefinition(
    name="f",
    description="Do it.",
    parameters={"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}},
)
RESULT = ToolDefinition(
    name=RESOLVE,
    description="End it.",
    parameters={"type": "object", "properties": {"value": {"type": "string"}}},
)


Read = Callable[[str], object]


class Parser(NamedTuple):
    """A parser, and the families of worst cases that it knows the signs of."""

    read: Read
    families: tuple[str, ...]


def quietly(read: Callable[[str], object]) -> Callable[[str], object]:
    """The same, with typed errors as an answer."""

    def run(text: str) -> object:
        with contextlib.suppress(*TYPED):
            return read(text)
        return None

    return run


def _body(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read_json(text: str) -> object:
    return JsonDialect([TOOL, RESULT], Profile()).read(read_reply(say(text), Profile()), 0)


def _read_xml(text: str) -> object:
    return XmlDialect([TOOL, RESULT]).read(read_reply(say(text), Profile()), 0)


def _read_native(text: str) -> object:
    return NativeDialect([TOOL, RESULT]).read(read_reply(_arguments(text), Profile()), 0)


def _read_text_calls(text: str) -> object:
    return read_reply(say(text), Profile(text_tool_calls=True), tools=[TOOL])


def _arguments(text: str) -> bytes:
    call = {"id": "x", "function": {"name": "f", "arguments": text}}
    message = {"role": "assistant", "tool_calls": [call]}
    return json.dumps({"choices": [{"message": message, "finish_reason": "length"}]}).encode()


def _called(text: str) -> object:
    return TOOL.receive(make_call("f", text, round=0, index=0, cut=True))


def _parts(text: str) -> object:
    parts = [{"type": "text", "text": text[at : at + 4]} for at in range(0, len(text), 4)]
    body = {"choices": [{"message": {"content": [*parts, {"type": "thinking", "text": parts}]}}]}
    return read_reply(json.dumps(body).encode(), Profile())


def _half(text: str) -> object:
    return read_reply(_body(f'{{"choices":[{{"message":{{"content":"{text}'), Profile())


def _mended(text: str) -> object:
    begin = '\ufeff{"choices":[{"message":{"content":"\n","x":'
    return read_reply(_body(begin + text), Profile())


def _fault(text: str) -> object:
    return fault_of_status(400, {}, _body(text))


def _labels(text: str) -> object:
    body = json.dumps({"error": {"type": text, "code": text, "message": text}}).encode()
    return fault_of_status(400, {}, body), fault_of_status(429, {}, body)


def _finish(text: str) -> object:
    body = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": text}]})
    return read_reply(body.encode(), Profile())


def _waits(text: str) -> object:
    return fault_of_status(429, {"retry-after": text, "date": text}, b"")


def _whole_body(text: str) -> object:
    return read_reply(_body(text), Profile())


def _error_body(text: str) -> object:
    return read_error_body(_body(text))


def _calls(text: str) -> object:
    return calls_in_text(text, None, round=0)


JSON = ("json", "fences", "reasoning")
PARSERS: Mapping[str, Parser] = {
    "find_json": Parser(find_json, JSON),
    "escape_controls": Parser(escape_controls, ("json",)),
    "looks_cut": Parser(looks_cut, ("json",)),
    "replace_all_surrogates": Parser(replace_all_surrogates, ("json",)),
    "make_call": Parser(_called, ("json", "fences")),
    "calls_in_text": Parser(_calls, ("json", "calls", "reasoning")),
    "body": Parser(_whole_body, ("json",)),
    "half body": Parser(_half, ("json",)),
    "mended body": Parser(_mended, ("json",)),
    "parts": Parser(_parts, ("reasoning",)),
    "error body": Parser(_error_body, ("json", "errors")),
    "fault": Parser(_fault, ("errors",)),
    "labels": Parser(_labels, ("errors",)),
    "finish": Parser(_finish, ("errors",)),
    "urls": Parser(without_keys, ("errors",)),
    "retry-after": Parser(_waits, ("json", "errors")),
    "result": Parser(ResultSchema(list[int]).read_text, JSON),
    "native": Parser(_read_native, ("json",)),
    "json dialect": Parser(_read_json, ("fences", "reasoning")),
    "xml dialect": Parser(_read_xml, ("xml",)),
    "text calls": Parser(_read_text_calls, ("calls", "reasoning")),
    "xml reply": Parser(read_reply_text, ("xml", "reasoning")),
    "xml action": Parser(read_action, ("actions",)),
}
