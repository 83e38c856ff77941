"""Sorts what can go wrong with a request: does it pass, or does it stay? One place decides."""

from __future__ import annotations

import email.utils
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import httpx
import msgspec

from workflow_reactor._shown_url import shown_url, without_keys
from workflow_reactor.http._error_body import ErrorBody, read_error, read_error_body

FaultKind = Literal["transient", "permanent", "too_long", "not_allowed"]
"""`transient` passes by itself; `permanent` needs another key, URL, account or request; `too_long`
a shorter conversation; `not_allowed` one that the provider's policy allows."""

# 498 is what Groq answers where its flex tier is full: https://console.groq.com/docs/errors
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 498}) | frozenset(range(500, 600))
_PERMANENT_STATUS = frozenset({501, 505})
_MAY_BE_TOO_LONG = frozenset({None, 400, 422, 500})
_MAY_BE_POLICY = frozenset({None, 400, 403, 422, 451})

# Codes, as providers write them in `code`, `type` and `status`, in lower case without `_` and `-`.
_PASSING_CODES = re.compile(
    r"(rate|request|token)s?limit(exceeded|reached|error)?(exception)?|toomanyrequests(exception)?"
    r"|throttl\w*|overloaded\w*|resourceexhausted|engineoverloaded\w*|slowdown"
    r"|tooluse(failed)|jsonvalidatefailed"  # what the model wrote was no call: the next may be
)
_QUOTA_CODES = re.compile(
    r"insufficient\w*(quota|balance|credits?|funds)|(exceededcurrent|current)?quota(exceeded\w*)"
    r"|exceededcurrentquota\w*|billing(hard|soft)?limit\w*|billingnotactive|paymentrequired|arrearage|(out|no)(of)?credits?"
    r"|credits?(exhausted|depleted)|quotaexhausted|accountoverdue\w*"
)
_POLICY_WORDS = re.compile(
    r"content[ _-]?(?:filter|policy|management policy|moderation)|responsible ?ai|moderation"
    r"|usage polic|safety (?:system|polic|filter|setting)|prohibited.content|flagged"
    r"|data_?inspection|inappropriate content|content exists risk|sensitive content|敏感"
)
_NAMES_A_PARAMETER = re.compile(
    r"(?:unknown|unrecogni[sz]ed|unexpected|unsupported|not supported|invalid)[^.]{0,40}?"
    r"\b(?:parameter|argument|field|keyword|option)s?\b|\bmust be (?:a|an|one|of|either)\b"
    r"|extra inputs are not permitted"
)
# Only where nothing else says what kind it is: an error under status 200 without a code.
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
    "unavailable",
    "internal server error",
    "internal_error",
    "server_error",
    "try again",
    "timeout",
    "timed out",
)


class ProviderFault(msgspec.Struct, frozen=True, kw_only=True):
    """One failed request, sorted."""

    kind: FaultKind
    message: str
    """Says whose fault it is, in the provider's own words where it gave some."""
    status: int | None = None
    provider_message: str = ""
    retry_after_s: float | None = None

    def without(self, secrets: Iterable[str]) -> ProviderFault:
        """The same with secrets taken out of its words."""
        return msgspec.structs.replace(
            self,
            message=without_secrets(self.message, secrets),
            provider_message=without_secrets(self.provider_message, secrets),
        )


MIN_SECRET = 8
"""A shorter one may be a part of any word, and is no secret worth the name."""


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Take secrets out of a text, also the beginning of one where the text was cut."""
    for secret in secrets:
        if len(secret) < MIN_SECRET:
            continue
        text = text.replace(secret, "…")
        if secret[:MIN_SECRET] in text:
            for end in range(len(secret) - 1, MIN_SECRET - 1, -1):
                text = re.sub(rf"{re.escape(secret[:end])}(?=$| \(|')", "…", text)
    return text


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
    wished = error.retry_after_s if wished is None else wished
    return ProviderFault(
        kind=_kind(status, error, wished),
        message=f"the provider answered {status}" + (f": {error.message}" if error.message else ""),
        status=status,
        provider_message=error.message,
        retry_after_s=wished,
    )


def fault_of_error(
    error: object, headers: Mapping[str, str], *, began: bool = False
) -> ProviderFault:
    """Sort an error object that came under status 200.

    Args:
        began: the beginning of a reply came with it, so the request was right.
    """
    found = read_error(error)
    wished = retry_after(headers)
    wished = found.retry_after_s if wished is None else wished
    kind = _kind(found.code, found, wished)
    if began and kind == "permanent" and found.code is None:
        kind = "transient"
    return ProviderFault(
        kind=kind,
        message=f"the provider answered 200 with an error: {found.message}",
        status=found.code,
        provider_message=found.message,
        retry_after_s=wished,
    )


def _kind(status: int | None, error: ErrorBody, wished_s: float | None) -> FaultKind:
    """Sort by status, by codes and by the wish to wait; by words only what these leave open."""
    # Compiling its patterns takes 3 ms, which no run without an error has to wait for.
    from workflow_reactor.http._too_long import says_never_fits, says_too_long

    words = f"{error.labels} {error.message}".lower()
    codes = [re.sub("[_.-]", "", label) for label in re.split(r"[\s#:/]+", error.labels.lower())]
    passing = any(_PASSING_CODES.fullmatch(code) for code in codes)
    if status in _PERMANENT_STATUS:
        return "permanent"
    if status == 413 or (status == 429 and wished_s is None and says_never_fits(words)):
        return "too_long"
    if passing:
        return "transient"
    if wished_s is None and any(_QUOTA_CODES.fullmatch(code) for code in codes):
        return "permanent"
    if status in _MAY_BE_TOO_LONG and says_too_long(words):
        return "too_long"
    if status in _MAY_BE_POLICY and _says_not_allowed(words):
        return "not_allowed"
    if status in _TRANSIENT_STATUS:
        return "transient"
    return _kind_by_words(words, wished_s) if status is None else "permanent"


def _says_not_allowed(words: str) -> bool:
    """Whether a policy is meant, and not a parameter of the request that is named after one."""
    return bool(_POLICY_WORDS.search(words)) and not _NAMES_A_PARAMETER.search(words)


def _kind_by_words(words: str, wished_s: float | None) -> FaultKind:
    if wished_s is not None:
        return "transient"
    if any(word in words for word in _PERMANENT_WORDS):
        return "permanent"
    return "transient" if any(word in words for word in _TRANSIENT_WORDS) else "permanent"


def _target(headers: Mapping[str, str]) -> str:
    """Where a redirect leads, without what may be a token."""
    location = headers.get("location", "")
    if location.startswith("//"):
        shown = shown_url(f"https:{location}").removeprefix("https:")
    elif "://" in location:
        shown = shown_url(location)
    else:
        shown = without_keys(re.split("[?#]", location)[0])
    return f" to {shown[:200]!r}; set base_url to where it leads" if location else ""


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
    if value is None:
        return None
    several = [_number(each) for each in value.split(",")]  # of the server and of a proxy
    seconds = [each for each in several if each is not None]
    if len(seconds) == len(several):
        return max(seconds)
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
