"""Results of effects as bytes, and how a record keeps them."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from workflow_cas import Stored, content
from workflow_execute._budget import Charge
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord

T = TypeVar("T")

MOST_INLINE_BYTES = 64 * 1024
"""A longer result is an object of its own, so that a record stays small."""

_nested = msgspec.json.Decoder(list[list[list[msgspec.Raw]]])


def encode(value: object) -> bytes:
    """A result as bytes."""
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


def decode(data: bytes, type_: type[T]) -> T:
    """A result from its bytes."""
    if type_ is bytes:
        return cast("T", data)
    return msgspec.json.decode(data, type=type_)


def with_result(
    record: TurnRecord, data: bytes, charge: Charge, took_s: float
) -> tuple[TurnRecord, tuple[Stored, ...]]:
    """Put a result into its record: short JSON inside it, which saves an object, else a content."""
    is_json = len(data) <= MOST_INLINE_BYTES and _is_json(data)
    record = msgspec.structs.replace(
        record,
        at_ms=now_ms(),
        value=msgspec.Raw(data) if is_json else msgspec.UNSET,
        charged_tokens=charge.tokens,
        charged_micros=charge.micros,
        took_ms=int(took_s * 1000),
    )
    return record, () if is_json else (content(data),)


def _is_json(data: bytes) -> bool:
    """Whether the bytes are one JSON value that comes back from inside another as it is."""
    try:
        data.decode()
        inside = b"[[[%s]]]" % data  # a record has it that deep, and depth is limited
        return bytes(_nested.decode(inside)[0][0][0]) == data
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError, IndexError):
        return False
