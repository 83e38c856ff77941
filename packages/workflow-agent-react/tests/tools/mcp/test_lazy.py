"""Servers that a role opens: from workflow.yaml, kept over rounds and roles, closed with a run."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_agent_react import (
    McpError,
    ReactAdapterConfig,
    ToolClash,
    Toolset,
    create_react_adapter,
    mcp_toolset,
    tool,
)
from workflow_cas import open_store
from workflow_execute import Engine, Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor import LlmFn
from workflow_reactor.testing import ScriptedLlm, call
from workflow_register import ConfigError

from .odd import ODD_SERVER, context, listed, odd
from .odd import tool as listed_tool

pytest.importorskip("mcp")

FIRST = RoleDefinition(name="first", description="F.", system_prompt="Go.", schema=str)
SECOND = RoleDefinition(name="second", description="S.", system_prompt="On.", schema=str)
DEFINITION = WorkflowDefinition(
    description="Two roles.",
    table={
        START: FIRST,
        FIRST: SECOND,
        SECOND: END,
    },
)


@tool(effect=Effect.READ)
async def add() -> str:
    """Add here."""
    return "added here"


def workflow(llm: LlmFn, home: Path) -> Workflow:
    """As an entry script makes it at import."""
    tools: list[Any] = [add, mcp_toolset("git", home=home)]
    config = ReactAdapterConfig(llm=llm, toolset=tools)
    return create_workflow(DEFINITION, AdapterBinding(create_react_adapter(config)))


def configure(home: Path, plan: dict[str, Any], more: str = "") -> None:
    command = json.dumps([sys.executable, "-I", "-S", str(ODD_SERVER), json.dumps(plan)])
    home.mkdir(exist_ok=True)
    text = f"mcp:\n  git:\n    command: {command}\n    close_timeout_s: 1\n{more}"
    (home / "workflow.yaml").write_text(text, encoding="utf-8")


async def test_a_server_is_opened_once_for_all_roles_of_a_run_and_closed_with_it(
    tmp_path: Path,
) -> None:
    starts = str(tmp_path / "starts")
    hello = {"protocolVersion": "2025-11-25", "instructions": "Be quick."}
    plan = {
        "initialize": [["note", starts], ["result", hello]],
        "call:add": [["count", 0]],
        "end": [["touch", str(tmp_path / "ended")]],
    }
    llm = ScriptedLlm(
        [
            *(call("git_add"), call("git_add"), call("resolve", value="one")),
            *(call("git_add"), call("add"), call("resolve", value="two")),
        ]
    )
    made = workflow(llm, tmp_path / "home")  # nothing is configured yet
    configure(tmp_path / "home", plan)
    with anyio.fail_after(10):
        async with open_store(tmp_path / "s.db") as store:
            engine = Engine(store)
            result = await engine.start(made, "p", workspace=tmp_path)
            assert result.state == "completed", result.summary
            assert await anyio.Path(tmp_path, "ended").exists()
            assert len((await anyio.Path(starts).read_text()).splitlines()) == 1
            shown = [each["messages"][-1]["content"] for each in llm.requests]
            assert [shown[1], shown[2], shown[4], shown[5]] == ["1", "2", "3", "added here"]
            names = [each["function"]["name"] for each in llm.requests[0]["tools"]]
            assert names == ["add", "git_add", "read_result", "resolve"]
            assert (
                "## About the tools of git\n\nBe quick."
                in llm.requests[3]["messages"][0]["content"]
            )

            configure(tmp_path / "home", {"start": [["die", 1]]})
            await engine.replay(made, result.thread_id)  # by the record: no server is started


async def test_only_without_and_renamed_choose_from_what_is_opened_later() -> None:
    plan = listed(*map(listed_tool, "abc")) | {"call:b": [["echo", 0]]}
    tools = mcp_toolset(odd(plan)).only("a", "b").without("a").renamed({"b": "bee"})
    llm = ScriptedLlm([call("bee"), call("resolve", value="x")])
    with anyio.fail_after(5):
        config = ReactAdapterConfig(llm=llm, toolset=tools)
        assert await create_react_adapter(config)("p", str)(context()) == "x"
        assert '"name": "b"' in llm.requests[1]["messages"][-1]["content"]
        wrong = ReactAdapterConfig(llm=llm, toolset=mcp_toolset(odd(plan)).only("d"))
        with pytest.raises(ToolClash, match="'d': there is no such tool; the tools are a, b, c"):
            await create_react_adapter(wrong)("p", str)(context())


async def test_a_source_of_ones_own_is_opened_for_each_turn() -> None:
    events: list[str] = []

    class Source:
        @asynccontextmanager
        async def open(self, ctx: ThreadContext, key: str) -> AsyncGenerator[Toolset]:
            events.append(f"open {key}")
            yield Toolset.combine(add)
            events.append("close")

    llm = ScriptedLlm([call("add"), call("resolve", value="x")] * 2)
    role = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=Source()))("p", str)
    assert [await role(context()), await role(context())] == ["x", "x"]
    assert events == ["open tools/0", "close"] * 2


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("", McpError, "has no server of this name; it has: none"),
        ("mcp: {other: {command: [x]}}", McpError, "it has: other"),
        ("mcp: {git: {}}", ConfigError, "mcp.git: give either `command"),
        ("mcp: {git: {command: [x], url: 'http://h/'}}", ConfigError, "give either `command"),
        ("mcp: {git: {url: 'h:80'}}", ConfigError, "mcp.git.url: should be an http"),
        ("mcp: {git: {comand: [x]}}", ConfigError, "mcp.git.comand: unknown key; did you mean"),
        ("mcp: {git: {command: x y}}", ConfigError, "mcp.git.command: "),
        ("mcp: {git: {command: [x], headers: {A: b}}}", ConfigError, "doesn't go with"),
        ("mcp: {git: {url: 'http://h', timeout_s: 0}}", ConfigError, "mcp.git.timeout_s"),
        ("mcp: {git: {url: 'http://h', headers: {A: '${a b}'}}}", ConfigError, "a reference looks"),
        ("mcp: {'a b': {url: 'http://h'}}", ConfigError, "a server's name has letters"),
    ],
)
async def test_a_server_that_is_not_configured_right_is_named(
    tmp_path: Path, text: str, error: type[Exception], reason: str
) -> None:
    (tmp_path / "workflow.yaml").write_text(text, encoding="utf-8")
    config = ReactAdapterConfig(llm=ScriptedLlm([]), toolset=mcp_toolset("git", home=tmp_path))
    with anyio.fail_after(5), pytest.raises(error, match=reason):
        await create_react_adapter(config)("p", str)(context())


def test_it_shows_which_server_it_is() -> None:
    assert repr(mcp_toolset("git")) == "mcp_toolset('git')"
    assert "odd_server.py" in repr(mcp_toolset(odd()))
