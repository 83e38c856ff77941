"""A model for real agents: it has them run one shell command, and then says one sentence.

It speaks what they speak: OpenAI's chat completions and responses, and Anthropic's messages, all as
server-sent events.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast

__all__ = ["ModelServer", "model_server"]

Json = dict[str, Any]

SHELLS: Mapping[str, str] = {
    "terminal": "command",  # hermes
    "Bash": "command",  # claude
    "exec_command": "cmd",  # codex
    "shell_command": "command",
    "bash": "command",  # opencode
    "run_shell_command": "command",  # qwen
}
_REQUIRED_ARGUMENTS: Mapping[str, Json] = {
    "bash": {"description": "run it"},
    "run_shell_command": {"is_background": False, "description": "run it"},
}


class ModelServer(ThreadingHTTPServer):
    """Answers on a loopback port from its own threads. All may be changed while it runs.

    Args:
        command: what the agent's shell tool is called with, once after each prompt.
        says: the agent's final words.
        status: anything but 200 is an error that quotes the key, as some providers do.
    """

    daemon_threads = True

    def __init__(self, *, command: str, says: str, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.command = command
        self.says = says
        self.status = status
        self.requests: list[Json] = []
        """Those that asked for a reply with tools."""
        self.keys: set[str] = set()
        """The keys that came."""

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def model_server(*, command: str, says: str, status: int = 200) -> Generator[ModelServer]:
    """Run a `ModelServer`."""
    with ModelServer(command=command, says=says, status=status) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def model(self) -> ModelServer:
        assert isinstance(self.server, ModelServer)
        return self.server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        models = {"object": "list", "data": [{"id": "fake-1", "object": "model"}]}
        self._send(200, "application/json", json.dumps(models).encode())

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        key = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
        self.model.keys.add(key.removeprefix("Bearer "))
        if self.model.status != 200:
            words = {
                "error": {"type": "scripted", "message": f"no, says the scripted model ({key})"}
            }
            self._send(self.model.status, "application/json", json.dumps(words).encode())
            return
        speak = _REPLY_WRITERS.get(path.removeprefix("/v1"))
        if speak is None:
            self._send(404, "application/json", b'{"error": {"message": "not here"}}')
            return
        request = json.loads(body)
        tool = next((name for name in _tools(request) if name in SHELLS), None)
        if tool is not None:
            self.model.requests.append(request)
        call = None
        if tool is not None and not any(
            map(_is_result, _list(request.get("messages") or request.get("input"))[-1:])
        ):
            call = (tool, {SHELLS[tool]: self.model.command, **_REQUIRED_ARGUMENTS.get(tool, {})})
        events = speak(call, self.model.says)
        self._send(200, "text/event-stream", "".join(events).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _list(value: object) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def _tools(request: Json) -> Iterable[str]:
    for tool in _list(request.get("tools")):
        yield str(tool.get("name") or tool.get("function", {}).get("name", ""))


def _is_result(turn: Json) -> bool:
    parts = _list(turn.get("content"))
    return (
        turn.get("role") == "tool"
        or turn.get("type") == "function_call_output"
        or any(part.get("type") == "tool_result" for part in parts)
    )


Call = tuple[str, Json] | None


def _chat(call: Call, says: str) -> Iterable[str]:
    delta: Json = {"role": "assistant", "content": says}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        tool_call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [tool_call]}
    reason = "stop" if call is None else "tool_calls"
    usage: Json = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    usage |= {"prompt_tokens_details": {"cached_tokens": 400}}
    frame: Json = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "fake-1"}
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    for chunk in chunks:
        yield f"data: {json.dumps({**frame, **chunk})}\n\n"
    yield "data: [DONE]\n\n"


def _responses(call: Call, says: str) -> Iterable[str]:
    item: Json = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": says, "annotations": []}],
    }
    if call is not None:
        item = {
            "type": "function_call",
            "id": "f1",
            "call_id": "call_1",
            "name": call[0],
            "arguments": json.dumps(call[1]),
        }
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 400},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1010,
    }
    response: Json = {"id": "r1", "object": "response", "model": "fake-1", "output": []}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield _event("response.created", response=response)
    yield _event("response.output_item.added", output_index=0, item=item)
    yield _event("response.output_item.done", output_index=0, item=item)
    yield _event("response.completed", response=done)


def _messages(call: Call, says: str) -> Iterable[str]:
    usage = {"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 1}
    message: Json = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "fake-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": says}
    if call is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    reason = "end_turn" if call is None else "tool_use"
    yield _event("message_start", message=message)
    yield _event("content_block_start", index=0, content_block=block)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event(
        "message_delta",
        delta={"stop_reason": reason, "stop_sequence": None},
        usage={"output_tokens": 10},
    )
    yield _event("message_stop")


def _event(type: str, **fields: Any) -> str:
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n"


_REPLY_WRITERS = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}
