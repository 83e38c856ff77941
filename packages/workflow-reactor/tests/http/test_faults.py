import email.utils
import json
import ssl
import time
from typing import Any

import httpx
import pytest

from workflow_reactor.http._faults import (
    ProviderFault,
    fault_of_error,
    fault_of_exception,
    fault_of_status,
    retry_after,
)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "bad"}}, "permanent"),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "content"),
        (400, {"error": {"message": "the prompt is too long: 9 > 8"}}, "content"),
        (400, {"error": {"message": "x", "code": "content_filter"}}, "content"),
        (400, {"error": {"message": "x", "type": "exceed_context_size_error"}}, "content"),
        (400, {"error": {"message": "x", "code": "tool_use_failed"}}, "transient"),
        (401, {"error": {"message": "key"}}, "permanent"),
        (402, {"error": {"message": "pay"}}, "permanent"),
        (408, "", "transient"),
        (409, "", "transient"),
        (413, "", "content"),
        (425, "", "transient"),
        (429, {"error": {"message": "slow down"}}, "transient"),
        (429, {"error": {"message": "x", "type": "insufficient_quota"}}, "permanent"),
        (500, "<html>", "transient"),
        (501, "", "permanent"),
        (503, "", "transient"),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            "transient",
        ),
        (301, "", "permanent"),
        (599, "", "transient"),
        (999, "", "permanent"),
    ],
)
def test_statuses_are_sorted_into_what_passes_what_stays_and_what_the_conversation_did(
    status: int, body: Any, kind: str
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    assert fault_of_status(status, {}, raw).kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "upstream failed", "code": 502}, "transient"),
        ({"message": "insufficient credit", "code": 402}, "permanent"),
        ({"message": "Overloaded", "code": "529"}, "transient"),
        ({"message": "model is overloaded"}, "transient"),
        ({"message": "m", "code": "rate_limit_exceeded"}, "transient"),
        ({"message": "m", "status": "RESOURCE_EXHAUSTED"}, "transient"),
        ({"message": "no such model"}, "permanent"),
        ({"message": "maximum context length is 9"}, "content"),
        ("Service temporarily unavailable", "transient"),
    ],
)
def test_errors_under_status_200_are_sorted_too(error: Any, kind: str) -> None:
    assert fault_of_error(error, {}).kind == kind


def test_a_redirect_says_where_to_without_the_query() -> None:
    fault = fault_of_status(308, {"location": "https://new.test/v1?token=x"}, b"")

    assert "a redirect to 'https://new.test/v1'; set base_url" in fault.message


def test_the_wish_to_wait_is_read_in_each_form() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "2500", "retry-after": "9"}) == 2.5
    assert 28 < (retry_after({"retry-after": date}) or 0) <= 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ("-1", "soon", "inf", "nan", "", "Wed, 99 Oct 99999 07:28:00 GMT"):
        assert retry_after({"retry-after": nonsense}) is None
    assert retry_after({}) is None
    body = b'{"error": {"message": "m", "details": [{"retryDelay": "7s"}]}}'
    assert fault_of_status(429, {}, body).retry_after_s == 7
    assert fault_of_status(429, {"retry-after": "1"}, body).retry_after_s == 1


def test_a_date_counts_from_the_servers_own_clock() -> None:
    headers = {
        "retry-after": "Wed, 21 Oct 2015 07:28:05 GMT",
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
    }

    assert retry_after(headers) == 5


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (httpx.ConnectTimeout(""), "transient", "timed out (connect)"),
        (httpx.PoolTimeout(""), "transient", "timed out (pool)"),
        (httpx.ReadError(""), "transient", "the connection failed: ReadError"),
        (httpx.RemoteProtocolError("half"), "transient", "broke off or garbled: half"),
        (httpx.DecodingError("bad"), "transient", "compression is broken: bad"),
        (httpx.UnsupportedProtocol("gopher"), "permanent", "can't be sent: gopher"),
        (UnicodeError("label too long"), "permanent", "can't be sent: label too long"),
    ],
)
def test_exceptions_are_sorted_in_the_same_place(error: Exception, kind: str, words: str) -> None:
    fault = fault_of_exception(error)

    assert fault.kind == kind
    assert words in fault.message


def test_a_certificate_that_is_not_trusted_stays_so() -> None:
    cause = ssl.SSLCertVerificationError("x")
    cause.verify_message = "self-signed certificate"
    error = httpx.ConnectError("x")
    error.__cause__ = cause

    assert fault_of_exception(error) == ProviderFault(
        kind="permanent", message="the server's certificate is not trusted: self-signed certificate"
    )
