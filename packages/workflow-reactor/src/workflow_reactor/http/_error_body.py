"""Reads the error bodies of providers, whichever shape they chose."""

from __future__ import annotations

from typing import Any, cast

import msgspec

MAX_QUOTE = 2_000
_MAX_LABEL = 100
_MAX_DEPTH = 6


class ErrorBody(msgspec.Struct, frozen=True):
    """What an error body says."""

    message: str = ""
    """The provider's own words, on one line, cut to 2,000 characters."""
    code: int | None = None
    """The HTTP status that the body itself names."""
    labels: str = ""
    """Its types, codes and statuses in words, such as `insufficient_quota`."""
    retry_after_s: float | None = None
    """How long it asks to wait, in a field or in words such as `try again in 2s`."""


def read_error_body(body: bytes) -> ErrorBody:
    """Read the body of an HTTP error; text that isn't JSON is the message."""
    try:
        error: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        error = body.decode("utf-8", "replace")
    return read_error(error)


def read_error(error: object) -> ErrorBody:
    """Find the message and what classifies it.

    The shapes in use: `{"error": {"message", "type", "code"}}` (also with the upstream's own error
    in `metadata.raw`), `{"type": "error", "error": {"type", "message"}}`,
    `[{"error": {"code", "message", "status", "details"}}]`, `{"error": "text"}`, `{"message"}` or
    `{"detail"}` (a text, or a list of `{"loc", "msg"}`), and plain text.
    """
    from workflow_reactor.http._wish import wished_wait  # only errors need its patterns

    code: int | None = None
    labels: list[str] = []
    wish_s = wished_wait(error if isinstance(error, str) else _compact(error))
    upstream = ""
    for _ in range(_MAX_DEPTH):
        if isinstance(error, list) and error:
            error = cast("list[Any]", error)[0]
        if not isinstance(error, dict):
            break
        fields = cast("dict[str, Any]", error)
        code = _status(fields) or code
        labels += [each[:_MAX_LABEL] for key in _LABELS if isinstance(each := fields.get(key), str)]
        upstream = upstream or _upstream(fields.get("metadata"))
        inner = next((fields[key] for key in _INNER if fields.get(key)), None)
        error = _compact(fields) if inner is None else inner
    text = error if isinstance(error, str) else (_compact(cast("object", error)) if error else "")
    labels = [label for label in dict.fromkeys(labels) if label != "error"]
    return ErrorBody(_quote(text, upstream, labels), code, " ".join(labels), wish_s)


_LABELS = ("type", "code", "status", "__type", "error_type", "error_code", "errorCode")
_INNER = ("error", "message", "detail", "msg", "errors")


def _status(fields: dict[str, Any]) -> int | None:
    for key in ("code", "status", "status_code"):
        number: object = fields.get(key)
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) == 3:
            number = int(number)
        if isinstance(number, int) and 400 <= number < 600:
            return number
    return None


def _upstream(metadata: object) -> str:
    """What the provider behind a router said, as text or as an error body in a string."""
    raw = cast("dict[str, Any]", metadata).get("raw") if isinstance(metadata, dict) else None
    return read_error_body(raw.encode("utf-8", "replace")).message if isinstance(raw, str) else ""


def _quote(text: str, upstream: str, labels: list[str]) -> str:
    words = " ".join(text.split())
    if upstream:
        words = f"{words}: {' '.join(upstream.split())}" if words else " ".join(upstream.split())
    tail = f" ({labels[0]})" if labels and words and labels[0].lower() not in words.lower() else ""
    return words[: MAX_QUOTE - len(tail)] + tail[:MAX_QUOTE]


def _compact(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return ""
