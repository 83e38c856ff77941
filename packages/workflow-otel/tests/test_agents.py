"""Agents of the command line: their run is a model call, with their own tool calls below it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workflow_agent_cli import create_cli_agent
from workflow_cas import MemoryStore
from workflow_execute import Engine
from workflow_reactor.testing import ScriptedLlm, call
from workflow_util_agent import agent_to_adapter

from .traced import Traced, one_role

AGENT = r"""#!%s
import json

def line(kind, *blocks):
    print(json.dumps({"type": kind, "session_id": "s", "message": {"content": list(blocks)}}))

def use(id, name):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}

line("assistant", use("a", "Bash"), use("b", "Read"))
line("user", {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": True})
line("user", {"type": "tool_result", "tool_use_id": "b", "content": "y"})
usage = {"input_tokens": 100, "output_tokens": 9}
print(json.dumps({"type": "result", "subtype": "success", "result": "done", "usage": usage,
    "session_id": "s", "is_error": False}))
"""


async def test_the_calls_of_an_agent_lie_side_by_side_below_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "claude"
    agent.write_text(AGENT % sys.executable, encoding="utf-8")
    agent.chmod(0o755)
    traced = Traced()
    adapter = agent_to_adapter(
        create_cli_agent("claude", executable=str(agent)),
        ScriptedLlm([call("resolve", value=1)]),
    )

    result = await Engine(MemoryStore(), observer=traced.observer).start(
        one_role(adapter), "p", workspace=tmp_path
    )

    assert result.state == "completed", result.error
    ((_, ((_, calls),)),) = traced.tree()
    assert calls == [
        ("chat claude", ["execute_tool Bash", "execute_tool Read"]),
        "chat scripted",
    ]
    assert traced.tokens() == {"input": 110, "output": 14}
