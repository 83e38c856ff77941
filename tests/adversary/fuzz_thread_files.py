"""Thread files that somebody wrote who knows the form: all hashes are right, a record is not."""

from __future__ import annotations

import hashlib
import random
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec

from workflow_cas import MemoryStore
from workflow_execute import (
    ThreadFileError,
    import_thread,
    read_attempts,
    read_summaries,
    read_tree,
)

SAMPLE = Path(__file__).parents[1] / "durability" / "samples" / "thread-format-1.uwf"
_START, _OBJECT = 9, struct.Struct(">BQ32s")
_ODD: list[object] = [
    None, True, 0, -1, 2**70, 1.5, "", "x", "../x", "0" * 64, [], ["a"], {}, {"a": 1}, "é\x00",
]  # fmt: skip


def changed_bytes(rng: random.Random) -> bytes:
    """The sample with some bytes changed, half of the time under a digest that fits."""
    data = bytearray(SAMPLE.read_bytes())
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + rng.randint(1, 64)]
            case _:
                data[at:at] = rng.randbytes(rng.randint(1, 16))
    body = bytes(data[:-32])
    return body + hashlib.sha256(body).digest() if rng.randrange(2) else bytes(data)


def changed_records(rng: random.Random) -> bytes:
    """The sample with some values in its records replaced, and every hash after that made anew."""
    data = SAMPLE.read_bytes()
    size = int.from_bytes(data[_START : _START + 4], "big")
    header = data[_START + 4 : _START + 4 + size]
    objects = list(_objects(data[_START + 4 + size : -32]))
    chosen = {rng.randrange(len(objects)) for _ in range(rng.randint(1, 2))}
    renamed: dict[bytes, bytes] = {}
    parts: list[bytes] = []
    for number, (kind, hash, body) in enumerate(objects):
        for old, new in renamed.items():
            body = body.replace(old, new)
        if number in chosen:
            body = _changed(rng, body) if kind else rng.randbytes(rng.randint(0, 9))
        made = hashlib.sha256(b"%s %d\0" % ((b"content", b"node")[kind], len(body)) + body)
        renamed[hash.hex().encode()] = made.hexdigest().encode()
        parts.append(_OBJECT.pack(kind, len(body), made.digest()) + body)
    for old, new in renamed.items():
        header = header.replace(old, new)
    told = cast("dict[str, Any]", msgspec.json.decode(header))
    told["bytes"] = sum(len(part) - _OBJECT.size for part in parts)
    encoded = msgspec.json.encode(told)
    whole = data[:_START] + len(encoded).to_bytes(4, "big") + encoded + b"".join(parts)
    return whole + hashlib.sha256(whole).digest()


def thread_files(rng: random.Random) -> None:
    """A thread file that was changed is refused, or a thread that can be read comes out of it."""
    data = changed_bytes(rng) if rng.randrange(3) == 0 else changed_records(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.uwf"
        path.write_bytes(data)
        anyio.run(_take, path)


async def _take(path: Path) -> None:
    store = MemoryStore()
    try:
        done = await import_thread(store, path)
    except ThreadFileError:
        assert not await store.refs()
        return
    assert (await store.verify()).ok
    await read_summaries(store)
    for part in (await read_tree(store, done.thread_id)).walk():
        for step in part.thread.steps:
            await read_attempts(store, step.turn)
            _ = step.failure


def _objects(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    at = 0
    while at < len(data):
        kind, size, hash = cast("tuple[int, int, bytes]", _OBJECT.unpack_from(data, at))
        at += _OBJECT.size
        yield kind, hash, data[at : at + size]
        at += size


def _changed(rng: random.Random, body: bytes) -> bytes:
    """A node with a value replaced, taken out or put in, wherever that is."""
    node = cast("dict[str, Any]", msgspec.json.decode(body))
    places = list(_places(node))
    inside, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, list):
            cast("list[object]", inside).insert(0, rng.choice(_ODD))
        case _:
            inside[key] = rng.choice(_ODD)
    return msgspec.json.encode(node, order="sorted")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    is_object = isinstance(value, dict)
    keys = list(cast("dict[str, Any]", value)) if is_object else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
