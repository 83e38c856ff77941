"""Starts the server of `odd_server.py`, and calls tools."""

import json
import sys
from pathlib import Path
from typing import Any

from workflow_agent_react import McpServer, Toolset
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import ToolCall

ODD_SERVER = Path(__file__).with_name("odd_server.py")


def odd(plan: dict[str, Any] | None = None, **fields: Any) -> McpServer:
    """A server that misbehaves as planned, under the name `odd`."""
    command = [sys.executable, "-I", "-S", str(ODD_SERVER), json.dumps(plan or {})]
    usual: dict[str, Any] = {"command": command, "name": "odd", "close_timeout_s": 1.0}
    return McpServer(**{**usual, **fields})


def listed(*tools: object, **more: object) -> dict[str, Any]:
    """A plan whose list has these tools."""
    return {"tools/list": [["result", {"tools": list(tools), **more}]]}


def tool(name: str, **fields: object) -> dict[str, object]:
    """A tool as a server lists it."""
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def context() -> ThreadContext:
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start)


async def run(toolset: Toolset, name: str, **arguments: object) -> str:
    made = ToolCall(id="c", name=name, arguments=json.dumps(arguments))
    return await toolset.handler(made, context())
