"""Odd texts for the one-shot LLM adapter, one a line, each good or mended by the second reply."""

# ruff: noqa: E501 - an entry is a line, however long

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from workflow_reactor import MaxRoundsExceeded, Profile
from workflow_reactor.testing import function, say


@dataclass
class Note:
    answer: int
    note: str


OTHER = '{"answer": 1, "note": "not the one"}'
GOOD = '{"answer": 42, "note": "n"}'


class Text(NamedTuple):
    """One text, the number of requests that it takes to 42, and what the model was told."""

    id: str
    reply: str | bytes
    requests: int = 1
    told: str = ""
    profile: Profile = Profile()


def parts(*items: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": items}}]}).encode()


TEXTS = [
    Text("plain", GOOD),
    Text("fenced", f"```json\n{GOOD}\n```"),
    Text("fence-open", f"```json\n{GOOD}"),
    Text("fence-inside-string", '```json\n{"answer": 42, "note": "uses ``` inside"}\n```'),
    Text("fence-in-prose", f"Sure! Here it is:\n```\n{GOOD}\n```\nAnything else?"),
    Text("prose", f"The result is {GOOD}, I think."),
    Text("braces-in-prose", f"With {{braces}} and [brackets]: {GOOD}"),
    Text("thought", f'<think>{{"answer": 1}}</think>{GOOD}'),
    Text("thought-end-only", f'so {{"answer": 1}}\n</think>\n{GOOD}'),
    Text("thought-upper-case-tag-in-string", '{"answer": 42, "note": "<think>kept</think>"}'),
    Text("twice-the-same", f"{GOOD}\n{GOOD}"),
    Text("bom", "\ufeff" + GOOD),
    Text("blank-lines", f"\n\n {GOOD} \n"),
    Text("lone-surrogate", say("@").replace(b"@", rb'{\"answer\": 42, \"note\": \"\\ud800\"}')),
    Text("content-parts", parts({"type": "text", "text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]})),
    Text("content-thinking-part", parts({"type": "thinking", "thinking": "{}"}, {"type": "text", "text": GOOD})),
    Text("reasoning-beside", say(GOOD, reasoning_content='{"answer": 1}')),
    Text("no-response-format", GOOD, profile=Profile(response_format="none")),
    Text("two-different", '{"answer": 1, "note": "a"} {"answer": 42, "note": "b"}', 2, "2 different JSON values"),
    Text("words", "I don't know.", 2, "no JSON value"),
    Text("empty", say(None), 2, "no JSON value"),
    Text("refusal", say(None, refusal="I won't."), 2, "no JSON value"),
    Text("refusal-beside-a-value", say(OTHER, refusal="I won't."), 2, "content filter, or is a refusal"),
    Text("whole-but-length", say(OTHER, finish="length"), 2, "cut off at the output limit"),
    Text("whole-but-filtered", say(OTHER, finish="content_filter"), 2, "content filter"),
    Text("whole-but-error", say(OTHER, finish="error"), 2, "broke off with an error"),
    Text("whole-but-safety", say(OTHER, finish="SAFETY"), 2, "content filter"),
    Text("thought-only", f"<think>{GOOD}</think>", 2, "no JSON value"),
    Text("cut", say('{"answer": 4', finish="length"), 2, "cut off at the output limit"),
    Text("broken", '{"answer": 42, "note": }', 2, "broken or incomplete"),
    Text("key-twice", '{"answer": 1, "answer": 42, "note": "n"}', 2, "stands twice"),
    Text("array", "[42]", 2, "object"),
    Text("wrong-type", '{"answer": "x", "note": "n"}', 2, "$.answer"),
    Text("key-missing", '{"answer": 42}', 2, "note"),
    Text("deep", "[" * 5000 + "]" * 5000, 2, "not one JSON value"),
    Text("native-call-uninvited", say(None, function("resolve", GOOD)), 2, "answer"),
    Text("text-call-uninvited", '{"name": "resolve", "arguments": {}}', 2, "answer", Profile(text_tool_calls=True)),
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=[text.id for text in TEXTS])
async def test_a_value_comes_out(text: Text, run_llm: Callable[..., Awaitable[Any]]) -> None:
    reply = text.reply if isinstance(text.reply, bytes) else say(text.reply)
    run = await run_llm([reply, say(GOOD)], schema=Note, profile=text.profile)

    assert run.error is None
    assert run.value.answer == 42
    assert len(run.requests) == text.requests
    assert text.requests == 1 or text.told in run.told()


async def test_a_model_that_never_complies_ends_in_a_typed_error(
    run_llm: Callable[..., Awaitable[Any]],
) -> None:
    run = await run_llm([say("no"), say("still no")], schema=Note)

    assert isinstance(run.error, MaxRoundsExceeded)
    assert len(run.error.messages) == 6
