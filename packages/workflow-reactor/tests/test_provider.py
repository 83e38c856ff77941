"""Base URLs with a query, headers, hidden values, and the profile that a host has."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import (
    LlmProvider,
    Profile,
    ProviderConfigError,
    ProviderError,
    Secret,
    create_llm_fn,
    profile_for,
    user,
)
from workflow_reactor.doctor import examine
from workflow_reactor.http._faults import without_secrets
from workflow_reactor.testing import say

KEY = "sk-0123456789abcdef"


def provider(**settings: Any) -> LlmProvider:
    given: dict[str, Any] = {"base_url": "https://host.test/v1", "model": "m", **settings}
    return LlmProvider(**given)


async def ask(made: LlmProvider, reply: httpx.Response | None = None) -> httpx.Request:
    """What the provider is sent."""
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return reply or httpx.Response(200, content=say("ok"))

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    await create_llm_fn(made, client=client)([user("hi")])
    return seen[0]


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://h.test/v1", "https://h.test/v1/chat/completions"),
        ("https://h.test/v1/", "https://h.test/v1/chat/completions"),
        ("https://h.test", "https://h.test/chat/completions"),
        ("https://h.test/d?api-version=1", "https://h.test/d/chat/completions?api-version=1"),
        ("https://h.test/d/?a=1&b=x%2Fy", "https://h.test/d/chat/completions?a=1&b=x%2Fy"),
        ("https://h.test?key=a/b?c", "https://h.test/chat/completions?key=a/b?c"),
    ],
)
async def test_the_path_is_joined_before_the_query(base_url: str, url: str) -> None:
    assert str((await ask(provider(base_url=base_url))).url) == url


async def test_an_error_shows_where_without_the_values_of_the_query() -> None:
    made = provider(base_url=f"https://h.test/d?api-version=2024&key={KEY}", max_attempts=1)

    with pytest.raises(ProviderError) as raised:
        await ask(made, httpx.Response(404))
    assert "https://h.test/d?api-version=…&key=…" in str(raised.value)
    assert KEY not in str(raised.value)
    assert "2024" not in str(raised.value)


async def test_headers_go_with_each_request_and_replace_those_of_the_same_name() -> None:
    headers = {"api-key": Secret(lambda: KEY), "X-Team": "a b", "User-Agent": "mine"}
    request = await ask(provider(headers=headers, api_key=Secret("other-key-1")))

    assert request.headers["api-key"] == KEY
    assert request.headers["x-team"] == "a b"
    assert request.headers.get_list("user-agent") == ["mine"]
    assert request.headers["authorization"] == "Bearer other-key-1"
    own = await ask(provider(headers={"Authorization": "Basic abc"}, api_key=Secret("k")))
    assert own.headers.get_list("authorization") == ["Basic abc"]


@pytest.mark.parametrize(
    "header", [Secret(KEY), Secret(f"Bearer {KEY}"), Secret(lambda: KEY), f"Bearer {KEY}", KEY]
)
async def test_the_value_of_a_header_shows_nowhere(header: Any) -> None:
    made = provider(headers={"api-key": header}, max_attempts=1)

    assert KEY not in repr(made)
    for body in (f"bad {KEY}", f"bad {KEY[:-4]}", "x" * 1_990 + KEY, f"Bearer {KEY}!"):
        with pytest.raises(ProviderError) as raised:
            await ask(made, httpx.Response(403, text=body))
        shown = f"{raised.value!r} {vars(raised.value)}"
        assert KEY[:8] not in shown


async def test_the_doctor_shows_no_value_of_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(401, json={"error": {"message": f"no {request.headers['api-key']}"}})

    client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    monkeypatch.setattr(httpx, "AsyncClient", lambda: client)
    (finding,) = await examine(provider(headers={"api-key": Secret(KEY)}))

    assert "no …" in finding.words
    assert KEY not in finding.words


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"a b": "x"}, "'a b' is no name for a header"),
        ({"": "x"}, "'' is no name"),
        ({"a": "x\r\ny: z"}, "no header can carry"),
        ({"a": "ü"}, "no header can carry"),
        ({"a": Secret("")}, "is empty"),
        ({"Content-Length": "1"}, "part of sending"),
        ({"host": "x"}, "part of sending"),
        ({"Expect": "100-continue"}, "part of sending"),
        ({"a": 1}, "'a' is of type int; use a string or a Secret"),
        ({"a": None}, "'a' is of type NoneType"),
        ({"a": "1", "A": "2"}, "'a' is set twice"),
    ],
)
def test_headers_that_can_not_be_sent_are_refused(headers: Any, words: str) -> None:
    with pytest.raises(ProviderConfigError, match=words):
        provider(headers=headers)


def test_a_provider_has_the_profile_of_its_host() -> None:
    for base_url, model in [
        ("https://api.openai.com/v1", "gpt-5"),
        ("https://api.mistral.ai/v1", "small"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3"),
        ("https://api.groq.com/openai/v1?x=1", "llama"),
        ("http://localhost:11434/v1", "qwen"),
        ("https://host.test/v1", "m"),
    ]:
        made = LlmProvider(base_url=base_url, model=model)
        assert made.profile == profile_for(base_url, model)
    assert not LlmProvider(base_url="https://api.mistral.ai/v1", model="m").profile.echo_reasoning
    given = LlmProvider(base_url="https://api.mistral.ai/v1", model="m", profile=Profile())
    assert given.profile.echo_reasoning
    assert not given.with_profile(stop=False).profile.stop


def test_a_key_in_the_query_is_a_secret_and_other_values_are_not() -> None:
    made = provider(base_url="https://h/v1?api-version=2024-10-21&subscription-key=a%2Fbcdefgh")

    assert "a/bcdefgh" in made.secrets()
    assert "a%2Fbcdefgh" in made.secrets()
    assert "2024-10-21" not in made.secrets()


@pytest.mark.parametrize("key", ["local", "a", "sk-1234", "model"])
def test_a_short_key_is_cut_out_of_no_word(key: str) -> None:
    words = "the local model at localhost can't handle a sk-12345678"

    assert without_secrets(words, [key]) == words


@given(
    st.from_regex(r"[!-~]{8,40}", fullmatch=True),
    st.text("abc (x)'", max_size=20),
    st.text("abc (x)'", max_size=20),
)
def test_a_long_key_is_taken_out_wherever_it_stands(key: str, before: str, after: str) -> None:
    assert key not in without_secrets(f"{before}{key}{after}{key}", [key])
    assert key[:8] not in without_secrets(f"{before}{key[:-1]}", [key]) or len(key) == 8
