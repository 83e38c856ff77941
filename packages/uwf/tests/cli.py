"""The `uwf` command as the tests run it: mostly in this process, on a terminal where that matters.

A process of its own takes 0.2 to 0.6 s to start. It is used where a process is what is tested: its
streams, its signals, its end, and another one beside it.
"""

import contextlib
import io
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from uwf import main
from workflow_reactor.testing import LoopbackServer, Reply, loopback_server
from workflow_register import update_config

COMMAND = (sys.executable, "-m", "uwf")


@dataclass
class Done:
    """What a command has ended with."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Cli:
    """The command with a home of its own, in a folder of its own."""

    home: Path
    folder: Path
    models: Path | None = None
    """Where the embedded models are, other than where this machine keeps them."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment without models and folders that a developer has configured."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "OTEL_", "UWF_"))
        }
        models = {} if self.models is None else {"UWF_MODELS": str(self.models)}
        return {**kept, **models, "UWF_HOME": str(self.home)}

    async def __call__(self, *words: object, stdin: bytes = b"", **variables: str) -> Done:
        """Run the command to its end in this process, in a thread: it has an event loop."""
        environment = self.environment | variables
        return await anyio.to_thread.run_sync(
            lambda: _run_here([*map(str, words)], self.folder, environment, stdin)
        )

    async def process(self, *words: object, stdin: bytes = b"", **variables: str) -> Done:
        """Run the command to its end in a process of its own."""
        return await self._process([*COMMAND, *map(str, words)], stdin, variables)

    async def shell(self, script: str, **variables: str) -> Done:
        """Run a shell script that has the command as `$UWF`."""
        variables["UWF"] = " ".join(COMMAND)
        return await self._process(["sh", "-c", script], b"", variables)

    async def _process(self, command: list[str], stdin: bytes, more: Mapping[str, str]) -> Done:
        done = await anyio.run_process(
            command, input=stdin, check=False, cwd=self.folder, env={**self.environment, **more}
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def start(self, *words: object) -> AbstractAsyncContextManager[anyio.abc.Process]:
        """Start the command in a process of its own, which goes on beside the test."""
        command = [*COMMAND, *map(str, words)]
        return await anyio.open_process(command, cwd=self.folder, env=self.environment)

    def use(self, server: LoopbackServer) -> None:
        """Make its model the default, as `uwf setup` does; one retry, for the waits grow."""
        url = f"http://127.0.0.1:{server.port}/v1"
        providers = {"loopback": {"kind": "openai", "base_url": url, "max_attempts": 2}}
        models = {"default": "loopback/scripted"}
        update_config(self.home, {"providers": providers, "models": models})

    @asynccontextmanager
    async def scripted(self, replies: Sequence[Reply]) -> AsyncGenerator[LoopbackServer]:
        """A model with these replies as the default."""
        async with loopback_server(replies) as server:
            self.use(server)
            yield server

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    async def on_terminal(
        self,
        *words: object,
        replies: Sequence[bytes | Sequence[object]] = (),
        early: bytes = b"",
        code: int = 0,
        asks: bytes = b"to decide later: ",
        columns: int = 120,
        **variables: str,
    ) -> str:
        """Run the command on a terminal, answer what it asks, and give all that is drawn.

        Args:
            replies: what is typed, one after each question; a sequence of words is a command that
                another process runs instead.
            early: what is typed before the command starts.
            code: the exit code that is expected.
            asks: how a question ends.
            columns: the terminal's width.
            variables: more of the environment.
        """
        environment = self.environment | {"TERM": "xterm", "COLUMNS": str(columns)} | variables
        return await anyio.to_thread.run_sync(
            lambda: self._on_terminal(
                [*COMMAND, *map(str, words)], replies, early, code, asks, environment
            )
        )

    async def converse(
        self,
        *words: object,
        turns: Sequence[tuple[str, bytes]],
        code: int = 0,
        **variables: str,
    ) -> str:
        """Run the command on a terminal of its own, which Ctrl-C and hidden input need.

        Args:
            turns: what the command asks, in this order, and what is typed then.
            code: the exit code that is expected.
            variables: what is added to its environment.

        Returns:
            All that is drawn, without what moves the cursor or colours.
        """
        environment = {**self.environment, "NO_COLOR": "1", "TERM": "xterm", **variables}
        command = [sys.executable, "-c", _TAKE_TERMINAL, *COMMAND, *map(str, words)]
        return await anyio.to_thread.run_sync(
            lambda: _converse(command, self.folder, environment, turns, code)
        )

    def _on_terminal(
        self,
        command: list[str],
        replies: Sequence[bytes | Sequence[object]],
        early: bytes,
        code: int,
        asks: bytes,
        environment: Mapping[str, str],
    ) -> str:
        ours, theirs = pty.openpty()
        os.write(ours, early)
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=self.folder, env=environment,
        )  # fmt: skip
        os.close(theirs)
        drawn, asked = b"", 0
        for part in _read_terminal(ours):
            drawn += part
            if drawn.count(asks) > asked:
                reply = replies[asked]
                if isinstance(reply, bytes):
                    os.write(ours, reply)
                else:
                    words = [*COMMAND, *map(str, reply)]
                    subprocess.run(words, cwd=self.folder, env=self.environment, check=True)
                asked += 1
        os.close(ours)
        assert process.wait(timeout=10) == code, drawn.decode()
        return drawn.decode()


_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def _converse(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    turns: Sequence[tuple[str, bytes]],
    code: int,
) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    drawn, heard, waiting = b"", 0, list(turns)
    for part in _read_terminal(ours):
        drawn = (drawn + part).replace(b"\r\n", b"\n")
        while waiting and (found := drawn.find(waiting[0][0].encode(), heard)) >= 0:
            question, typed = waiting.pop(0)
            heard = found + len(question.encode())
            os.write(ours, typed)
    os.close(ours)
    text = drawn.decode()
    assert process.wait(timeout=10) == code, text
    assert not waiting, text
    return text


def _run_here(words: list[str], folder: Path, environment: Mapping[str, str], stdin: bytes) -> Done:
    streams = {
        name: io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        for name, data in (("stdin", stdin), ("stdout", b""), ("stderr", b""))
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - set(environment):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        try:
            code = main(words)
        except SystemExit as error:  # argparse has printed what is wrong, or the help
            code = error.code if isinstance(error.code, int) else 1
        finally:
            _forget_bundles()
    out, err = (_written(streams[name]) for name in ("stdout", "stderr"))
    return Done(code, out, err)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def _forget_bundles() -> None:
    """Let the next command import its entries anew, as a process of its own would."""
    for name in [name for name in sys.modules if name.startswith("uwf_bundle_")]:
        del sys.modules[name]


def _read_terminal(ours: int) -> Generator[bytes]:
    """What is drawn, until the command has closed its side."""
    while True:
        ready, _, _ = select.select([ours], [], [], 20)
        assert ready, "the command hangs"
        with contextlib.suppress(OSError):  # Linux: the other side is closed
            if part := os.read(ours, 65_536):
                yield part
                continue
        return


def example(name: str) -> Path:
    """The path of an example that the package brings."""
    return Path(__file__).parent.parent / "src" / "uwf" / "examples" / f"{name}.py"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    with anyio.fail_after(20):
        while True:
            if condition():
                return
            await anyio.sleep(0.01)  # nobody tells of a file that is made or a process that ends


async def pids_in(path: Path, count: int) -> list[int]:
    """Wait until a file has so many process ids."""

    def found() -> list[str]:
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    await until(lambda: len(found()) == count)
    return [int(each) for each in found()]


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
