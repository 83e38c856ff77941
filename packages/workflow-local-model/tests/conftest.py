"""A loopback hub, wheels on a folder, and tiny models that are pinned to what they hold."""

from __future__ import annotations

import hashlib
import http.server
import random
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from workflow_local_model import LocalModel, Source

WEIGHTS = random.Random(7).randbytes(3_000_000)


@dataclass
class Hub:
    """A real HTTP server. What it answers is set by its fields; it records each Range header."""

    body: bytes = WEIGHTS
    status: int = 200
    honours_range: bool = True
    cut_after: list[int] = field(default_factory=list[int])
    """For each request in turn: how many bytes of the body are sent before the connection ends."""
    says_length: bool = True
    headers: dict[str, str] = field(default_factory=dict[str, str])
    with_redirect: tuple[dict[str, str], bytes] = ({}, b"")
    """The headers and the body of the answer that `/moved` gives."""
    requests: list[str | None] = field(default_factory=list[str | None])
    asked: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    """Cleared, it holds each answer back before its first byte."""
    url: str = ""

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.path == "/moved":
            handler.send_response(302)
            headers, body = self.with_redirect
            for name, value in {"Location": self.url, **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)
            return
        asked_range = handler.headers["Range"]
        self.requests.append(asked_range)
        self.asked.set()
        self.go_on.wait(20)
        start = 0
        if self.honours_range and asked_range:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked_range)[1])  # type: ignore[index]
        body = self.body[start:]
        if start >= len(self.body):
            handler.send_response(416)
            handler.end_headers()
            return
        handler.send_response(206 if start else self.status)
        if start:
            end = len(self.body) - 1
            handler.send_header("Content-Range", f"bytes {start}-{end}/{len(self.body)}")
        for name, value in self.headers.items():
            handler.send_header(name, value)
        if self.says_length:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: self.cut_after.pop(0)] if self.cut_after else body)


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    hub.go_on.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                hub.answer(self)
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}/weights.gguf"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield hub
    hub.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


MakeModel = Callable[..., LocalModel]


@pytest.fixture
def make_model() -> MakeModel:
    def make(*sources: Source, weights: bytes = WEIGHTS) -> LocalModel:
        return LocalModel(
            name="tiny",
            file_name="tiny.gguf",
            size_bytes=len(weights),
            sha256=hashlib.sha256(weights).hexdigest(),
            licence="MIT",
            context_tokens=512,
            template=None,
            dialect="json",
            description="random bytes",
            sources=sources,
        )

    return make


MakeWheel = Callable[..., str]


@pytest.fixture
def make_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeWheel:
    """Builds a wheel where uv looks for it, and gives the requirement that asks for it."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(index))

    def make(name: str, members: dict[str, bytes]) -> str:
        info = f"{name}-1.0.dist-info"
        texts = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files = members | texts
        record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]).encode()
        with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            for path, content in (files | {f"{info}/RECORD": record}).items():
                wheel.writestr(path, content)
        return f"{name}==1.0"

    return make


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def names_in() -> Callable[[Path], list[str]]:
    return lambda folder: sorted(file.name for file in folder.iterdir())


@pytest.fixture
def processes_about() -> Callable[[Path], list[int]]:
    """The ids of running processes whose command line names a path."""

    def find(path: Path) -> list[int]:
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(path) in words:
                found.append(int(process.name))
        return found

    return find
