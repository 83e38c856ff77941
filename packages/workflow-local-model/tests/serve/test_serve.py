from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import pytest

from workflow_local_model import (
    CATALOGUE,
    LocalModel,
    ModelAbsent,
    ServerError,
    UnknownModel,
    find_model,
    is_present,
    model_path,
    serving,
)

ProcessesAbout = Callable[[Path], list[int]]
from_thread = anyio.to_thread.run_sync
SMALLEST = "smollm2-135m"
SERVE = [sys.executable, "-P", "-m", "workflow_local_model", "serve"]


def present(name: str) -> LocalModel:
    model = find_model(name)
    if not is_present(model):
        pytest.skip(f"run this test's model in: uwf model pull {name}")
    return model


@pytest.fixture
def smallest() -> LocalModel:
    return present(SMALLEST)


async def complete(base_url: str, **fields: Any) -> Any:
    async with httpx.AsyncClient(timeout=150) as client:
        reply = await client.post(f"{base_url}/chat/completions", json=fields)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.model
async def test_a_served_model_completes_a_chat_and_counts_tokens(smallest: LocalModel) -> None:
    async with serving(smallest) as served:
        assert served.model is smallest
        assert served.base_url.startswith("http://127.0.0.1:")
        reply = await complete(
            served.base_url,
            model=SMALLEST,
            messages=[{"role": "user", "content": "Say hello."}],
            max_tokens=8,
        )
        os.kill(served.pid, 0)
    assert reply["choices"][0]["message"]["content"]
    usage = reply["usage"]
    assert 0 < usage["completion_tokens"] <= 8
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    with pytest.raises(ProcessLookupError):
        os.kill(served.pid, 0)


@pytest.mark.model
async def test_a_reply_can_be_held_to_a_json_schema(smallest: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"tool": {"const": "resolve"}, "size": {"enum": ["small", "large"]}},
        "required": ["tool", "size"],
        "additionalProperties": False,
    }
    async with serving(smallest) as served:
        reply = await complete(
            served.base_url,
            messages=[{"role": "user", "content": "How big is an ant?"}],
            max_tokens=64,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "turn", "strict": True, "schema": schema},
            },
        )
    turn = json.loads(reply["choices"][0]["message"]["content"])
    assert turn["tool"] == "resolve"
    assert turn["size"] in {"small", "large"}


@pytest.mark.model
async def test_a_repeated_prefix_is_not_computed_again(smallest: LocalModel) -> None:
    messages = [{"role": "user", "content": "Count: " + " ".join(map(str, range(200)))}]
    async with serving(smallest) as served:
        await complete(served.base_url, messages=messages, max_tokens=1)
        again = await complete(served.base_url, messages=messages, max_tokens=1)
    usage = again["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] // 2


@pytest.mark.model
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "name", [model.name for model in CATALOGUE.values() if model.template], ids=str
)
async def test_the_packaged_template_turns_calls_into_tool_calls(name: str) -> None:
    tool = {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    }
    async with serving(present(name)) as served:
        reply = await complete(
            served.base_url,
            messages=[{"role": "user", "content": "Read notes.txt with the tool."}],
            tools=[{"type": "function", "function": tool}],
            tool_choice="required",
            max_tokens=64,
            temperature=0,
        )
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]["function"]
    assert call["name"] == "read_file"
    assert list(json.loads(call["arguments"])) == ["path"]


@pytest.mark.model
@pytest.mark.parametrize(
    ("prompt", "max_tokens"), [("Tell me a long story.", 3000), ("one two " * 1500, 1)]
)
async def test_the_server_ends_while_it_is_at_work(
    smallest: LocalModel, prompt: str, max_tokens: int
) -> None:
    request = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "ignore_eos": True,
    }

    async def ask(base_url: str) -> None:
        with pytest.raises(httpx.HTTPError):
            await complete(base_url, **request)

    with anyio.fail_after(40):
        async with anyio.create_task_group() as group:
            async with serving(smallest, threads=1) as served:
                group.start_soon(ask, served.base_url)
                await until_busy(served.base_url)
                started_s = time.monotonic()
            assert time.monotonic() - started_s < 5
            with pytest.raises(ProcessLookupError):
                os.kill(served.pid, 0)


async def until_busy(base_url: str) -> None:
    async with httpx.AsyncClient(timeout=20) as client:
        while True:
            slots = (await client.get(base_url.replace("/v1", "/slots"))).json()
            if any(slot["is_processing"] for slot in slots):
                return


