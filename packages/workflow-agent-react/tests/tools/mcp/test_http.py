"""Servers behind a URL: their faults are answers to the one request that met them."""

import gzip
import logging
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import anyio
import anyio.to_thread
import pytest

from workflow_agent_react import McpError, McpServer, ToolError, open_mcp
from workflow_reactor import Secret

from .odd import run
from .odd_http import DONE, OddHttp, as_event, half, reply, reset, result, serving

pytest.importorskip("mcp")

Step = Callable[[BaseHTTPRequestHandler, Any], None]


@pytest.fixture
def web() -> Iterator[OddHttp]:
    with serving() as server:
        yield server


def at(web: OddHttp, **fields: Any) -> McpServer:
    usual: dict[str, Any] = {"url": web.url, "name": "web"}
    return McpServer(**{**usual, **fields})


def hang(web: OddHttp) -> Step:
    def step(handler: BaseHTTPRequestHandler, message: Any) -> None:
        web.released.wait(10)

    return step


def compressed(status: int, coding: str) -> Step:
    """A few kB that stand for many MB."""
    data = gzip.compress(b" " * 50_000_000)
    return reply(status, data, "application/json", content_encoding=coding)


UNKNOWN = "The outcome is unknown: add may have been carried out"
FAULTS: list[tuple[Callable[[OddHttp], Step], str, bool]] = [
    (lambda web: reset, "ReadError", True),
    (lambda web: half("application/json"), "its answer broke off (RemoteProtocolError", True),
    (lambda web: half("text/event-stream"), "its answer broke off (SSE stream ended", True),
    (hang, "it didn't answer within 0.3 s", True),
    (lambda web: reply(500, b"out of memory", "text/plain"), "HTTP 500: out of memory", True),
    (lambda web: reply(502, b"<html>", "text/html"), "HTTP 502: <html>", True),
    (lambda web: reply(401, b'{"error": "bad token"}'), 'HTTP 401: {"error": "bad token"}', False),
    (lambda web: reply(429, b""), "HTTP 429", False),
    (lambda web: reply(200, b"<html>", "text/html"), "no JSON-RPC message: '<html>'", True),
    (lambda web: reply(200, b"{", "application/json"), "no JSON-RPC message: '{'", True),
    (lambda web: reply(202, b""), "HTTP 202", True),
    (lambda web: reply(302, b"", location="http://h/"), "Redirect to http://h/", False),
    (lambda web: compressed(200, "gzip"), "its answer is compressed (gzip)", True),
    (lambda web: compressed(200, "gzip, gzip"), "its answer is compressed (gzip, gzip)", True),
    (lambda web: compressed(500, "br"), "its answer is compressed (br)", True),
]


