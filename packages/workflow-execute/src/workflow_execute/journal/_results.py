"""Results of effects as bytes, and how a record keeps them."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from workflow_cas import Stored, content
from workflow_execute._budget import Charge
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord
from workflow_protocol import text_fault

T = TypeVar("T")

MOST_INLINE_BYTES = 64 * 1024
"""A longer result is an object of its own, so that a record stays small."""

_nested = msgspec.json.Decoder(list[list[list[msgspec.Raw]]])


def check_journal_key(key: str) -> None:
    """Refuse a key that no record can have.

    Raises:
        ValueError: it is not UTF-8.
    """
    if words := text_fault(key):
        raise ValueError(f"the journal's key {key!r} {words}; give each effect a plain key")


def encode(value: object, key: str) -> bytes:
    """The result of an effect as bytes.

    Raises:
        ValueError: it holds text that is not UTF-8.
    """
    try:
        return value if isinstance(value, bytes) else msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the result of {key!r} can't be recorded: a text in it has half of a pair or a byte "
            "of a name that is none; return text, such as escaped_text(…) of workflow_protocol"
        ) from error


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
