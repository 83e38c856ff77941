"""Fuzz targets for what comes from models and endpoints, and for the schemas of tools."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

from workflow_agent_react.dialects._choice import choose_dialect
from workflow_reactor import NotAReply, NotOneValue, Profile, find_json, read_reply, user
from workflow_reactor.http._error_body import read_error_body
from workflow_reactor.http._faults import fault_of_error, fault_of_status
from workflow_reactor.testing import history_faults

from .parsers import PARSERS, RESULT, TOOL, quietly
from .tool_schemas import (
    DIALECTS,
    as_parameters,
    exercise,
    random_schema,
    random_value,
    reply,
    suite,
)
from .worst_cases import UNITS

_SIGNS = [sign for family in UNITS.values() for sign in family]
_KEYS = (
    *("role", "content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "text"),
    *("tool_calls", "function_call", "function", "name", "arguments", "id", "type", "thinking"),
    *("choices", "message", "finish_reason", "error", "usage", "prompt_tokens", "code", "cost"),
    *("completion_tokens", "tool_use", "input", "index", "status", "detail", "metadata", "raw"),
    *("prompt_tokens_details", "signature", "extra", "self", "tools"),
)
_DEEP = "something deep"
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 1e300, 0.1, "", "f", "stop", "length", "tool_use", "thinking"),
    *("text", "{}", '{"a": 1}', '{"a": ', "\ud800", "\x00", "1" * 5000, [], {}, 429, "503", "\n"),
)


def replies(rng: random.Random) -> None:
    """Any body is a reply whose message can go back, or `NotAReply`; any error body is sorted."""
    text = json.dumps(_body(rng)).replace(json.dumps(_DEEP), _nested(rng))
    body = _damaged(rng, text.encode())
    headers = {"retry-after": _text(rng, 5), "date": _text(rng, 5)}
    fault_of_status(rng.choice([301, 400, 429, 500]), headers, body)
    read_error_body(body)
    profile = Profile(
        text_tool_calls=rng.random() < 0.5,
        echo_reasoning=rng.random() < 0.5,
        max_tokens=rng.choice([None, 1]),
    )
    try:
        found = read_reply(body, profile, tools=rng.choice([None, [], [TOOL]]))
    except NotAReply as error:
        fault_of_error(error.error, headers)
        return
    for call in found.tool_calls:
        if not isinstance(json.loads(call.arguments), dict):
            raise AssertionError(f"arguments that are no object: {call}")
        TOOL.receive(call)
    found.text.encode()
    json.loads(found.message.json)


def texts(rng: random.Random) -> None:
    """No parser raises anything but its own errors, and what `find_json` finds can be decoded."""
    text = _text(rng, rng.choice([3, 30, 300]))
    for parser in PARSERS.values():
        quietly(parser.read)(text)
    with suppress(NotOneValue):
        json.loads(find_json(text))


def dialects(rng: random.Random) -> None:
    """Each dialect reads any text, and the history that comes of it is one that endpoints take."""
    for name in DIALECTS:
        dialect = choose_dialect(name, Profile(), [TOOL, RESULT], task="t")
        messages: list[dict[str, Any]] = []
        for round in range(3):
            body = reply(_text(rng, rng.choice([5, 50])), finish=rng.choice(["stop", "length"]))
            turn = dialect.read(read_reply(body, Profile(), round=round), round)
            for call in turn.calls:
                if not isinstance(json.loads(call.arguments), dict):
                    raise AssertionError(f"arguments that are no object: {call}")
                TOOL.receive(call)
            shown = dialect.show([(call, _text(rng, 5)) for call in turn.calls])
            if not turn.calls:  # as the loop does
                shown = [user(turn.problem)]
            messages += [message.data for message in (turn.message, *shown)]
        if faults := history_faults({"messages": [{"role": "user", "content": "x"}, *messages]}):
            raise AssertionError(f"{name}: {faults}")


def schemas(rng: random.Random) -> None:
    """A tool of any schema is refused when it is made, or works in every dialect."""
    schema, values = rng.choice(suite())
    if rng.random() < 0.7:
        schema, values = random_schema(rng), [random_value(rng) for _ in range(3)]
    for parameters in as_parameters(schema):
        exercise(parameters, rng.sample(values, k=min(2, len(values))))


def _text(rng: random.Random, most: int) -> str:
    return "".join(rng.choices(_SIGNS, k=rng.randint(0, most)))


def _body(rng: random.Random) -> Any:
    message = {"role": "assistant", **_fields(rng, 3)}
    choice = {"message": message, "finish_reason": rng.choice(["stop", "length", None, 1])}
    body = {"choices": [choice], "usage": _any(rng, 2)}
    return body if rng.random() < 0.9 else _any(rng, 5)


def _fields(rng: random.Random, levels: int) -> dict[str, Any]:
    return {key: _any(rng, levels) for key in rng.choices(_KEYS, k=rng.randint(0, 6))}


def _any(rng: random.Random, levels: int) -> Any:
    if not levels or rng.random() < 0.3:
        return rng.choice(_VALUES) if rng.random() < 0.8 else _text(rng, 5)
    if rng.random() < 0.4:
        return [_any(rng, levels - 1) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.02:
        return _DEEP
    return _fields(rng, levels - 1)


def _nested(rng: random.Random) -> str:
    levels = rng.choice([90, 250, 900, 50_000])
    begin, end = rng.choice([("[", "]"), ('{"type":"thinking","thinking":[', "]}"), ('{"a":', "}")])
    return f"{begin * levels}1{end * levels}"


def _damaged(rng: random.Random, body: bytes) -> bytes:
    if rng.random() < 0.6:
        return body
    data = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                del data[at:]
            case 1:
                data[at : at + 1] = rng.randbytes(1)
            case 2:
                data[at:at] = rng.choice(_SIGNS).encode("utf-8", "surrogatepass")
            case _:
                del data[at : at + 3]
    return bytes(data)
