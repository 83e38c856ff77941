import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import Usage
from workflow_reactor import (
    AssistantMessage,
    NotAReply,
    Profile,
    ToolDefinition,
    read_reply,
    tool_result,
    user,
)
from workflow_reactor.reply._json_text import replace_all_surrogates
from workflow_reactor.testing import function, history_faults, say


def read(body: bytes, **profile: Any) -> AssistantMessage:
    return read_reply(body, Profile(**profile), round=2)


def with_arguments(arguments: object, **reply: Any) -> AssistantMessage:
    item = {"id": "k1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    return read(say(None, item, **reply))


def test_a_plain_reply_is_text_with_usage() -> None:
    reply = read(say("Hello.", usage=(7, 3)))

    assert (reply.text, reply.tool_calls, reply.finish) == ("Hello.", (), "stop")
    assert reply.usage == Usage(input_tokens=7, output_tokens=3, calls=1)
    assert reply.message.data == {"role": "assistant", "content": "Hello."}


def test_a_call_keeps_the_providers_id_and_gets_one_of_ours_where_that_comes_again() -> None:
    reply = read(say(None, function("a", x=1, id="same"), function("b", id="same")))

    assert [call.id for call in reply.tool_calls] == ["same", "c00002001"]
    assert [call.provider_id for call in reply.tool_calls] == ["same", "same"]
    assert reply.message.call_ids == ("same", "c00002001")
    assert reply.message.data["tool_calls"][0] == {
        "id": "same",
        "type": "function",
        "function": {"name": "a", "arguments": '{"x": 1}'},
    }
    assert reply.message.data["content"] is None


@pytest.mark.parametrize("arguments", ["", None, "  \n", "{}", {}])
def test_absent_arguments_are_an_empty_object(arguments: object) -> None:
    (call,) = with_arguments(arguments).tool_calls

    assert (call.arguments, call.fault) == ("{}", "")


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": 40, "b": 2},
        '{"a": 40, "b": 2}',
        '```json\n{"a": 40, "b": 2}\n```',
        'so: {"a":40,"b":2}',
    ],
)
def test_an_object_is_accepted_in_each_of_its_forms(arguments: object) -> None:
    reply = with_arguments(arguments)
    (call,) = reply.tool_calls

    assert call.fault == ""
    assert json.loads(call.arguments) == {"a": 40, "b": 2}
    sent_back = reply.message.data["tool_calls"][0]["function"]["arguments"]
    assert isinstance(sent_back, str)
    assert json.loads(sent_back) == {"a": 40, "b": 2}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("[40,2]", "must be a JSON object, not an array"),
        ('"40"', "must be a JSON object, not a string"),
        ("42", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not true or false"),
        ("null", "must be a JSON object, not null"),
        ([1], "must be a JSON object, not an array"),
        (7, "must be a JSON object, not a number"),
        ('{"a":40,"b":2}{"a":1,"b":1}', "more after the first JSON value"),
        ('{"a":40,"a":41}', "the key 'a' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"path": "a.txt", "text": "line one\\nli', "cut off at the output limit"),
        ('{"path": "a.txt", "text": "line one\nli', "cut off at the output limit"),
        ('{"path": "a.txt", ', "cut off at the output limit"),
        ("{'a': 1}", "not one valid JSON object"),
        ("word", "not one valid JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_unreadable_arguments_say_what_is_wrong_and_never_become_the_call(
    arguments: object, fault: str
) -> None:
    reply = with_arguments(arguments)
    (call,) = reply.tool_calls

    assert fault in call.fault
    assert call.arguments == "{}"
    assert reply.message.data["tool_calls"][0]["function"]["arguments"] == "{}"
    assert call.raw_arguments


def test_a_line_end_inside_a_string_is_mended() -> None:
    (call,) = with_arguments('{"text": "one\ntwo"}').tool_calls

    assert (call.fault, json.loads(call.arguments)) == ("", {"text": "one\ntwo"})


def test_a_reply_that_used_its_whole_limit_was_cut_whatever_its_label() -> None:
    item = function("add", '{"text": "abc"} and')
    reply = read_reply(say(None, item, usage=(1, 5)), Profile(max_tokens=5))

    assert reply.finish == "length"
    assert "cut off" in reply.tool_calls[0].fault


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b", 3], "ab"),
        ({"odd": 1}, ""),
        ("lone \ud800 half", "lone \ufffd half"),
    ],
)
def test_content_of_any_shape_is_text(content: Any, text: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
    reply = read(body)

    assert reply.text == text
    assert reply.usage == Usage(calls=1, unknown_calls=1)
    assert reply.finish == "other"
    assert reply.message.data == {"role": "assistant", "content": text or "(empty)"}


@pytest.mark.parametrize("calls", [None, [], "x", [None, 3]])
def test_calls_that_are_none_are_no_calls(calls: object) -> None:
    body = {"choices": [{"message": {"content": "t", "tool_calls": calls}}]}

    assert read(json.dumps(body).encode()).tool_calls == ()


def test_calls_without_the_function_wrapper_or_a_name_are_still_calls() -> None:
    flat: Any = {"name": "add", "arguments": {"a": 1}}
    nameless: Any = {"id": 3, "function": {}}
    body = {"choices": [{"message": {"tool_calls": [flat, nameless]}}]}

    first, second = read(json.dumps(body).encode()).tool_calls
    assert (first.name, first.arguments) == ("add", '{"a": 1}')
    assert (second.name, second.arguments, second.provider_id) == ("", "{}", "")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("", "other"),
        ("error", "error"),
        ("abort", "error"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("insufficient_system_resource", "error"),
        ("network_error", "error"),
        ("cancelled", "error"),
        ("incomplete", "error"),
        ("SAFETY", "refused"),
        ("RECITATION", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("guardrail_intervened", "refused"),
        ("content_filtered", "refused"),
        ("sensitive", "refused"),
        ("refusal", "refused"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("truncated", "length"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("eos_token", "stop"),
        ("stop_sequence", "stop"),
        ("COMPLETE", "stop"),
        ("tool_use", "tool_calls"),
        ("function_call", "tool_calls"),
        ("whatever", "other"),
        (None, "other"),
        (3, "other"),
        ("max_tokens", "length"),
        ("content_filter", "refused"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_finish_reasons_known_and_unknown(reason: object, finish: str) -> None:
    body = {"choices": [{"message": {"content": "t"}, "finish_reason": reason}]}

    assert read(json.dumps(body).encode()).finish == finish


@pytest.mark.parametrize("where", ["top", "choice"])
@pytest.mark.parametrize("error", [{"message": "upstream broke", "code": 502}, "upstream broke"])
def test_half_a_text_beside_an_error_is_the_error(where: str, error: Any) -> None:
    choice: Any = {"message": {"content": "half a te"}, "finish_reason": "error"}
    body: Any = {"choices": [choice]}
    (body if where == "top" else choice)["error"] = error

    with pytest.raises(NotAReply) as raised:
        read(json.dumps(body).encode())
    assert raised.value.error == error


@pytest.mark.parametrize("error", [None, {}, "", {"code": None, "message": ""}, False])
def test_an_empty_error_beside_a_reply_is_none(error: Any) -> None:
    body = {"choices": [{"message": {"content": "t"}, "error": error}], "error": error}

    assert read(json.dumps(body).encode()).text == "t"


def test_a_refusal_is_its_text() -> None:
    reply = read(say(None, refusal="I won't."))

    assert (reply.text, reply.finish) == ("I won't.", "refused")


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_its_own_key_unless_the_profile_says_no(key: str) -> None:
    extra: dict[str, Any] = {key: "because"}
    body = say("t", **extra)

    assert read(body).reasoning == "because"
    assert read(body).message.data[key] == "because"
    assert key not in read(body, echo_reasoning=False).message.data


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "add", "arguments": {"a": 1}}',
        '```json\n{"name": "add", "arguments": {"a": 1}}\n```',
        'Let me.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
        '{"name": "add", "parameters": "{\\"a\\": 1}"}',
    ],
)
def test_a_call_in_the_text_is_found_when_the_profile_allows_it(text: str) -> None:
    (call,) = read(say(text), text_tool_calls=True).tool_calls

    assert (call.name, json.loads(call.arguments)) == ("add", {"a": 1})
    assert read(say(text)).tool_calls == ()


@pytest.mark.parametrize("text", ["no call", "[1]", '{"name": 3}', '{"name": "a"}'])
def test_text_that_is_no_call_stays_text(text: str) -> None:
    reply = read(say(text), text_tool_calls=True)

    assert (reply.tool_calls, reply.text) == ((), text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"<html>gateway</html>", "a web page"),
        (b"oops", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": [3]}', "no choices"),
        (b'{"choices": null, "error": {"message": "m"}}', "an error under status 200"),
        (b'{"choices": [{"error": {"message": "m"}}]}', "an error under status 200"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 100_000, "not an object"),
        (b'{"choices": [{"mess', "broken or half a JSON body of 19 bytes"),
        (b'data: {"choices": []}\n\n', "a stream, which was not asked for"),
    ],
)
def test_a_body_that_is_no_reply_is_told_apart(body: bytes, message: str) -> None:
    with pytest.raises(NotAReply, match=message):
        read(body)


def test_blank_lines_before_the_body_are_skipped() -> None:
    assert read(b"\n\n   " + say("t")).text == "t"


def test_cached_tokens_are_counted() -> None:
    body = json.loads(say("t"))
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 8}

    assert read(json.dumps(body).encode()).usage.cached_tokens == 8


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "content": json_values,
        "refusal": json_values,
        "reasoning_content": json_values,
        "tool_calls": json_values
        | st.lists(
            st.fixed_dictionaries(
                {"function": st.fixed_dictionaries({"name": json_values, "arguments": json_values})}
            )
        ),
    },
)
replies = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({"message": messages, "finish_reason": json_values})
        )
    },
    optional={"usage": json_values, "error": json_values},
)


