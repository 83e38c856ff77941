#!/usr/bin/env python3
"""An agent that speaks like `claude -p --output-format stream-json`, and does as `--fake X` says.

With `--resume ID` it does its work well, in that session.
"""

import json
import os
import subprocess
import sys
import time

SESSION = "5e551017-0000-4000-8000-000000000001"


def emit(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def result(text: str, **more: object) -> None:
    usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 10}
    fields = {"subtype": "success", "is_error": False, "result": text, "total_cost_usd": 0.0123}
    emit(type="result", session_id=SESSION, usage=usage, **{**fields, **more})


def call(command: str) -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
    emit(type="assistant", session_id=SESSION, message={"content": [tool]})


def answered(text: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": False}
    emit(type="user", session_id=SESSION, message={"content": [block]})


def work(words: str) -> None:
    call("make it")
    with open("made.txt", "a", encoding="utf-8") as file:
        file.write("made\n")
    answered("ok")
    result(words)


def hang() -> None:
    """Work for ever, with a child that has left the session."""
    subprocess.Popen(["setsid", "sleep", os.environ.get("FAKE_SLEEP", "1000")])
    with open("at_work", "w", encoding="utf-8"):
        pass
    time.sleep(1000)


def main(arguments: list[str]) -> int:
    prompt = sys.stdin.read()
    fake = arguments[arguments.index("--fake") + 1]
    key = os.environ.get("ANTHROPIC_API_KEY", "none")
    if fake == "hang-unsaid" and not os.path.exists("at_work"):
        hang()
    if fake == "cannot-start":
        sys.stdout.write("Invalid settings: see " + key + "\n")
        return 1
    emit(type="system", subtype="init", session_id=SESSION)
    if "--resume" in arguments:
        assert arguments[arguments.index("--resume") + 1] == SESSION
        fake = "done"
    match fake:
        case "hang":
            call("sleep")
            hang()
        case "echo":
            result(json.dumps({"prompt": prompt, "arguments": arguments, "env": dict(os.environ)}))
        case "fails-with-0":
            result("the disk is full", is_error=True)
        case "refused":
            result(f"401 bad key {key}", is_error=True, api_error_status=401)
            sys.stderr.write(f"key {key}\n")
            return 1
        case "max-turns":
            emit(type="result", subtype="error_max_turns", is_error=False, session_id=SESSION)
        case "breaks":
            raise RuntimeError("a bug of its own")
        case "unfinished":
            emit(type="assistant", message={"content": [{"type": "text", "text": "I will"}]})
        case "says-nothing":
            result("  ")
        case "long-line":
            answered("x" * 100_000)
            work("it is made")
        case "long-result":
            result("x" * 100_000)
        case "odd":
            sys.stdout.write("a warning, no JSON\n[1]\n{\n\n")
            sys.stdout.flush()
            sys.stdout.buffer.write(b'{"type":"assistant","message":{"content":"\xff\xfe"}}\n')
            emit(type="brand_new", message=3, session_id=7)
            sys.stdout.write('{"type":"result","subtype":"success","result":"half \\ud83d"}')
        case _:
            work("it is made")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
