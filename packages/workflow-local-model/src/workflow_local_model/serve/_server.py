"""Run a model server in this process, until it is told to stop."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any
from urllib.parse import urlsplit

from workflow_local_model._catalogue import LocalModel, present_path
from workflow_local_model._errors import ServerError

_Handler = Callable[[int, FrameType | None], object]

ERROR_PREFIX = "workflow_local_model: "
"""How the line begins by which the command says what is wrong. The engine's log may follow it."""

_SLOTS = 2
"""Conversations whose prompts stay in memory side by side."""
_PROMPT_CACHE_MIB = 1024
_MAX_DEFAULT_THREADS = 4
_OMP_SPINS = "1000"
_HEALTH_S = 30.0
_STOP_S = 1.0
_LOG_S = 1.0


def run_server(
    model: LocalModel,
    *,
    cache: Path | None = None,
    port: int = 0,
    threads: int | None = None,
    until_eof: bool = True,
) -> None:
    """Serve `model` on loopback until SIGINT, SIGTERM or, with `until_eof`, the end of stdin.

    Blocks the main thread. Prints one line of JSON with `base_url` and `model` when it is ready;
    the engine's own log is dropped. If the engine is still at work a second after it was told to
    stop, SIGALRM ends the whole process.

    Args:
        port: 0 picks a free one.
        threads: by default `$UWF_MODEL_THREADS`, else the processors this process may use, up to 4.

    Raises:
        ModelAbsent: the weights aren't there.
        ServerError: the server did not start; `reason` is the first error it logged.
    """
    weights = present_path(model, cache)
    threads = threads or default_threads(model)
    with _captured_log() as log:
        # While the engine loads it runs no Python, so only the default action can end it.
        with _handling_signals(signal.SIG_DFL):
            server, address = _start(model, weights, port, threads, log)
        stopped = threading.Event()
        with _handling_signals(lambda _signal, _frame: stopped.set()):
            if until_eof:
                threading.Thread(target=_wait_for_eof, args=(stopped,), daemon=True).start()
            _wait_until_healthy(model, address)
            ready = {"base_url": f"{address}/v1", "model": model.name}
            print(json.dumps(ready), flush=True)  # noqa: T201 - the line that callers wait for
            stopped.wait()
            # The engine finishes its prompt first, a minute at worst, and lets no Python run
            # meanwhile. The alarm's default action needs none.
            signal.setitimer(signal.ITIMER_REAL, _STOP_S)
            del server
            signal.setitimer(signal.ITIMER_REAL, 0)


def default_threads(model: LocalModel) -> int:
    """How many threads to compute with: `$UWF_MODEL_THREADS`, or the processors, up to 4.

    Raises:
        ServerError: the variable isn't a whole number above 0.
    """
    chosen = os.environ.get("UWF_MODEL_THREADS")
    if not chosen:
        return min(_processors(), _MAX_DEFAULT_THREADS)
    if not (chosen.isascii() and chosen.isdecimal() and int(chosen)):
        raise ServerError(
            model.name, f"UWF_MODEL_THREADS is {chosen!r}; it must be a whole number above 0"
        )
    return int(chosen)


def _processors() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(
    model: LocalModel, weights: Path, port: int, threads: int, log: IO[bytes]
) -> tuple[object, str]:
    # OpenMP threads that spin while they wait for each other stand still as soon as another
    # process wants their processor: two threads on two busy processors fell from 42 to 2 tokens/s.
    # With few spins they keep the speed of an idle machine, and on a busy one that of one thread.
    os.environ.setdefault("GOMP_SPINCOUNT", _OMP_SPINS)
    try:
        engine: Any = importlib.import_module("xllamacpp")  # untyped; reads the line above
    except ImportError as error:
        raise ServerError(
            model.name, f"{error}; the engine needs the system's OpenMP library (libgomp1)"
        ) from error
    params = engine.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {model.name}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.cors_origins = ""  # pages in the user's browser have no business here
    params.ui = False
    params.n_parallel = _SLOTS
    params.n_ctx = model.context_tokens * _SLOTS
    params.cache_prompt = True
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # No repacked weights: they cost up to 10 s and 0.6 GB at the start, and only make replies,
    # not prompts, a fifth faster (1.5 B parameters, AVX2).
    params.no_extra_bufts = True
    params.use_jinja = True
    if model.template:
        params.chat_template = _template(model.template)
    try:
        server = engine.Server(params)
    except RuntimeError as error:
        raise ServerError(model.name, _first_error(log) or str(error)) from error
    return server, str(server.listening_address)


def _template(name: str) -> str:
    return (Path(__file__).parent.parent / "templates" / name).read_text("utf-8")


def _wait_until_healthy(model: LocalModel, address: str) -> None:
    host = urlsplit(address).netloc
    deadline_s = time.monotonic() + _HEALTH_S
    while True:
        connection = http.client.HTTPConnection(host, timeout=5.0)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        if time.monotonic() > deadline_s:
            raise ServerError(model.name, f"{address}/health was not ok within {_HEALTH_S:.0f} s")
        time.sleep(0.05)


def _wait_for_eof(stopped: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    stopped.set()


@contextmanager
def _handling_signals(handler: signal.Handlers | _Handler) -> Generator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


@contextmanager
def _captured_log() -> Generator[IO[bytes]]:
    """Send what C++ code writes to file descriptor 2 into a file that vanishes."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(before, 2)
            os.close(before)


def _first_error(log: IO[bytes]) -> str:
    """The first error in the engine's log (later ones only follow from it), else its last line.

    The engine logs from a thread of its own, which may be behind.
    """
    deadline_s = time.monotonic() + _LOG_S
    while True:
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()
        errors = [found[1].strip() for line in lines if (found := re.match(r"\S+ E (.+)", line))]
        if errors or time.monotonic() > deadline_s:
            break
        time.sleep(0.01)
    return (errors or [line.strip() for line in reversed(lines) if line.strip()] or [""])[0]
