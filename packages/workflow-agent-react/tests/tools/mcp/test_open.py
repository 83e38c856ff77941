"""Tools of real MCP servers, over standard input and output and over HTTP."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from workflow_agent_react import (
    McpError,
    McpServer,
    ReactAdapterConfig,
    ToolError,
    Toolset,
    create_react_adapter,
    open_mcp,
)
from workflow_protocol import Effect, StartStep, Suspended, ThreadContext, ThreadId
from workflow_reactor import ToolCall
from workflow_reactor.testing import ScriptedLlm, call

from .odd import odd

needs_sdk = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra `mcp`")
needs_server = pytest.mark.skipif(
    find_spec("mcp_server_time") is None, reason="needs the package mcp-server-time"
)
TIME = McpServer(command=[sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"])

SERVER = """
import sys
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shelf")

@server.tool(name="shelf.add", annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> str:
    "Add two numbers."
    return str(a + b)

@server.tool()
def shelf_add(a: int) -> str:
    "Another one."
    return f"other {a}"

@server.tool(annotations=ToolAnnotations(idempotentHint=True))
def fail() -> str:
    "Fail."
    raise ValueError("out of shelves")

@server.tool()
def broken(a: int) -> str:
    "It can't be offered."
    return "never"

server._tool_manager.get_tool("broken").parameters["required"] = "a"
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


def context() -> ThreadContext:
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start)


async def run(toolset: Toolset, name: str, **arguments: object) -> str:
    made = ToolCall(id="c", name=name, arguments=json.dumps(arguments))
    return await toolset.handler(made, context())


@needs_sdk
@needs_server
async def test_a_role_works_with_the_tools_of_a_server_from_the_index() -> None:
    ask = call("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
    llm = ScriptedLlm([ask, call("resolve", value="21:00")])
    with anyio.fail_after(30):
        async with open_mcp(TIME) as tools:
            config = ReactAdapterConfig(llm=llm, toolset=tools)
            assert await create_react_adapter(config)("x", str)(context()) == "21:00"

    assert {tool.effect for tool in tools.tools} == {Effect.UNSAFE}
    result = next(m["content"] for m in llm.requests[1]["messages"] if m["role"] == "tool")
    assert "T21:00:00+09:00" in result


@needs_sdk
@needs_server
async def test_a_tool_that_fails_is_a_tool_error() -> None:
    with anyio.fail_after(30):
        async with open_mcp(TIME) as tools:
            with pytest.raises(ToolError, match="Atlantis"):
                await run(tools, "get_current_time", timezone="Atlantis/Sunk")


@needs_sdk
async def test_an_exception_of_the_block_leaves_it_as_itself() -> None:
    with anyio.fail_after(30), pytest.raises(Suspended, match="wait"):
        async with open_mcp(odd()):
            raise Suspended("wait")
    with anyio.fail_after(30), pytest.raises(LookupError, match="mine") as caught:
        async with open_mcp(odd()):
            raise LookupError("mine") from KeyError("its cause")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[str]:
    """A server on a loopback port, in a process of its own."""
    script = tmp_path / "shelf.py"
    script.write_text(SERVER)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, script, str(port)], stderr=subprocess.DEVNULL) as server:
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


async def answering(url: str) -> None:
    """Wait until something listens: a process tells nobody when it does."""
    port = int(url.split(":")[2].split("/")[0])
    while True:
        try:
            async with await anyio.connect_tcp("127.0.0.1", port):
                return
        except OSError:
            await anyio.sleep(0.05)


@needs_sdk
async def test_a_server_is_used_over_http_and_its_hints_are_believed_if_told_so(
    shelf: str, caplog: pytest.LogCaptureFixture
) -> None:
    with anyio.fail_after(30):
        await answering(shelf)
        async with open_mcp(McpServer(url=shelf, trust_hints=True)) as tools:
            assert {tool.name: tool.effect for tool in tools.tools} == {
                "shelf_add": Effect.READ,
                "shelf_add_2": Effect.UNSAFE,
                "fail": Effect.REPEATABLE,
            }
            assert await run(tools, "shelf_add", a=40, b=2) == "42"
            assert await run(tools, "shelf_add_2", a=40) == "other 40"
            with pytest.raises(ToolError, match="Error executing tool fail"):
                await run(tools, "fail")
    (record,) = (each for each in caplog.records if each.name == "workflow_agent_react")
    assert f"a tool of the MCP server '{shelf}' is left out" in record.getMessage()
    assert "the tool 'broken' can't be used" in record.getMessage()


@needs_sdk
@pytest.mark.parametrize(
    "server",
    [
        McpServer(command=["/nowhere/server"]),
        McpServer(url="http://127.0.0.1:9/mcp"),
        McpServer(command=[sys.executable, "-c", "pass"]),
    ],
)
async def test_a_server_that_is_not_there_says_so(server: McpServer) -> None:
    with anyio.fail_after(30), pytest.raises(McpError, match="can't be used"):
        async with open_mcp(server):
            raise AssertionError("unreachable")


@pytest.mark.skipif(find_spec("mcp") is not None, reason="the extra `mcp` is installed")
async def test_without_the_extra_it_says_what_to_install() -> None:
    with pytest.raises(McpError, match=r"workflow-agent-react\[mcp\]"):
        async with open_mcp(TIME):
            raise AssertionError("unreachable")


@pytest.mark.parametrize("server", [{}, {"command": ["x"], "url": "http://h/"}])
def test_a_server_is_a_command_or_a_url(server: dict[str, str]) -> None:
    with pytest.raises(McpError, match="either `command` or `url`"):
        McpServer(**server)  # type: ignore[arg-type]