@pytest.mark.parametrize(("step", "words", "unknown"), FAULTS)
async def test_a_fault_fails_its_call_alone_and_the_next_one_works(
    web: OddHttp,
    step: Callable[[OddHttp], Step],
    words: str,
    unknown: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    web.plan["tools/call"] = [step(web)]
    with anyio.fail_after(10):
        async with open_mcp(at(web, timeout_s=0.3 if "0.3" in words else 5)) as tools:
            with pytest.raises(ToolError) as caught:
                await run(tools, "add")
            assert await run(tools, "add") == "done well"
    told = str(caught.value)
    assert told.startswith("the MCP server 'web' gave no result of add: ")
    assert words in told
    assert (UNKNOWN in told) == unknown
    assert not [each for each in caplog.records if each.exc_info]


async def test_a_fault_of_one_call_leaves_others_alone(web: OddHttp) -> None:
    web.plan["tools/call"] = [hang_until_released(web), reset]

    async def slow(tools: Any) -> None:
        assert await run(tools, "add") == "done well"

    with anyio.fail_after(10):
        async with open_mcp(at(web)) as tools, anyio.create_task_group() as group:
            group.start_soon(slow, tools)
            await anyio.to_thread.run_sync(web.called.wait, 5)
            with pytest.raises(ToolError, match="ReadError"):
                await run(tools, "add")
            web.released.set()


def hang_until_released(web: OddHttp) -> Step:
    def step(handler: BaseHTTPRequestHandler, message: Any) -> None:
        web.released.wait(10)
        reply(200, result(message, DONE))(handler, message)

    return step


@pytest.mark.parametrize("status", [404, 400])
async def test_a_session_that_the_server_forgot_is_begun_anew(web: OddHttp, status: int) -> None:
    body = b'{"error": "no such session"}' if status == 400 else b""
    web.plan["tools/call"] = [reply(status, body)]
    with anyio.fail_after(10):
        async with open_mcp(at(web)) as tools:
            assert await run(tools, "add") == "done well"
    assert web.methods.count("initialize") == 2


async def test_a_stopped_server_is_reached_again_when_it_is_back() -> None:
    with serving() as web:
        server = at(web)
        async with open_mcp(server) as tools:
            assert await run(tools, "add") == "done well"
            web.plan["tools/call"] = [reset, reset]
            for _ in range(2):
                with pytest.raises(ToolError, match="ReadError"):
                    await run(tools, "add")
            assert await run(tools, "add") == "done well"


@pytest.mark.parametrize("value", [DONE, {"content": None}, [1], None])
async def test_results_are_read_tolerantly_from_events_and_bodies(
    web: OddHttp, value: object
) -> None:
    web.plan["tools/call"] = [
        as_event(value),
        lambda handler, message: reply(200, result(message, value))(handler, message),
    ]
    with anyio.fail_after(10):
        async with open_mcp(at(web)) as tools:
            by_event = await run(tools, "add")
            assert by_event == await run(tools, "add")
    assert by_event.startswith("done" if value != [1] else "[1]\n(The call was carried out")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (reset, "ReadError"),
        (reply(401, b"who are you?", "text/plain"), "HTTP 401: who are you?"),
        (reply(405, b""), "HTTP 405; if this is a server of the older HTTP\\+SSE transport"),
        (reply(404, b"nothing here", "text/plain"), "HTTP 404: nothing here; if this is"),
    ],
)
async def test_a_server_that_refuses_says_its_status(web: OddHttp, step: Step, reason: str) -> None:
    web.plan["initialize"] = [step]
    with anyio.fail_after(10), pytest.raises(McpError, match=reason):
        async with open_mcp(at(web)):
            raise AssertionError("unreachable")


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_a_server_that_never_answers_has_limits(web: OddHttp, method: str) -> None:
    web.plan[method] = [hang(web)]
    limits = {"start_timeout_s": 0.5} if method == "initialize" else {"list_timeout_s": 0.3}
    with anyio.fail_after(10), pytest.raises(McpError, match=r"within 0\.[35] s"):
        async with open_mcp(at(web, **limits)):
            raise AssertionError("unreachable")


async def test_headers_are_sent_and_never_shown(
    web: OddHttp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_TOKEN", "sk-variable")
    body = b"Bearer sk-variable and sk-secret and sk-query are wrong"
    web.plan["tools/call"] = [reply(403, body, "text/plain")]
    server = McpServer(
        url=f"{web.url}?api_key=sk-query",
        headers={"Authorization": "Bearer ${MY_TOKEN}", "X-Key": Secret("sk-secret")},
    )
    with caplog.at_level(logging.DEBUG, "workflow_agent_react"), anyio.fail_after(10):
        async with open_mcp(server) as tools:
            with pytest.raises(ToolError) as caught:
                await run(tools, "add")
    for headers in web.headers:
        assert headers["authorization"] == "Bearer sk-variable"
        assert headers["x-key"] == "sk-secret"
    ours = [each.getMessage() for each in caplog.records if each.name == "workflow_agent_react"]
    shown = f"{server!r} {server.place} {caught.value} {ours}"
    assert "HTTP 403: … and … and … are wrong" in shown
    assert "sk-" not in shown


async def test_a_session_is_ended_when_the_block_ends(web: OddHttp) -> None:
    with anyio.fail_after(10):
        async with open_mcp(at(web)):
            pass
    assert web.methods[-1] == "DELETE"