TOOLS = [ToolDefinition(name="add", description="", parameters={"type": "object"})]


def check_what_goes_back(reply: AssistantMessage) -> None:
    results = [tool_result(call, "") for call in reply.tool_calls]
    request = {
        "messages": [message.data for message in (user("u"), reply.message, *results)],
        "tools": [msgspec.json.decode(tool.json) for tool in TOOLS],
    }
    assert history_faults(request) == []


@given(
    st.one_of(json_values, replies),
    st.booleans(),
    st.sampled_from([None, (), TOOLS]),
)
def test_any_json_is_a_reply_or_not_one_and_what_is_sent_back_is_valid(
    value: object, text_calls: bool, tools: list[ToolDefinition] | None
) -> None:
    body = json.dumps(value).encode()
    profile = Profile(text_tool_calls=text_calls)
    with contextlib.suppress(NotAReply):
        reply = read_reply(body, profile, tools=tools)

        check_what_goes_back(reply)
        assert read_reply(body, profile, tools=tools) == reply
        assert tools != () or not reply.tool_calls
        assert all(call.arguments == "{}" for call in reply.tool_calls if call.fault)
        msgspec.json.encode([reply.text, reply.reasoning, reply.usage])


spoilt = st.tuples(st.integers(0, 400), st.binary(max_size=4), st.integers(0, 4))