PARENT = """
import anyio, sys
from workflow_local_model import find_model, serving
async def main():
    async with serving(find_model(sys.argv[1])) as served:
        print(served.pid, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.model
async def test_the_server_dies_with_a_parent_that_was_killed(smallest: LocalModel) -> None:
    command = [sys.executable, "-c", PARENT, smallest.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:  # noqa: ASYNC220
        assert parent.stdout is not None
        pid = int(await from_thread(parent.stdout.readline))
        server = os.pidfd_open(pid)
        parent.kill()
    try:
        with anyio.fail_after(10):
            await anyio.wait_readable(server)  # a pidfd is readable once its process has ended
    finally:
        os.close(server)


@pytest.mark.model
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "eof"])
async def test_the_command_says_when_it_is_ready_and_ends_when_told(
    smallest: LocalModel, how: str
) -> None:
    command = [*SERVE, smallest.name, "--threads", "1"]
    with anyio.fail_after(40):
        process = await anyio.open_process(command)
        async with process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdin is not None
            ready = json.loads(await process.stdout.receive())
            assert list(ready) == ["base_url", "model"]
            assert ready["model"] == smallest.name
            if how == "eof":
                await process.stdin.aclose()
            else:
                process.send_signal(signal.Signals[how])
            assert await process.wait() == 0
            with pytest.raises(anyio.EndOfStream):
                await process.stderr.receive()


async def serve_for_ever(model: LocalModel, cache: Path) -> None:
    async with serving(model, cache=cache):
        await anyio.sleep_forever()


@pytest.mark.model
async def test_a_start_that_is_cancelled_leaves_no_process(
    smallest: LocalModel, cache: Path, processes_about: ProcessesAbout
) -> None:
    (cache / smallest.file_name).symlink_to(model_path(smallest))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(serve_for_ever, smallest, cache)
            while not processes_about(cache):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert processes_about(cache) == []


@pytest.mark.model
async def test_a_server_that_is_killed_as_it_starts_is_reported(
    smallest: LocalModel, cache: Path, processes_about: ProcessesAbout
) -> None:
    (cache / smallest.file_name).symlink_to(model_path(smallest))
    errors: list[str] = []

    async def serve() -> None:
        with pytest.raises(ServerError) as caught:
            await serve_for_ever(smallest, cache)
        errors.append(caught.value.reason)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            while not (found := processes_about(cache)):
                await anyio.lowlevel.checkpoint()
            for pid in found:
                os.kill(pid, signal.SIGKILL)
    assert errors == ["signal 9 ended the server as it started; is there enough memory?"]


@pytest.fixture
def garbage(cache: Path) -> LocalModel:
    """A model whose file has the right size and nothing of use in it."""
    model = find_model(SMALLEST)
    with (cache / model.file_name).open("wb") as file:
        file.truncate(model.size_bytes)
    return model


async def test_weights_that_cannot_be_read_are_reported_with_the_engines_reason(
    garbage: LocalModel, cache: Path, processes_about: ProcessesAbout
) -> None:
    with pytest.raises(ServerError) as caught:
        async with serving(garbage, cache=cache):
            pass
    assert "invalid magic characters" in caught.value.reason
    assert str(caught.value).startswith(f"could not serve '{SMALLEST}': ")
    assert processes_about(cache) == []


async def test_a_port_that_is_taken_is_reported(garbage: LocalModel, cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ServerError) as caught:
        async with serving(garbage, cache=cache, port=taken.getsockname()[1]):
            pass
    assert "couldn't bind HTTP server socket" in caught.value.reason


async def test_a_start_that_takes_too_long_is_ended(
    garbage: LocalModel, cache: Path, processes_about: ProcessesAbout
) -> None:
    with pytest.raises(ServerError, match=r"not ready within 0\.001 s"):
        async with serving(garbage, cache=cache, start_timeout_s=0.001):
            pass
    assert processes_about(cache) == []


async def test_absent_weights_are_answered_with_the_command_that_fetches_them(cache: Path) -> None:
    with pytest.raises(ModelAbsent) as caught:
        async with serving(find_model(SMALLEST), cache=cache):
            pass
    assert str(caught.value).endswith("run: uwf model pull smollm2-135m")
    assert caught.value.path == cache / "smollm2-135m-instruct-q4_1.gguf"


async def test_only_models_of_the_catalogue_are_served(make_model: Any, cache: Path) -> None:
    with pytest.raises(UnknownModel):
        async with serving(make_model(), cache=cache):
            pass


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1.5", "²"])
async def test_a_number_of_threads_that_cannot_be_is_refused(
    garbage: LocalModel, cache: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("UWF_MODEL_THREADS", threads)
    with pytest.raises(ServerError, match=r"UWF_MODEL_THREADS is .* a whole number above 0"):
        async with serving(garbage, cache=cache):
            pass


@pytest.mark.model
async def test_the_number_of_threads_can_be_chosen(
    smallest: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWF_MODEL_THREADS", "1")
    async with serving(smallest) as served:
        command = await anyio.Path(f"/proc/{served.pid}/cmdline").read_text()
    assert command.endswith("--threads\x001\x00")


async def test_an_engine_that_cannot_be_loaded_is_reported(
    garbage: LocalModel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "raise ImportError('libgomp.so.1: cannot open shared object file')"
    (tmp_path / "xllamacpp.py").write_text(broken, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ServerError) as caught:
        async with serving(garbage, cache=cache):
            pass
    assert caught.value.reason == (
        "libgomp.so.1: cannot open shared object file;"
        " the engine needs the system's OpenMP library (libgomp1)"
    )


async def test_what_the_engine_logs_last_is_not_taken_for_the_reason(
    garbage: LocalModel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "import atexit, os\natexit.register(os.write, 2, b'0.1 E srv init: exiting\\n')\n"
    (tmp_path / "xllamacpp.py").write_text(f"{late}raise ImportError('no engine')", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ServerError) as caught:
        async with serving(garbage, cache=cache):
            pass
    assert caught.value.reason.startswith("no engine;")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpt-9"], "there is no local model 'gpt-9'; choose one of "),
        ([SMALLEST, "--cache", "/nowhere"], "run: uwf model pull smollm2-135m\n"),
    ],
)
async def test_the_command_ends_with_one_line_about_what_is_wrong(
    arguments: list[str], message: str
) -> None:
    done = await anyio.run_process([*SERVE, *arguments], check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
