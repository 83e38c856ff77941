"""Endpoints of different abilities, and what is found out about each."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from workflow_reactor import Secret
from workflow_reactor.doctor import Finding, examine, is_broken, profile_changes
from workflow_reactor.testing import Request, Wire, function, http, loopback_server, say


@dataclass
class Endpoint:
    """A server that refuses some features, ignores others, and does the rest well."""

    refuses: frozenset[str] = frozenset()
    ignores: frozenset[str] = frozenset()
    status: int = 400
    seen: list[str] = field(default_factory=list[str])

    def __call__(self, request: Request) -> Any:
        features = self.features(request)
        self.seen += features
        for each in features:
            if each in self.refuses:
                error = {"error": {"message": f"{each} is not supported by sk-loopback"}}
                return Wire(data=http(self.status, json.dumps(error).encode()))
        return self.reply(request, [each for each in features if each not in self.ignores])

    def features(self, request: Request) -> list[str]:
        """The features that a request uses, by names of our own."""
        found = [
            key
            for key in ("max_tokens", "max_completion_tokens", "stop", "temperature")
            if key in request
        ]
        asked = request.get("response_format", {})
        found += [asked["type"]] if asked else []
        schema = asked.get("json_schema", {})
        found += ["strict"] if schema.get("strict") else []
        found += ["union"] if "anyOf" in schema.get("schema", {}) else []
        found += ["refs"] if '"$ref"' in json.dumps(request) else []
        for tool in request.get("tools", ()):
            found.append("tools")
            if tool["function"].get("strict"):
                found.append("tool_strict")
                if tool["function"]["parameters"].get("additionalProperties") is not False:
                    found.append("open_strict")
        choice = request.get("tool_choice")
        found += ["named"] if isinstance(choice, dict) else [choice] if choice else []
        if "parallel_tool_calls" in request:
            found.append(f"parallel_{str(request['parallel_tool_calls']).lower()}")
        messages = request["messages"]
        found += ["system"] if messages[0]["role"] == "system" else []
        calls = [call for each in messages for call in each.get("tool_calls", ())]
        found += ["came_ids"] if any(call["id"].startswith("k") for call in calls) else []
        found += ["own_ids"] if any(call["id"].startswith("c") for call in calls) else []
        found += ["stateless"] if any("extra_content" not in call for call in calls) else []
        found += ["tool_message"] if messages[-1]["role"] == "tool" else []
        found += ["echo"] if any("reasoning_content" in each for each in messages) else []
        found += ["both"] if "Rome" in messages[0]["content"] else []
        return found

    def reply(self, request: Request, features: list[str]) -> bytes:
        """What a good model would say."""
        limit = request.get("max_tokens", request.get("max_completion_tokens"))
        if limit == 8 and {"max_tokens", "max_completion_tokens"} & set(features):
            return say("one two", finish="length", usage=(9, 8))
        if "json_schema" in features:
            return say('{"number": 3}' if "union" in features else '{"colour": "red"}')
        if "json_object" in features:
            return say('{"colour": "blue"}')
        wants_call = "tools" in features and "tool_message" not in features
        wants_call = wants_call and "none" not in features
        if wants_call and "in_text" in self.ignores:
            return say('{"name": "weather", "arguments": {"city": "Paris"}}')
        if wants_call and ("required" in features or "Paris" in json.dumps(request["messages"])):
            name = "time" if "named" in features else "weather"
            count = 2 if "both" in features and "parallel_false" not in features else 1
            if "parallel" in self.ignores and "parallel_true" not in features:
                count = 1
            calls = [function(name, city="Paris", id=f"k{n}") for n in range(count)]
            return say(None, *[{**each, "extra_content": {"signature": "s"}} for each in calls])
        if "system" in features:
            return say("BLUE")
        return say("alpha beta " if "stop" in features else "alpha beta gamma delta", usage=(9, 60))


GOOD: dict[str, Any] = {
    "dialect": "native",
    "response_format": "json_schema",
    "strict_schemas": False,
    "refs": True,
    "union_at_root": True,
    "forced_tool_choice": "named",
    "stop": True,
    "max_tokens_field": "max_tokens",
    "echo_reasoning": True,
}


@pytest.mark.parametrize(
    ("refuses", "ignores", "differs"),
    [
        ("", "", {}),
        ("open_strict", "", {"strict_schemas": True}),
        ("open_strict tool_strict", "", {}),
        ("open_strict union", "", {"strict_schemas": True, "union_at_root": False}),
        ("refs", "", {"refs": False}),
        ("max_tokens", "", {"max_tokens_field": "max_completion_tokens"}),
        ("", "max_tokens", {"max_tokens_field": "max_completion_tokens"}),
        ("stop", "", {"stop": False}),
        ("", "stop", {"stop": False}),
        ("echo", "", {"echo_reasoning": False}),
        ("stateless", "", {}),
        ("came_ids", "", {"echo_call_ids": False}),
        ("own_ids", "", {}),
        ("named", "", {"forced_tool_choice": "required"}),
        ("", "named", {"forced_tool_choice": "required"}),
        ("named required", "", {"forced_tool_choice": "none"}),
        ("", "named required", {"forced_tool_choice": "none"}),
        ("", "parallel", {"parallel_tool_calls": True}),
        (
            "json_schema",
            "",
            {"response_format": "json_object", "union_at_root": None},
        ),
        (
            "json_object",
            "json_schema",
            {"response_format": "none", "union_at_root": None},
        ),
        (
            "tools",
            "",
            {
                "dialect": "json",
                "strict_schemas": False,
                "refs": False,
                "forced_tool_choice": "none",
            },
        ),
        (
            "tools json_schema json_object",
            "",
            {
                "dialect": "xml",
                "response_format": "none",
                "union_at_root": None,
                "refs": False,
                "forced_tool_choice": "none",
            },
        ),
        (
            "",
            "in_text",
            {"dialect": "json", "text_tool_calls": True, "forced_tool_choice": "none"},
        ),
    ],
)
async def test_what_an_endpoint_can_do_is_found_out(
    refuses: str, ignores: str, differs: dict[str, Any]
) -> None:
    endpoint = Endpoint(frozenset(refuses.split()), frozenset(ignores.split()))
    async with loopback_server([endpoint] * 40) as server:
        provider = server.provider()
        findings = await examine(provider)

    assert not is_broken(findings)
    expected = {name: value for name, value in {**GOOD, **differs}.items() if value is not None}
    assert profile_changes(findings) == expected
    provider.with_profile(**expected)
    assert len({each.probe for each in findings}) == len(findings) == 30
    assert not any("sk-loopback" in each.words for each in findings)


async def test_each_request_is_small_and_bounded() -> None:
    heard: list[Finding] = []
    async with loopback_server([Endpoint()] * 40) as server:
        findings = await examine(server.provider(max_attempts=5), on_finding=heard.append)

    assert heard == findings
    assert len(server.bodies) == 25
    for body in server.bodies:
        request = json.loads(body)
        assert request.get("max_tokens", request.get("max_completion_tokens")) <= 256
        assert len(body) < 2_000


def broken(status: int, message: str) -> Callable[[Request], Any]:
    body = json.dumps({"error": {"message": message}}).encode()
    return lambda request: Wire(data=http(status, body))


@pytest.mark.parametrize(
    ("reply", "answer", "words"),
    [
        (broken(401, "bad key sk-loopback"), "no", "refused: the provider answered 401: bad key …"),
        (broken(404, "no such model"), "no", "refused: the provider answered 404: no such model"),
        (broken(429, "slow down"), "unclear", "the provider answered 429: slow down"),
        (Wire(data=http(200, b"<html>")), "unclear", "the reply was a web page"),
        (Wire(then="reset"), "unclear", "e"),  # its words depend on where the reset is noticed
        (Wire(then="stall"), "unclear", "no reply within 0.2 s"),
    ],
    ids=["key", "model", "busy", "page", "reset", "stall"],
)
async def test_an_endpoint_that_does_not_reply_is_the_only_finding(
    reply: Any, answer: str, words: str
) -> None:
    async with loopback_server([reply] * 3) as server:
        timeout_s = 0.2 if words.endswith("0.2 s") else 30
        findings = await examine(server.provider(), timeout_s=timeout_s)

    assert is_broken(findings)
    (finding,) = findings
    assert (finding.probe, finding.answer) == ("chat", answer)
    assert words in finding.words
    assert "sk-loopback" not in finding.words
    assert profile_changes(findings) == {}


async def test_a_busy_moment_leaves_a_question_open() -> None:
    endpoint = Endpoint()
    count = 0

    def busy_at_times(request: Request) -> Any:
        nonlocal count
        count += 1
        if "stop" in request or "reasoning_content" in json.dumps(request):
            return Wire(data=http(503, b"overloaded"))
        return endpoint(request)

    async with loopback_server([busy_at_times] * 40) as server:
        findings = await examine(server.provider(api_key=Secret("")))

    changes = profile_changes(findings)
    assert changes == {k: v for k, v in GOOD.items() if k not in {"stop", "echo_reasoning"}}
    assert [each.probe for each in findings if each.answer == "unclear"] == [
        "stop",
        "reasoning_echo",
    ]
