"""A real MCP server on standard input and output that misbehaves as its argument says.

The argument is a JSON object from a method, or `call:TOOL`, to what the server does then: steps of
[what, value], performed in order. Without an entry it answers as it should.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any, cast

TOOL: dict[str, Any] = {
    "name": "add",
    "description": "Add.",
    "inputSchema": {"type": "object", "properties": {}},
}
USUAL: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "odd", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "call": {"content": [{"type": "text", "text": "done well"}]},
}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(message: dict[str, Any], result: object) -> None:
    say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))


def perform(step: list[Any], message: dict[str, Any], calls: int) -> None:
    what, value = step
    match what:
        case "result":
            answer(message, value)
        case "echo":
            answer(message, {"content": [{"type": "text", "text": json.dumps(message["params"])}]})
        case "env":
            text = os.environ.get(value, "unset")
            answer(message, {"content": [{"type": "text", "text": text}]})
        case "page":
            at = int(message.get("params", {}).get("cursor", "0"))
            more = {"nextCursor": str(at + 1)} if at + 1 < len(value) else {}
            answer(message, {"tools": value[at], **more})
        case "long":
            long = {"type": "object", "properties": {"a": {"title": "t" * value}}}
            answer(message, {"tools": [{"name": "long", "inputSchema": long}]})
        case "count":
            answer(message, {"content": [{"type": "text", "text": str(calls)}]})
        case "pid":
            answer(message, {"content": [{"type": "text", "text": str(os.getpid())}]})
        case "error":
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": value}))
        case "line":
            say(value)
        case "stderr":
            sys.stderr.write(value + "\n")
            sys.stderr.flush()
        case "die":
            os._exit(value)
        case "die once":  # a file that says that it has
            if not os.path.exists(value):
                open(value, "w", encoding="utf-8").close()
                os._exit(7)
        case "note":  # that it was here
            with open(value, "a", encoding="utf-8") as file:
                file.write(f"{message['method']} {os.getpid()}\n")
        case "touch":
            open(value, "w", encoding="utf-8").close()
        case "hang":
            time.sleep(60)
        case "close":
            os.close(1)
            time.sleep(60)
        case "spawn":  # somebody who outlives it, in a session of its own
            subprocess.Popen(["sleep", "60"], start_new_session=True)
        case "ignore":  # the end of its input
            time.sleep(60)
        case _:
            raise ValueError(what)


def main() -> None:
    plan: dict[str, Any] = json.loads(sys.argv[1])
    for step in plan.get("start", []):
        perform(step, {}, 0)
    calls = 0
    for line in sys.stdin:
        message = json.loads(line)
        method = message["method"]
        if method == "tools/call":
            calls += 1
            method = f"call:{message['params']['name']}"
            usual = USUAL["call"]
        else:
            usual = USUAL.get(method)
        steps = plan.get(method)
        if steps is None and "id" in message:
            answer(message, usual)
        for step in cast("list[list[Any]]", steps or []):
            perform(step, message, calls)
    for step in plan.get("end", []):
        perform(step, {}, calls)


main()
