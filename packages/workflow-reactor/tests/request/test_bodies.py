"""What a request asks for, as far as the endpoint's profile allows it."""

import json
from typing import Any

import pytest

from workflow_reactor import Framer, Profile, RequestOptions, ResultSchema, ToolDefinition, user

TOOLS = (ToolDefinition(name="look", description="", parameters={"type": "object"}),)
BY_NAME = {"type": "function", "function": {"name": "look"}}


def sent(profile: Profile, options: RequestOptions, tools: Any = TOOLS) -> dict[str, Any]:
    body = json.loads(Framer("m", profile).frame(tools, options).body([user("hi")]))
    assert body.pop("messages") == [{"role": "user", "content": "hi"}]
    assert body.pop("model") == "m"
    assert body.pop("stream") is False
    body.pop("tools", None)
    return body


@pytest.mark.parametrize(
    ("forced", "asked", "choice"),
    [
        ("named", "auto", "auto"),
        ("named", "none", "none"),
        ("named", "required", "required"),
        ("named", "look", BY_NAME),
        ("required", "auto", "auto"),
        ("required", "required", "required"),
        ("required", "look", "required"),
        ("none", "auto", "auto"),
        ("none", "none", "none"),
        ("none", "required", None),
        ("none", "look", None),
    ],
)
def test_a_call_is_forced_as_strongly_as_the_endpoint_can(
    forced: Any, asked: str, choice: object
) -> None:
    profile = Profile(forced_tool_choice=forced)
    options = RequestOptions(tool_choice=asked)

    expected = {} if choice is None else {"tool_choice": choice}
    assert sent(profile, options) == expected
    assert sent(profile, options, tools=()) == {}


def test_what_an_endpoint_lacks_is_left_out() -> None:
    options = RequestOptions(stop=("END",), tool_choice="auto")

    assert sent(Profile(), options) == {"tool_choice": "auto", "stop": ["END"]}
    assert sent(Profile(stop=False), options) == {"tool_choice": "auto"}
    assert sent(Profile(parallel_tool_calls=False, stop=False), options) == {
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    assert sent(Profile(parallel_tool_calls=True), RequestOptions(), tools=()) == {}
    limited = Profile(max_tokens=9, max_tokens_field="max_completion_tokens")
    assert sent(limited, RequestOptions()) == {"max_completion_tokens": 9}


def test_tools_go_out_in_the_form_that_the_endpoint_takes() -> None:
    tools = (ResultSchema(int).tool(),)

    def parameters(profile: Profile) -> Any:
        body = Framer("m", profile).frame(tools, RequestOptions()).body([])
        return json.loads(body)["tools"][0]["function"]

    assert "strict" not in parameters(Profile())
    assert parameters(Profile(strict_schemas=True))["strict"] is True
