"""Sorts what can go wrong with a request: does it pass, or does it stay? One place decides."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

MAX_QUOTE = 2_000

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))
_TRANSIENT_WORDS = ("overloaded", "rate_limit", "rate limit", "unavailable", "timeout", "timed out")
_PERMANENT_WORDS = ("insufficient_quota", "insufficient credit", "billing", "context_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFault:
    """One failed request, sorted."""

    transient: bool
    message: str
    """Says whose fault it is, in the provider's own words where it gave some."""
    status: int | None = None
    provider_message: str = ""
    retry_after_s: float | None = None


def fault_of_status(status: int, headers: Mapping[str, str], body: bytes) -> ProviderFault:
    """Sort an HTTP error."""
    try:
        error: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        error = body.decode("utf-8", "replace").strip()
    words, _ = error_words(error)
    lowered = words.lower()
    transient = status in _TRANSIENT_STATUS and not any(w in lowered for w in _PERMANENT_WORDS)
    return ProviderFault(
        transient=transient,
        message=f"the provider answered {status}" + (f": {words}" if words else ""),
        status=status,
        provider_message=words,
        retry_after_s=retry_after(headers),
    )


def fault_of_error_body(error: object) -> ProviderFault:
    """Sort an error object that came under status 200."""
    words, code = error_words(error)
    lowered = words.lower()
    if code is not None:
        transient = code in _TRANSIENT_STATUS
    else:
        transient = any(word in lowered for word in _TRANSIENT_WORDS)
    transient = transient and not any(word in lowered for word in _PERMANENT_WORDS)
    return ProviderFault(
        transient=transient,
        message=f"the provider answered with an error: {words}",
        status=code,
        provider_message=words,
    )


def error_words(error: object) -> tuple[str, int | None]:
    """Find the message and the numeric code in any of the error shapes in use.

    `{"error": {"message", "code"}}`, `{"type": "error", "error": {…}}`, `[{"error": {…}}]`,
    `{"error": "text"}`, `{"detail": "text"}`, and plain text.
    """
    code: int | None = None
    for _ in range(4):
        if isinstance(error, list) and error:
            error = cast("list[Any]", error)[0]
        if not isinstance(error, dict):
            break
        fields = cast("dict[str, Any]", error)
        number = fields.get("code", fields.get("status"))
        if isinstance(number, str) and number.isdigit():
            number = int(number)
        if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600:
            code = number
        inner = fields.get("error") or fields.get("message") or fields.get("detail")
        if inner is None:
            error = msgspec.json.encode(fields).decode()
            break
        kind = fields.get("type")
        error = f"{inner} ({kind})" if isinstance(inner, str) and isinstance(kind, str) else inner
    text = error if isinstance(error, str) else ""
    return " ".join(text.split())[:MAX_QUOTE], code


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long the provider asks to wait, in seconds: RFC 9110 §10.2.3, or `-ms`."""
    in_ms = _number(headers.get("retry-after-ms"))
    if in_ms is not None:
        return in_ms / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        wait = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return max(0.0, wait)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
