"""Compressed replies, over a real socket: what is asked for is read, and a bomb stays small."""

import functools
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import (
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    create_llm_fn,
    user,
)
from workflow_reactor.doctor import examine, is_broken
from workflow_reactor.http._decompress import BadEncoding, Decompressor, TooLarge
from workflow_reactor.testing import Wire, http, loopback_server, say

MESSAGES = [user("Hi")]
LIMIT = 1 << 20
PLAIN = say("hello")


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@functools.cache
def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    return pack(bytes(64 << 20))


def zipped(data: bytes, encoding: str, status: int = 200) -> Wire:
    return Wire(data=http(status, data, {"content-encoding": encoding}))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PLAIN)),
        ("GZip", gzip.compress(PLAIN)),
        ("x-gzip", gzip.compress(PLAIN)),
        ("gzip, identity", gzip.compress(PLAIN)),
        ("gzip", gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:])),
        ("gzip", b"".join(gzip.compress(PLAIN[i : i + 1]) for i in range(len(PLAIN)))),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", raw_deflate(PLAIN)),
        ("identity", PLAIN),
        ("", PLAIN),
    ],
)
@pytest.mark.parametrize("drip_s", [0.0, 1e-9])
async def test_a_reply_of_one_coding_is_read(encoding: str, body: bytes, drip_s: float) -> None:
    data = http(200, body, {"content-encoding": encoding})
    async with loopback_server([Wire(data=data, drip_s=drip_s)]) as server:
        assert (await create_llm_fn(server.provider())(MESSAGES)).text == "hello"


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(PLAIN)), "encoded more than once"),
        ("gzip, deflate", zlib.compress(gzip.compress(PLAIN)), "encoded more than once"),
        ("gzip,gzip,gzip,gzip", PLAIN, "encoded more than once"),
        ("br", PLAIN, "not asked for: 'br'"),
        ("zstd", PLAIN, "not asked for: 'zstd'"),
        ("gzip", PLAIN, "is not gzip"),
        ("deflate", PLAIN, "is not deflate"),
        ("gzip", zlib.compress(PLAIN), "is not gzip"),
        ("gzip", gzip.compress(PLAIN)[:-9], "ends early"),
        ("gzip", gzip.compress(PLAIN)[:1], "ends early"),
        ("deflate", zlib.compress(PLAIN)[:-9], "ends early"),
        ("gzip", gzip.compress(PLAIN) + b"garbage", "more follows"),
        ("gzip", gzip.compress(PLAIN) + b"\x00", "ends early"),
        ("deflate", zlib.compress(PLAIN) + zlib.compress(PLAIN), "more follows"),
        ("gzip", gzip.compress(PLAIN)[:-8] + bytes(8), "is not gzip"),
        ("gzip", gzip.compress(b"") * 5_000, "more than 1000 parts"),
    ],
)
async def test_what_is_not_one_coding_that_was_asked_for_is_a_fault(
    encoding: str, body: bytes, words: str
) -> None:
    async with loopback_server([zipped(body, encoding)]) as server:
        refused = "more than once" in words or "not asked for" in words
        with pytest.raises(ProviderRefused if refused else ProviderUnavailable, match=words):
            await create_llm_fn(server.provider())(MESSAGES)


async def peak_bytes(wire: Wire, client: httpx.AsyncClient | None) -> tuple[int, ProviderError]:
    """How much memory reading a reply took at most, beyond its bytes on the wire."""
    async with loopback_server([wire] * 2) as server:
        llm = create_llm_fn(server.provider(max_reply_bytes=LIMIT), client=client)
        tracemalloc.start()
        try:
            with pytest.raises(ProviderError) as caught:
                await llm(MESSAGES)
            return tracemalloc.get_traced_memory()[1], caught.value
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("own_client", [False, True])
@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
)
async def test_a_bomb_is_given_up_at_the_limit(
    encoding: str, pack: Callable[[bytes], bytes], status: int, own_client: bool
) -> None:
    wire = zipped(bomb(pack), encoding, status)
    async with httpx.AsyncClient() as client:
        peak, error = await peak_bytes(wire, client if own_client else None)

    assert peak < 6 * LIMIT
    if status == 200:
        assert isinstance(error, ProviderRefused)
        assert "larger than max_reply_bytes, 1048576 bytes" in str(error)
    else:
        assert error.status == status


@pytest.mark.parametrize("status", [200, 500])
async def test_a_bomb_in_a_bomb_is_not_even_begun(status: int) -> None:
    wire = zipped(gzip.compress(bomb(gzip.compress)), "gzip, gzip", status)
    peak, error = await peak_bytes(wire, None)

    assert peak < 2 * LIMIT
    assert isinstance(error, ProviderRefused if status == 200 else ProviderUnavailable)


async def test_what_is_not_compressed_is_given_up_at_the_limit_too() -> None:
    peak, error = await peak_bytes(Wire(data=http(200, b" " * (8 << 20))), None)

    assert peak < 14 * LIMIT  # the server's copy is 8
    assert "larger than" in str(error)


async def test_an_error_whose_body_is_a_bomb_is_tried_again() -> None:
    replies = [zipped(bomb(gzip.compress), "gzip", 503), zipped(b"?", "br", 429), PLAIN]
    async with loopback_server(replies) as server:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        llm = create_llm_fn(server.provider(max_attempts=3, max_reply_bytes=LIMIT), sleep=sleep)
        assert (await llm(MESSAGES)).text == "hello"

    assert len(waits) == 2


async def test_the_beginning_of_a_long_error_is_told() -> None:
    body = gzip.compress(b"out of service " * 100_000)
    async with loopback_server([zipped(body, "gzip", 400)]) as server:
        with pytest.raises(ProviderRefused, match="out of service") as caught:
            await create_llm_fn(server.provider(max_reply_bytes=LIMIT))(MESSAGES)

    assert len(caught.value.provider_message) == 2_000


async def test_the_doctor_takes_no_bomb_either() -> None:
    async with loopback_server([zipped(bomb(gzip.compress), "gzip")]) as server:
        findings = await examine(server.provider(max_reply_bytes=LIMIT))

    assert is_broken(findings)
    assert "larger than max_reply_bytes" in findings[0].words


def pieces(body: bytes, sizes: list[int]) -> list[bytes]:
    cuts = [0]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    return [body[a:b] for a, b in zip(cuts, [*cuts[1:], len(body)], strict=True)]


PACKERS = [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]


@given(
    st.binary(max_size=300) | st.binary(max_size=9).map(lambda part: part * 30_000),
    st.sampled_from(PACKERS),
    st.lists(st.integers(0, 50), max_size=5),
)
def test_any_body_comes_back_whole_however_it_is_cut(
    body: bytes, coding: tuple[str, Callable[[bytes], bytes]], sizes: list[int]
) -> None:
    decompressor = Decompressor(coding[0], 1 << 20)
    found = [made for each in pieces(coding[1](body), sizes) for made in decompressor.feed(each)]
    decompressor.finish()

    assert b"".join(found) == body


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "gzip,gzip", "\x00", ","]))
def test_no_body_and_no_header_gives_another_error(body: bytes, encoding: str) -> None:
    try:
        decompressor = Decompressor(encoding, 100)
        list(decompressor.feed(body))
        decompressor.finish()
    except (BadEncoding, TooLarge):
        pass
