"""`uwf model`, and what `quickstart` asks before it fetches one."""

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from uwf.commands._model import Bar
from workflow_local_model import CATALOGUE, DEFAULT_MODEL, Phase, PullProgress, is_present

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
    with Bar(MODEL, stream) as bar:
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


def home(tmp_path: Path) -> dict[str, str]:
    """An environment where nothing is configured and no model is present."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "UWF_"))}
    return {**kept, "UWF_HOME": str(tmp_path / "home"), "UWF_MODELS": str(tmp_path / "models")}


@pytest.mark.parametrize("reply", [b"n\n", b"\x04", b"\xff\n"], ids=["no", "end", "nonsense"])
def test_on_a_terminal_a_download_is_asked_for_and_may_be_declined(
    tmp_path: Path, reply: bytes
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "uwf", "quickstart"]
    with subprocess.Popen(
        command, env=home(tmp_path), cwd=tmp_path, stdin=theirs, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        os.write(ours, reply)
        assert process.stderr is not None
        words = process.stderr.read().decode()
    os.close(ours)

    assert process.returncode == 1
    assert "Traceback" not in words
    assert "Fetch the embedded one" in words
    assert "uwf setup --base-url" in words
    assert not (tmp_path / "models").exists()


async def test_a_quickstart_with_closed_input_asks_nothing(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("no folder, so that nothing is fetched")
    command = f"{sys.executable} -m uwf quickstart <&-"
    done = await anyio.run_process(["sh", "-c", command], env=home(tmp_path), check=False)

    assert done.returncode == 1
    assert f"$ uwf model pull {DEFAULT_MODEL}" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


async def test_a_quickstart_without_the_package_of_the_embedded_model_says_so(
    tmp_path: Path,
) -> None:
    env = home(tmp_path)
    await anyio.run_process([sys.executable, "-m", "uwf", "setup", "--local"], env=env)
    script = (
        "import sys; sys.modules['workflow_local_model'] = None; from uwf import main; "
        "sys.exit(main(['quickstart']))"
    )
    done = await anyio.run_process([sys.executable, "-c", script], env=env, check=False)

    assert done.returncode == 2
    assert "uv pip install 'uwf[local]'" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


async def test_a_run_without_the_weights_says_how_to_get_them(tmp_path: Path) -> None:
    greet = Path(__file__).parent.parent / "src" / "uwf" / "examples" / "greet.py"
    env = home(tmp_path)
    await anyio.run_process([sys.executable, "-m", "uwf", "setup", "--local"], env=env)
    command = [sys.executable, "-m", "uwf", "run", str(greet), "Greet Ada."]
    done = await anyio.run_process(command, env=env, check=False)

    assert done.returncode == 1
    assert f"uwf model pull {DEFAULT_MODEL}" in done.stderr.decode()


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
