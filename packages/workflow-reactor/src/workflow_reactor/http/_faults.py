"""Sorts what can go wrong with a request: does it pass, or does it stay? One place decides."""

from __future__ import annotations

import email.utils
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Literal

import httpx
import msgspec

from workflow_reactor.http._error_body import ErrorBody, read_error, read_error_body

FaultKind = Literal["transient", "permanent", "content"]
"""`transient` passes by itself; `permanent` needs another key, URL or account; `content` needs
another conversation: a shorter one, or one that the provider's policy allows."""

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))
_PERMANENT_STATUS = frozenset({501, 505})

# Providers' own labels and words, as they stand in their error bodies.
_CONTENT_WORDS = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "exceed_context_size",
    "prompt is too long",
    "input token count",
    "request_too_large",
    "content_filter",
    "content_policy",
    "content management policy",
)
_PERMANENT_WORDS = (
    "insufficient_quota",
    "insufficient credit",
    "insufficient balance",
    "insufficient funds",
    "credit balance",
    "billing",
    "exceeded your current quota",
)
_TRANSIENT_WORDS = (
    "overloaded",
    "rate_limit",
    "rate limit",
    "too many requests",
    "resource_exhausted",
    "unavailable",
    "internal server error",
    "internal_error",
    "server_error",
    "try again",
    "timeout",
    "timed out",
    "tool_use_failed",  # the endpoint could not parse what the model wrote: the next may be good
    "json_validate_failed",
)


class ProviderFault(msgspec.Struct, frozen=True, kw_only=True):
    """One failed request, sorted."""

    kind: FaultKind
    message: str
    """Says whose fault it is, in the provider's own words where it gave some."""
    status: int | None = None
    provider_message: str = ""
    retry_after_s: float | None = None

    def without(self, secret: str) -> ProviderFault:
        """The same with a secret taken out of its words."""
        return msgspec.structs.replace(
            self,
            message=without_secret(self.message, secret),
            provider_message=without_secret(self.provider_message, secret),
        )


def without_secret(text: str, secret: str) -> str:
    """Take a secret out of a text."""
    return text.replace(secret, "…") if secret else text


def fault_of_status(status: int, headers: Mapping[str, str], body: bytes) -> ProviderFault:
    """Sort an HTTP error."""
    if 300 <= status < 400:
        return ProviderFault(
            kind="permanent",
            message=f"the server answered {status}, a redirect{_target(headers)}",
            status=status,
        )
    error = read_error_body(body)
    wished = retry_after(headers)
    return ProviderFault(
        kind=_kind(status, error),
        message=f"the provider answered {status}" + (f": {error.message}" if error.message else ""),
        status=status,
        provider_message=error.message,
        retry_after_s=error.retry_after_s if wished is None else wished,
    )


def fault_of_error(error: object, headers: Mapping[str, str]) -> ProviderFault:
    """Sort an error object that came under status 200."""
    found = read_error(error)
    wished = retry_after(headers)
    return ProviderFault(
        kind=_kind(found.code, found),
        message=f"the provider answered 200 with an error: {found.message}",
        status=found.code,
        provider_message=found.message,
        retry_after_s=found.retry_after_s if wished is None else wished,
    )


def _kind(status: int | None, error: ErrorBody) -> FaultKind:
    words = f"{error.labels} {error.message}".lower()
    if any(word in words for word in _PERMANENT_WORDS):
        return "permanent"
    if status == 413 or (
        status in {None, 400, 422, 500} and any(word in words for word in _CONTENT_WORDS)
    ):
        return "content"
    if status in _PERMANENT_STATUS:
        return "permanent"
    if status in _TRANSIENT_STATUS:
        return "transient"
    if status in {None, 400} and any(word in words for word in _TRANSIENT_WORDS):
        return "transient"
    return "permanent"


def _target(headers: Mapping[str, str]) -> str:
    """Where a redirect leads, without the query, which may hold a token."""
    location = headers.get("location", "").partition("?")[0][:200]
    return f" to {location!r}; set base_url to where it leads" if location else ""


def fault_of_exception(error: Exception) -> ProviderFault:
    """Sort what sending or receiving raised."""
    words = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        phase = type(error).__name__.removesuffix("Timeout").lower()
        return ProviderFault(kind="transient", message=f"the connection timed out ({phase})")
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | UnicodeError):
        return ProviderFault(kind="permanent", message=f"the request can't be sent: {words}")
    tls = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return ProviderFault(
            kind="permanent",
            message=f"the server's certificate is not trusted: {tls.verify_message}",
        )
    if tls is not None and tls.reason in _NOT_TLS:
        return ProviderFault(
            kind="permanent",
            message="the server does not speak TLS on this port; is base_url http:// there?",
        )
    if isinstance(error, httpx.DecodingError):
        return ProviderFault(
            kind="transient", message=f"the reply's compression is broken: {words}"
        )
    if isinstance(error, httpx.RemoteProtocolError):
        return ProviderFault(kind="transient", message=f"the server broke off or garbled: {words}")
    return ProviderFault(kind="transient", message=f"the connection failed: {words}")


_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was raised from, the last cause at the end."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long the provider asks to wait, in seconds: RFC 9110 §10.2.3, or `-ms`.

    An HTTP date counts from the server's own `Date`, so that a clock that is off does no harm.
    """
    in_ms = _number(headers.get("retry-after-ms"))
    if in_ms is not None:
        return in_ms / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    until = _timestamp(value)
    if until is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _timestamp(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
