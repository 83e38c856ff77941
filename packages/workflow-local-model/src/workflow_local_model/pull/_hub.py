"""Download weights as one file over HTTP, going on where an earlier download stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from anyio import to_thread

from workflow_local_model._catalogue import HubSource, LocalModel
from workflow_local_model._errors import SourceError
from workflow_local_model.pull._progress import Meter

_TIMEOUT = httpx.Timeout(30.0, connect=3.0)
_ATTEMPTS = 5
_MAX_REDIRECTS = 10
_OK, _PARTIAL_CONTENT = 200, 206
_CHUNK_BYTES = 1 << 20


async def fetch_from_hub(source: HubSource, model: LocalModel, part: Path, meter: Meter) -> None:
    """Bring `part` to the model's size. It is kept when this fails, so that a later call resumes.

    Raises:
        SourceError: the server can't be reached, refuses, or has a file of another size.
    """
    async with httpx.AsyncClient(timeout=_TIMEOUT) as client:
        for attempts_left in reversed(range(_ATTEMPTS)):
            before = size_of(part)
            if before == model.size_bytes:
                return
            try:
                await _download(client, source, model, part, meter)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                # Another attempt only where this one got somewhere: a hub that can't be reached
                # must not hold up the next source.
                if not attempts_left or size_of(part) <= before:
                    raise SourceError(source.url, f"{type(error).__name__} {error}") from error


async def _download(
    client: httpx.AsyncClient, source: HubSource, model: LocalModel, part: Path, meter: Meter
) -> None:
    start = size_of(part)
    if start > model.size_bytes:
        start = 0
    meter.start("connecting", source=source.url, done_bytes=start, tell=True)
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    async with _answer(client, source, headers) as response:
        start = _accepted_start(response, source, start)
        _check_coding(response, source)
        _check_length(response, source, expected=model.size_bytes - start)
        meter.start("downloading", source=source.url, done_bytes=start)
        await _write_body(response, part, start=start, size_bytes=model.size_bytes, meter=meter)


@asynccontextmanager
async def _answer(
    client: httpx.AsyncClient, source: HubSource, headers: Mapping[str, str]
) -> AsyncGenerator[httpx.Response]:
    """The answer at the end of all redirects. httpx would read and decompress what comes with each
    of them, without a bound."""
    request = client.build_request("GET", source.url, headers=headers)
    for _ in range(_MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        try:
            if response.next_request is None:
                yield response
                return
            request = response.next_request
        finally:
            await response.aclose()
    raise SourceError(source.url, f"redirects more than {_MAX_REDIRECTS} times")


def _check_coding(response: httpx.Response, source: HubSource) -> None:
    """What is compressed is not the file, and would be written as it is."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise SourceError(source.url, f"sends the file compressed ({coding[:40]!r}), unasked")


def _accepted_start(response: httpx.Response, source: HubSource, start: int) -> int:
    """The offset that the body begins at. A server may ignore a `Range` and send the whole."""
    if response.status_code == _OK:
        return 0
    content_range = response.headers.get("Content-Range", "")
    if response.status_code == _PARTIAL_CONTENT and content_range.startswith(f"bytes {start}-"):
        return start
    raise SourceError(source.url, f"answered {response.status_code} {response.reason_phrase}")


def _check_length(response: httpx.Response, source: HubSource, *, expected: int) -> None:
    length = response.headers.get("Content-Length")
    if length is not None and length != str(expected):
        raise SourceError(source.url, f"offers {length} bytes instead of {expected}")


async def _write_body(
    response: httpx.Response, part: Path, *, start: int, size_bytes: int, meter: Meter
) -> None:
    written = start
    with part.open("ab" if start else "wb") as file:
        async for chunk in response.aiter_raw(_CHUNK_BYTES):
            written += len(chunk)
            if written > size_bytes:
                raise httpx.RemoteProtocolError(f"more than the expected {size_bytes} bytes")
            await to_thread.run_sync(file.write, chunk)
            meter.advance(len(chunk))
    if written < size_bytes:
        raise httpx.RemoteProtocolError(f"the body ended after {written} of {size_bytes} bytes")


def size_of(path: Path) -> int:
    """The file's size, 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