@given(st.lists(spoilt, min_size=1, max_size=3), st.booleans())
def test_a_spoilt_body_is_a_reply_or_not_one(
    places: list[tuple[int, bytes, int]], text_calls: bool
) -> None:
    body = say("t", function("add", '{"a": "\\u00e9\\ud83d\\ude00"}'), reasoning="because")
    for start, data, gone in places:
        body = body[:start] + data + body[start + gone :]
    with contextlib.suppress(NotAReply):
        check_what_goes_back(read(body, text_tool_calls=text_calls))


@given(st.binary())
def test_any_bytes_are_a_reply_or_not_one(body: bytes) -> None:
    with contextlib.suppress(NotAReply):
        read(body)


words = st.sampled_from([
    *'{}[],"\n',
    *("<tool_call>", "</tool_call>", "```json\n", "<think>", "</think>", "prose", "\\ud800"),
    *('{"name": "add", "arguments": ', '{"name": "add"}', '{"a": 1}'),
])  # fmt: skip


@given(st.lists(words, max_size=10).map("".join))
def test_any_text_is_text_or_calls(text: str) -> None:
    reply = read_reply(say(text), Profile(text_tool_calls=True), tools=TOOLS)

    check_what_goes_back(reply)
    assert reply.text == replace_all_surrogates(text)


def test_native_calls_that_were_not_invited_are_text() -> None:
    body = say(None, function("add", a=1), function("b", "[1]"))
    reply = read_reply(body, Profile(), tools=())

    assert reply.tool_calls == ()
    assert reply.text == (
        '{"name":"add","arguments":"{\\"a\\": 1}"}\n{"name":"b","arguments":"[1]"}'
    )
    assert read_reply(say("t", function("add")), Profile(), tools=()).text == "t"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2}, (3, 4, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_cache_hit_tokens": 1}, (3, 4, 1)),
        ({"prompt_tokens": 3}, None),
        ({"prompt_tokens": -1, "completion_tokens": 4}, None),
        ({"prompt_tokens": True, "completion_tokens": 4}, None),
        ({"prompt_tokens": 3.5, "completion_tokens": 4}, None),
    ],
)
def test_usage_is_known_or_unknown_and_never_guessed(
    usage: Any, counted: tuple[int, int, int] | None
) -> None:
    data = json.loads(say("t"))
    found = read(json.dumps({**data, "usage": usage}).encode()).usage

    if counted is None:
        assert found == Usage(calls=1, unknown_calls=1)
    else:
        tokens_in, tokens_out, cached = counted
        assert found == Usage(
            input_tokens=tokens_in, output_tokens=tokens_out, cached_tokens=cached, calls=1
        )


@pytest.mark.parametrize(
    ("cost", "micros"),
    [
        (0.00014, 140),
        (1, 1_000_000),
        (0, 0),
        (0.0000001, 1),
        (1.1, 1_100_000),
        *[(other, None) for other in (None, "0.1", True, -0.1, [1], {"usd": 1}, 1e300)],
    ],
)
def test_the_provider_s_own_cost_is_taken_where_it_is_a_number(
    cost: object, micros: int | None
) -> None:
    data = json.loads(say("t"))
    tokens = {"prompt_tokens": 3, "completion_tokens": 4}
    known = read(json.dumps({**data, "usage": {**tokens, "cost": cost}}).encode()).usage
    unknown = read(json.dumps({**data, "usage": {"cost": cost}}).encode()).usage

    assert known == Usage(input_tokens=3, output_tokens=4, calls=1, cost_micros=micros)
    assert unknown == Usage(calls=1, unknown_calls=1, cost_micros=micros)
