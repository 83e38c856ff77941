"""What only sockets do. The table of faults over HTTP is in tests/conformance."""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from workflow_protocol import Event
from workflow_reactor import (
    LlmProvider,
    ProviderConfigError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    Secret,
    create_llm_fn,
    open_llm,
    user,
)
from workflow_reactor.testing import Reply, Wire, http, loopback_server, say

MESSAGES = [user("Hi")]
KEY = "sk-very-secret"


def provider(port: int, **settings: Any) -> LlmProvider:
    defaults: dict[str, Any] = {
        "base_url": f"http://127.0.0.1:{port}/v1",
        "model": "m",
        "api_key": Secret(KEY),
        "max_attempts": 1,
    }
    return LlmProvider(**{**defaults, **settings})


@pytest.mark.parametrize("bytes_before", [b"", http(200)[:9]])
async def test_a_kept_alive_connection_that_the_server_closed_is_replaced_at_once(
    bytes_before: bytes,
) -> None:
    noted: list[Event] = []

    async def note(event: Event) -> None:
        noted.append(event)

    replies: list[Reply | Wire] = [say("one"), Wire(data=bytes_before, then="close"), say("two")]
    async with (
        loopback_server(replies) as server,
        open_llm(create_llm_fn(server.provider()), note) as llm,
    ):
        assert (await llm(MESSAGES)).text == "one"
        assert (await llm(MESSAGES)).text == "two"

    assert (server.connections, noted) == (2, [])


async def test_a_connection_closed_after_its_reply_is_no_fault_either() -> None:
    replies: list[Reply | Wire] = [
        Wire(data=http(200, say("one")), then="close"),
        Wire(data=http(200, say("two"), {"connection": "close"}), then="close"),
        say("three"),
    ]
    async with (
        loopback_server(replies) as server,
        open_llm(create_llm_fn(server.provider())) as llm,
    ):
        texts = [(await llm(MESSAGES)).text for _ in range(3)]

    assert texts == ["one", "two", "three"]


async def test_a_server_that_breaks_off_each_time_is_a_fault_in_the_end() -> None:
    replies: list[Reply | Wire] = [say("one"), *[Wire(then="reset")] * 2]
    async with (
        loopback_server(replies) as server,
        open_llm(create_llm_fn(server.provider())) as llm,
    ):
        await llm(MESSAGES)
        with pytest.raises(ProviderUnavailable):
            await llm(MESSAGES)

    assert len(server.bodies) == 3


async def test_tls_to_a_plain_port_says_so_and_is_not_retried() -> None:
    async with loopback_server([]) as server:
        secure = provider(server.port, base_url=f"https://127.0.0.1:{server.port}", max_attempts=5)
        with pytest.raises(ProviderRefused, match="does not speak TLS on this port"):
            await create_llm_fn(secure)(MESSAGES)


@asynccontextmanager
async def full_backlog() -> AsyncGenerator[int]:
    """A port where connecting neither succeeds nor fails."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        yield address[1]
        for each in waiting:
            each.close()


async def test_cancelling_acts_at_once_while_connecting() -> None:
    async with full_backlog() as port:
        with anyio.fail_after(5):
            with anyio.move_on_after(0.1) as scope:
                await create_llm_fn(provider(port))(MESSAGES)

    assert scope.cancelled_caught


async def test_a_connection_that_never_comes_about_is_given_up() -> None:
    async with full_backlog() as port:
        with anyio.fail_after(5), pytest.raises(ProviderUnavailable, match=r"within 0\.2 s"):
            await create_llm_fn(provider(port, timeout_s=0.2))(MESSAGES)


@pytest.mark.parametrize("data", [b"", http(200, say("x"))[:10], http(200, say("x"))[:-3]])
async def test_cancelling_acts_at_once_while_reading(data: bytes) -> None:
    async with loopback_server([Wire(data=data, then="stall")]) as server:
        with anyio.fail_after(5), anyio.move_on_after(0.1) as scope:
            await create_llm_fn(server.provider())(MESSAGES)

    assert scope.cancelled_caught


async def test_a_reply_in_many_pieces_is_one_reply() -> None:
    async with loopback_server([Wire(data=http(200, say("x")), drip_s=1e-6)]) as server:
        assert (await create_llm_fn(server.provider())(MESSAGES)).text == "x"


def secrets_in(error: BaseException) -> list[str]:
    """Everything that can be printed of an error and of those that it came from."""
    found: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        found += [str(seen), repr(seen), repr(seen.args), repr(vars(seen))]
        seen = seen.__cause__ or seen.__context__
    return [text for text in found if KEY in text]


@pytest.mark.parametrize(
    "reply",
    [
        Wire(data=http(401, f'{{"error": {{"message": "no {KEY}", "type": "{KEY}"}}}}'.encode())),
        Wire(data=http(400, f"plain {KEY}".encode())),
        Wire(data=http(500, f'{{"error": "no {KEY}"}}'.encode())),
        Wire(data=http(301, b"", {"location": f"http://h/{KEY}"})),
        Wire(data=f"HTTP/1.1 {KEY}\r\n\r\n".encode(), then="close"),
        Wire(data=http(200, f"<html>{KEY}".encode())),
        Wire(data=http(200, f'{{"error": "{KEY}"}}'.encode())),
    ],
)
async def test_no_error_holds_the_key(reply: Wire) -> None:
    noted: list[str] = []

    async def note(event: Event) -> None:
        noted.append(repr(event))

    async with loopback_server([reply, reply]) as server:
        base_url = f"http://127.0.0.1:{server.port}/v1?key={KEY}"
        for url in (base_url, f"http://127.0.0.1:{server.port}/v1"):
            llm = create_llm_fn(provider(server.port, base_url=url))
            with pytest.raises(ProviderError) as raised:
                async with llm.session(note) as session:
                    await session(MESSAGES)
            assert secrets_in(raised.value) == []
    assert KEY not in "".join(noted)


def closed_client() -> httpx.AsyncClient:
    client = httpx.AsyncClient()
    anyio.run(client.aclose)
    return client


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: create_llm_fn(provider(1), client=closed_client()), "is closed"),
        (lambda: create_llm_fn(provider(1, base_url="http://h\u200b.test/v1")), "be seen"),
    ],
)
def test_settings_that_can_not_work_are_typed_errors(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ProviderConfigError, match=words):
        anyio.run(make(), MESSAGES)


async def test_a_host_that_has_no_address_form_is_refused() -> None:
    strange = provider(1, base_url=f"http://{'a' * 70}.test/v1")

    with pytest.raises(ProviderError):
        await create_llm_fn(strange)(MESSAGES)


async def test_a_proxy_that_can_not_be_used_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "gopher://127.0.0.1:1")

    with pytest.raises(ProviderConfigError, match="the proxy for http://"):
        await create_llm_fn(provider(1, base_url="http://h.test/v1"))(MESSAGES)


async def test_the_callers_client_is_asked_not_to_follow_nor_to_read_without_bound() -> None:
    replies: list[Reply | Wire] = [
        Wire(data=http(307, b"", {"location": "/v2"})),
        Wire(data=http(200, b" " * 9_000)),
    ]
    async with (
        loopback_server(replies) as server,
        httpx.AsyncClient(follow_redirects=True) as client,
    ):
        llm = create_llm_fn(server.provider(max_reply_bytes=1000), client=client)
        with pytest.raises(ProviderRefused, match="a redirect"):
            await llm(MESSAGES)
        with pytest.raises(ProviderRefused, match="larger than"):
            await llm(MESSAGES)
