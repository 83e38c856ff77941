"""A real HTTP server on a loopback port that misbehaves as it is told, request by request."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}
TOOLS = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
DONE = {"content": [{"type": "text", "text": "done well"}]}


class OddHttp:
    """Where it is, what it was asked, and what it does: a function for a method, called once."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.headers: list[dict[str, str]] = []
        self.methods: list[str] = []
        self.plan: dict[str, list[Callable[[BaseHTTPRequestHandler, Any], None]]] = {}
        self.released = threading.Event()
        self.called = threading.Event()


def result(message: Any, value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode()


def reply(
    status: int, body: bytes, kind: str = "application/json", **headers: str
) -> Callable[[BaseHTTPRequestHandler, Any], None]:
    """Answer with these bytes."""

    def send(handler: BaseHTTPRequestHandler, message: Any) -> None:
        del message
        handler.send_response(status)
        for name, value in {"content-type": kind, **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return send


def as_event(value: object) -> Callable[[BaseHTTPRequestHandler, Any], None]:
    """Answer with a stream of events."""

    def send(handler: BaseHTTPRequestHandler, message: Any) -> None:
        body = b"event: message\r\ndata: " + result(message, value) + b"\r\n\r\n"
        reply(200, body, "text/event-stream")(handler, message)

    return send


def reset(handler: BaseHTTPRequestHandler, message: Any) -> None:
    """Reset the connection without an answer."""
    del message
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def half(kind: str) -> Callable[[BaseHTTPRequestHandler, Any], None]:
    """Half a body, then the end."""

    def send(handler: BaseHTTPRequestHandler, message: Any) -> None:
        body = result(message, DONE)
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        handler.wfile.flush()
        handler.connection.shutdown(socket.SHUT_RDWR)

    return send


@contextmanager
def serving() -> Generator[OddHttp]:
    """Run it for as long as the block does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method = message["method"]
            odd.methods.append(method)
            odd.headers.append({name.lower(): value for name, value in self.headers.items()})
            if method == "tools/call":
                odd.called.set()
            planned = odd.plan.get(method)
            if planned:
                planned.pop(0)(self, message)
            elif "id" not in message:
                reply(202, b"")(self, message)
            elif method == "initialize":
                reply(200, result(message, HELLO), mcp_session_id="s-1")(self, message)
            elif method in {"tools/list", "tools/call"}:
                value = TOOLS if method == "tools/list" else DONE
                reply(200, result(message, value))(self, message)
            else:
                body: dict[str, Any] = {"id": message["id"], "error": {"code": -32601}}
                reply(200, json.dumps(body).encode())(self, message)

        def do_DELETE(self) -> None:
            odd.methods.append("DELETE")
            reply(200, b"")(self, None)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        odd = OddHttp(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield odd
        finally:
            odd.released.set()
            server.shutdown()
            thread.join()
