import json
from typing import Any

import anyio
import anyio.abc
import httpx
import pytest

from workflow_protocol import DirectJournal, Event, ModelReplied, Retrying, RoundStarted
from workflow_reactor import (
    LlmProvider,
    Profile,
    ProviderConfigError,
    ProviderRefused,
    ProviderUnavailable,
    RequestOptions,
    Secret,
    ToolDefinition,
    ask_model,
    create_llm_fn,
    open_llm,
    response_format,
    system,
    user,
)
from workflow_reactor.testing import ScriptedLlm, ScriptExhausted, call, loopback_server, say

ADD = ToolDefinition(name="add", description="Add.", parameters={"type": "object"})
MESSAGES = [system("Be brief."), user("Hi \ud800")]


def provider(**changes: Any) -> LlmProvider:
    settings: dict[str, Any] = {
        "base_url": "http://host.test/v1/",
        "model": "m",
        "api_key": Secret("sk-secret"),
    }
    return LlmProvider(**{**settings, **changes})


def client(*replies: httpx.Response | Exception) -> tuple[httpx.AsyncClient, list[httpx.Request]]:
    """A client that gives these replies in turn, and the requests that it got."""
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        reply = replies[min(len(requests), len(replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    return httpx.AsyncClient(transport=httpx.MockTransport(handle)), requests


async def test_a_request_holds_model_tools_messages_and_options_in_that_order() -> None:
    http, requests = client(httpx.Response(200, content=say("ok")))
    profile = Profile(max_tokens=9, max_tokens_field="max_completion_tokens")
    llm = create_llm_fn(provider(extra_body={"temperature": 0}, profile=profile), client=http)

    reply = await llm(MESSAGES, [ADD], RequestOptions(tool_choice="add", stop=("</a>",)))

    assert reply.text == "ok"
    assert str(requests[0].url) == "http://host.test/v1/chat/completions"
    assert requests[0].headers["authorization"] == "Bearer sk-secret"
    body = json.loads(requests[0].content)
    assert list(body.items()) == [
        ("model", "m"),
        ("temperature", 0),
        ("stream", False),
        ("tools", [{"type": "function", "function": {
            "name": "add", "description": "Add.", "parameters": {"type": "object"}}}]),
        ("messages", [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi \ufffd"},
        ]),
        ("tool_choice", {"type": "function", "function": {"name": "add"}}),
        ("stop", ["</a>"]),
        ("max_completion_tokens", 9),
    ]  # fmt: skip


async def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter_one() -> None:
    http, requests = client(httpx.Response(200, content=say("ok")))
    llm = create_llm_fn(provider(), client=http)
    messages = list(MESSAGES)

    for _ in range(3):
        reply = await llm(messages, [ADD], RequestOptions(tool_choice="auto"))
        messages += [reply.message, user("more")]

    bodies = [request.content.partition(b'],"tool_choice"')[0] for request in requests]
    assert bodies[1].startswith(bodies[0])
    assert bodies[2].startswith(bodies[1])


async def test_options_that_an_endpoint_lacks_are_left_out() -> None:
    http, requests = client(httpx.Response(200, content=say("ok")))
    llm = create_llm_fn(provider(profile=Profile(forced_tool_choice="none")), client=http)

    await llm(MESSAGES, [ADD], RequestOptions(tool_choice="add"))
    await llm(MESSAGES, [], RequestOptions(tool_choice="auto"))

    assert [list(json.loads(r.content)) for r in requests] == [
        ["model", "stream", "tools", "messages"],
        ["model", "stream", "messages"],
    ]
    schema = {"type": "object"}
    assert response_format(schema, Profile()) == {
        "type": "json_schema", "json_schema": {"name": "reply", "schema": schema},
    }  # fmt: skip
    assert response_format(schema, Profile(response_format="json_object")) == {
        "type": "json_object"
    }
    assert response_format(schema, Profile(response_format="none")) is None


@pytest.mark.parametrize(
    "fault",
    [
        httpx.Response(503, json={"error": {"message": "busy"}}),
        httpx.Response(200, json={"error": {"message": "upstream failed", "code": 502}}),
        httpx.Response(200, text="<html>gateway</html>"),
        httpx.Response(200, text=""),
        httpx.ConnectError("refused"),
        httpx.ReadError(""),
        httpx.DecodingError("bad gzip"),
    ],
)
async def test_a_fault_that_passes_is_retried_and_noted(fault: httpx.Response | Exception) -> None:
    http, requests = client(fault, httpx.Response(200, content=say("ok")))
    noted: list[Event] = []

    async def note(event: Event) -> None:
        noted.append(event)

    async with create_llm_fn(provider(), client=http).session(note) as llm:
        reply = await llm(MESSAGES)

    assert reply.text == "ok"
    assert len(requests) == 2
    (event,) = noted
    assert isinstance(event, Retrying)
    assert event.attempt == 1


async def test_a_fault_that_stays_is_not_retried_and_quotes_the_provider() -> None:
    http, requests = client(httpx.Response(401, json={"error": {"message": "bad key sk-secret"}}))

    with pytest.raises(ProviderRefused) as error:
        await create_llm_fn(provider(), client=http)(MESSAGES)

    assert len(requests) == 1
    assert error.value.status == 401
    assert "bad key" in error.value.provider_message
    assert "check the API key" in str(error.value)
    assert "sk-secret" not in str(error.value) + error.value.provider_message


async def test_tries_end_with_an_error_that_says_where_and_how_often() -> None:
    http, requests = client(httpx.ConnectError("refused"))

    with pytest.raises(ProviderUnavailable, match=r"'m' at http://host.test/v1/ failed after 2"):
        await create_llm_fn(provider(max_attempts=2), client=http)(MESSAGES)

    assert len(requests) == 2


async def test_a_wish_to_wait_beyond_the_cap_ends_at_once_and_is_kept() -> None:
    http, requests = client(httpx.Response(429, headers={"retry-after": "7200"}))

    with pytest.raises(ProviderUnavailable) as error:
        await create_llm_fn(provider(), client=http)(MESSAGES)

    assert error.value.retry_after_s == 7200
    assert len(requests) == 1


async def test_cancelling_acts_at_once_during_a_wait() -> None:
    http, _ = client(httpx.Response(429, headers={"retry-after": "30"}))

    with anyio.fail_after(5), anyio.move_on_after(0.05) as scope:
        await create_llm_fn(provider(), client=http)(MESSAGES)

    assert scope.cancelled_caught


async def test_a_server_that_stalls_is_given_up_after_the_time_limit() -> None:
    async def stall(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
            await anyio.sleep_forever()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    slow = provider(base_url=f"http://127.0.0.1:{port}/v1", timeout_s=0.2, max_attempts=1)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, stall)
        with anyio.fail_after(5), pytest.raises(ProviderUnavailable, match=r"within 0\.2 s"):
            await create_llm_fn(slow)(MESSAGES)
        tasks.cancel_scope.cancel()


async def test_a_dead_port_says_that_the_server_may_not_run() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    await listener.aclose()
    dead = provider(base_url=f"http://127.0.0.1:{port}/v1", max_attempts=1)

    with pytest.raises(ProviderUnavailable, match="is the server running"):
        await create_llm_fn(dead)(MESSAGES)


async def test_a_session_keeps_its_connection_and_ends_with_its_block() -> None:
    async with loopback_server([say("one"), say("two")]) as server:
        source = create_llm_fn(server.provider())
        async with open_llm(source) as llm:
            first = await llm(MESSAGES, round=0)
            second = await llm([*MESSAGES, first.message], round=1)

    assert (first.text, second.text) == ("one", "two")
    assert server.connections == 1
    assert server.requests[1]["messages"][-1] == {"role": "assistant", "content": "one"}


async def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback_server([say("by proxy")]) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        reply = await create_llm_fn(provider(base_url="http://model.test/v1"))(MESSAGES)
    assert reply.text == "by proxy"

    async with loopback_server([say("direct")]) as server:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert (await create_llm_fn(server.provider())(MESSAGES)).text == "direct"


async def test_asking_through_a_journal_tells_observers() -> None:
    noted: list[Event] = []

    class Listening(DirectJournal):
        async def note(self, event: Event) -> None:
            noted.append(event)

    reply = await ask_model(
        ScriptedLlm([say("hello")]), Listening(), MESSAGES, round=0, max_rounds=4
    )

    assert reply.text == "hello"
    assert noted[0] == RoundStarted(
        key="llm/0", round=0, max_rounds=4, model="scripted", provider="scripted"
    )
    assert isinstance(noted[1], ModelReplied)
    assert (noted[1].text, noted[1].usage) == ("hello", reply.usage)


async def test_a_script_that_ran_out_is_an_error() -> None:
    llm = ScriptedLlm([lambda request: say(str(len(request["messages"])))])

    assert (await llm(MESSAGES)).text == "2"
    with pytest.raises(ScriptExhausted, match="request 2 came"):
        await llm(MESSAGES)
    async with loopback_server([call("add")]) as server:
        llm = create_llm_fn(server.provider())
        assert (await llm(MESSAGES, [ADD])).tool_calls[0].name == "add"
        with pytest.raises(ProviderUnavailable, match="the script has 1 replies"):
            await llm(MESSAGES)


def test_settings_that_can_not_work_are_refused() -> None:
    with pytest.raises(ProviderConfigError, match="should be an http"):
        provider(base_url="host/v1")
    with pytest.raises(ProviderConfigError, match="should be an http"):
        provider(base_url="http://[::1/v1")
    with pytest.raises(ProviderConfigError, match="no model is named"):
        provider(model="")
    with pytest.raises(ProviderConfigError, match="no header can carry") as error:
        provider(api_key=Secret("sk-secret\n"))
    assert "sk-secret" not in str(error.value)


async def test_without_a_key_no_authorization_is_sent() -> None:
    http, requests = client(httpx.Response(200, content=say("ok")))

    await create_llm_fn(provider(api_key=Secret("")), client=http)(MESSAGES)

    assert "authorization" not in requests[0].headers


async def test_a_request_that_can_not_be_sent_is_not_retried() -> None:
    http, requests = client(httpx.UnsupportedProtocol("gopher"))

    with pytest.raises(ProviderRefused, match="can't be sent: gopher"):
        await create_llm_fn(provider(), client=http)(MESSAGES)
    assert len(requests) == 1


def test_the_key_shows_nowhere() -> None:
    assert "sk-secret" not in repr(provider())
    assert provider().api_key == Secret("sk-secret")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert repr(Secret("")) == "Secret('')"
    assert provider().with_profile(dialect="json").profile.dialect == "json"


async def test_a_key_can_be_looked_up_by_the_first_request_and_once() -> None:
    asked: list[str] = []

    def find() -> str:
        asked.append("key")
        return "sk-found"

    secret = Secret(find)
    http, requests = client(httpx.Response(200, content=say("ok")))
    llm = create_llm_fn(provider(api_key=secret), client=http)
    async with open_llm(llm) as opened:
        assert opened.profile == llm.profile
        _ = opened.frame((), RequestOptions())
        assert (asked, secret.is_known, repr(secret)) == ([], False, "Secret('…')")
        await opened(MESSAGES)
        await opened(MESSAGES)

    assert [request.headers["authorization"] for request in requests] == ["Bearer sk-found"] * 2
    assert (asked, secret.is_known, secret == Secret(find)) == (["key"], True, True)
    assert "sk-found" not in repr(secret)


async def test_a_key_that_is_found_and_can_not_be_sent_is_a_typed_error() -> None:
    http, requests = client()

    with pytest.raises(ProviderConfigError, match="no header can carry") as error:
        await create_llm_fn(provider(api_key=Secret(lambda: "sk-secret\n")), client=http)(MESSAGES)
    assert "sk-secret" not in str(error.value)
    assert requests == []
