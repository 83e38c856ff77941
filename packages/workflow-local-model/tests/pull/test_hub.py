from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workflow_local_model import HubSource, PullError, PullProgress, WrongHash, pull

NamesIn = Callable[[Path], list[str]]


async def test_a_download_becomes_the_model_once_it_is_verified(
    hub: Any, make_model: Any, cache: Path, names_in: NamesIn
) -> None:
    seen: list[PullProgress] = []
    path = await pull(make_model(HubSource(hub.url)), cache=cache, on_progress=seen.append)
    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == hub.body
    assert names_in(cache) == [".tiny.gguf.lock", "tiny.gguf"]
    phases = list(dict.fromkeys(progress.phase for progress in seen))
    assert phases == ["connecting", "downloading", "verifying"]
    downloaded = [each.done_bytes for each in seen if each.phase == "downloading"]
    assert downloaded == sorted(downloaded)
    assert seen[-1].done_bytes == seen[-1].total_bytes == len(hub.body)
    assert seen[-1].bytes_per_s > 0
    assert {each.source for each in seen} == {hub.url}


async def test_a_model_that_is_there_is_not_fetched_again(
    hub: Any, make_model: Any, cache: Path
) -> None:
    model = make_model(HubSource(hub.url))
    assert await pull(model, cache=cache) == await pull(model, cache=cache)
    assert hub.requests == [None]


async def test_a_cut_body_is_resumed_where_it_ended(hub: Any, make_model: Any, cache: Path) -> None:
    hub.cut_after = [2_000_000]
    path = await pull(make_model(HubSource(hub.url)), cache=cache)
    assert path.read_bytes() == hub.body
    first, second = hub.requests
    assert first is None
    assert second.startswith("bytes=")


@pytest.mark.parametrize("says_length", [True, False])
async def test_a_later_pull_resumes_what_an_earlier_one_left(
    hub: Any, make_model: Any, cache: Path, *, says_length: bool
) -> None:
    (cache / "tiny.gguf.part").write_bytes(hub.body[:1_234_567])
    hub.says_length = says_length
    seen: list[PullProgress] = []
    path = await pull(make_model(HubSource(hub.url)), cache=cache, on_progress=seen.append)
    assert path.read_bytes() == hub.body
    assert hub.requests == ["bytes=1234567-"]
    assert seen[0].done_bytes == 1_234_567
    assert not (cache / "tiny.gguf.part").exists()


async def test_a_part_that_is_whole_is_only_verified(
    hub: Any, make_model: Any, cache: Path
) -> None:
    (cache / "tiny.gguf.part").write_bytes(hub.body)
    await pull(make_model(HubSource(hub.url)), cache=cache)
    assert hub.requests == []


async def test_a_server_that_ignores_ranges_is_read_from_the_start(
    hub: Any, make_model: Any, cache: Path
) -> None:
    (cache / "tiny.gguf.part").write_bytes(hub.body[:1000])
    hub.honours_range = False
    path = await pull(make_model(HubSource(hub.url)), cache=cache)
    assert path.read_bytes() == hub.body
    assert hub.requests == ["bytes=1000-"]


@pytest.mark.parametrize("size", [1000, 4_000_000])
async def test_a_part_of_another_file_is_replaced(
    hub: Any, make_model: Any, cache: Path, size: int
) -> None:
    (cache / "tiny.gguf.part").write_bytes(b"x" * size)
    path = await pull(make_model(HubSource(hub.url)), cache=cache)
    assert path.read_bytes() == hub.body


async def test_other_bytes_than_the_pinned_ones_are_refused_and_removed(
    hub: Any, make_model: Any, cache: Path, names_in: NamesIn
) -> None:
    model = make_model(HubSource(hub.url))
    hub.body = hub.body[:-1] + bytes([hub.body[-1] ^ 1])
    with pytest.raises(PullError) as caught:
        await pull(model, cache=cache)
    (failure,) = caught.value.failures
    assert isinstance(failure, WrongHash)
    assert failure.expected == model.sha256 != failure.found
    assert failure.source == hub.url
    assert names_in(cache) == [".tiny.gguf.lock"]


@pytest.mark.parametrize("says_length", [True, False])
@pytest.mark.parametrize("change", [-1000, 1000])
async def test_a_file_of_another_size_is_refused(
    hub: Any, make_model: Any, cache: Path, change: int, *, says_length: bool
) -> None:
    model = make_model(HubSource(hub.url))
    hub.body = hub.body[:change] if change < 0 else hub.body + bytes(change)
    hub.says_length = says_length
    with pytest.raises(PullError):
        await pull(model, cache=cache)
    assert not (cache / "tiny.gguf").exists()


async def test_the_next_source_is_asked_when_one_refuses(
    hub: Any, make_model: Any, cache: Path
) -> None:
    hub.status = 404
    unreachable = HubSource("http://127.0.0.1:1/weights.gguf")
    nonsense = HubSource("http://[::1/weights.gguf")
    with pytest.raises(PullError) as caught:
        await pull(make_model(HubSource(hub.url), unreachable, nonsense), cache=cache)
    refused, no_connection, no_url = caught.value.failures
    assert str(refused) == f"{hub.url}: answered 404 Not Found"
    assert no_connection.reason.startswith("ConnectError")
    assert no_url.reason.startswith("InvalidURL")
    assert str(caught.value).startswith(
        "'tiny' could not be downloaded; check the network and run `uwf model pull tiny` again:\n  http://"
    )


async def test_a_redirect_is_followed(hub: Any, make_model: Any, cache: Path) -> None:
    moved = hub.url.replace("/weights.gguf", "/moved")
    path = await pull(make_model(HubSource(moved)), cache=cache)
    assert path.read_bytes() == hub.body


async def test_what_comes_with_a_redirect_is_not_read(
    hub: Any, make_model: Any, cache: Path
) -> None:
    """A client that follows by itself reads it, decompressed and without a bound."""
    bomb = gzip.compress(bytes(64 << 20))
    hub.with_redirect = {"Content-Encoding": "gzip", "Content-Length": str(len(bomb))}, bomb
    tracemalloc.start()
    try:
        path = await pull(
            make_model(HubSource(hub.url.replace("weights.gguf", "moved"))), cache=cache
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert path.read_bytes() == hub.body
    assert peak < 32 << 20


@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, gzip"])
async def test_a_file_that_comes_compressed_is_refused(
    hub: Any, make_model: Any, cache: Path, coding: str
) -> None:
    hub.headers = {"Content-Encoding": coding}

    with pytest.raises(PullError, match="compressed"):
        await pull(make_model(HubSource(hub.url)), cache=cache)


async def test_a_redirect_without_end_is_given_up(hub: Any, make_model: Any, cache: Path) -> None:
    hub.url = hub.url.replace("weights.gguf", "moved")

    with pytest.raises(PullError, match="more than 10 times"):
        await pull(make_model(HubSource(hub.url)), cache=cache)
