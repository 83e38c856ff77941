"""`uwf model`, and what `quickstart` asks before it fetches one."""

import io
import os
import pty
import signal
import subprocess
import sys

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from uwf.commands._model import ProgressBar
from workflow_local_model import CATALOGUE, DEFAULT_MODEL, Phase, PullProgress, is_present

from ..cli import COMMAND, Cli, example

MODEL = CATALOGUE[DEFAULT_MODEL]


def progress(phase: Phase, share: float) -> PullProgress:
    return PullProgress(
        model=MODEL.name,
        phase=phase,
        source="https://hub.test/model.gguf",
        done_bytes=int(MODEL.size_bytes * share),
        total_bytes=MODEL.size_bytes,
        bytes_per_s=50e6,
    )


def shown(stream: io.StringIO, *moments: PullProgress) -> str:
    with ProgressBar(MODEL, stream) as bar:
        for moment in moments:
            bar.show(moment)
    return stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pull_into_a_pipe_says_each_tenth_once() -> None:
    moments = [progress("downloading", n / 1000) for n in range(1001)]
    lines = shown(io.StringIO(), progress("connecting", 0), *moments).splitlines()

    assert lines[0] == "connecting: https://hub.test/model.gguf"
    assert len(lines) == 12
    assert lines[6].startswith(f"downloading {MODEL.name}: 50 % of ")


def test_a_pull_on_a_terminal_is_one_line_with_size_and_rate() -> None:
    text = shown(Terminal(), progress("downloading", 0.5), progress("verifying", 1))

    assert "[###############...............]" in text
    assert "50 MB/s" in text
    assert text.count("\n") == 1


@pytest.fixture
def bare(uwf: Cli) -> Cli:
    """The command where nothing is configured and no model is present."""
    return Cli(uwf.home, uwf.folder, models=uwf.home / "models")


@pytest.mark.parametrize("reply", [b"n\n", b"\x04", b"\xff\n"], ids=["no", "end", "nonsense"])
def test_on_a_terminal_a_download_is_asked_for_and_may_be_declined(bare: Cli, reply: bytes) -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, "quickstart"]
    with subprocess.Popen(
        command, env=bare.environment, cwd=bare.folder, stdin=theirs, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        os.write(ours, reply)
        assert process.stderr is not None
        words = process.stderr.read().decode()
    os.close(ours)

    assert process.returncode == 1
    assert "Traceback" not in words
    assert "Download the embedded one" in words
    assert "uwf setup --base-url" in words
    assert not (bare.home / "models").exists()


async def test_a_quickstart_with_closed_input_asks_nothing(bare: Cli) -> None:
    bare.home.mkdir()
    (bare.home / "models").write_text("no folder, so that nothing is fetched")
    done = await bare.shell("$UWF quickstart <&-")

    assert done.code == 1
    assert f"$ uwf model pull {DEFAULT_MODEL}" in done.err
    assert "Traceback" not in done.err


async def test_a_quickstart_without_the_package_of_the_embedded_model_says_so(
    bare: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await bare("setup", "--local")).code == 0
    monkeypatch.setitem(sys.modules, "workflow_local_model", None)
    done = await bare("quickstart")

    assert done.code == 2
    assert "uv pip install 'uwf[local]'" in done.err
    assert "Traceback" not in done.err


async def test_a_run_without_the_weights_says_how_to_get_them(bare: Cli) -> None:
    assert (await bare("setup", "--local")).code == 0
    done = await bare("run", example("greet"), "Greet Ada.")

    assert done.code == 1
    assert f"uwf model pull {DEFAULT_MODEL}" in done.err


@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    not is_present(MODEL),
    reason=f"the weights are absent; `uv run uwf model pull {DEFAULT_MODEL}` enables it",
)
async def test_pull_finds_what_is_here_and_serve_answers_until_it_is_interrupted() -> None:
    pulled = await anyio.run_process([sys.executable, "-m", "uwf", "model", "pull"])
    assert pulled.stdout.decode().strip().endswith(MODEL.file_name)

    command = [sys.executable, "-m", "uwf", "model", "serve", "--port", "0"]
    async with await anyio.open_process(command, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        with anyio.fail_after(120):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
        base_url = line.decode().partition('"base_url":')[2].split('"')[1]
        async with httpx.AsyncClient() as client:
            models = (await client.get(f"{base_url}/models")).json()
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(20):
            await process.wait()
    assert models["data"][0]["id"] == MODEL.name
