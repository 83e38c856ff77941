import email.utils
import json
import ssl
import time
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "too_long"),
        (400, {"error": {"message": "the prompt is too long: 9 > 8"}}, "too_long"),
        (400, {"error": {"message": "x", "code": "content_filter"}}, "not_allowed"),
        (400, {"error": {"message": "x", "type": "exceed_context_size_error"}}, "too_long"),
        (400, {"error": {"message": "x", "code": "tool_use_failed"}}, "transient"),
        (401, {"error": {"message": "key"}}, "permanent"),
        (402, {"error": {"message": "pay"}}, "permanent"),
        (408, "", "transient"),
        (409, "", "transient"),
        (413, "", "too_long"),
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
        (498, {"error": {"message": "flex tier capacity exceeded"}}, "transient"),
        (599, "", "transient"),
        (400, {"__type": "ThrottlingException", "message": "m"}, "transient"),
        (400, {"__type": "com.amazon.coral#ThrottlingException", "message": "m"}, "transient"),
        (400, {"error_code": "rate_limit_exceeded", "error_msg": "m"}, "transient"),
        (429, {"errorCode": "insufficient_quota", "message": "m"}, "permanent"),
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
        ({"message": "maximum context length is 9"}, "too_long"),
        ("Service temporarily unavailable", "transient"),
    ],
)
def test_errors_under_status_200_are_sorted_too(error: Any, kind: str) -> None:
    assert fault_of_error(error, {}).kind == kind


def test_a_redirect_says_where_to_without_the_values_of_the_query() -> None:
    fault = fault_of_status(308, {"location": "https://new.test/v1?token=x"}, b"")

    assert "a redirect to 'https://new.test/v1?token=…'; set base_url" in fault.message


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("//user:password@new.test/v1?token=x", "//…@new.test/v1?token=…"),
        ("/v1/sk-abcdefghijkl?token=x", "/v1/[key]"),
        ("/login#key=abcdefghijkl", "/login"),
    ],
)
def test_a_redirect_within_the_host_shows_no_key_either(location: str, shown: str) -> None:
    fault = fault_of_status(302, {"location": location}, b"")

    assert f"a redirect to {shown!r}; set base_url" in fault.message


def test_the_wish_to_wait_is_read_in_each_form() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "2500", "retry-after": "9"}) == 2.5
    assert 28 < (retry_after({"retry-after": date}) or 0) <= 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "2, 5"}) == 5  # a proxy has added its own
    for nonsense in ("-1", "1, soon", "soon", "inf", "nan", "", "Wed, 99 Oct 99999 07:28:00 GMT"):
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


BILLING = "Rate limit reached. Upgrade in billing: https://host.test/billing"


def _kind(status: int, headers: dict[str, str] | None = None, /, **error: Any) -> str:
    return fault_of_status(status, headers or {}, json.dumps({"error": error}).encode()).kind


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (429, {"retry-after": "1"}, {"message": BILLING, "code": "rate_limit_exceeded"}),
        (429, {}, {"message": BILLING, "code": "rate_limit_exceeded", "type": "requests"}),
        (429, {}, {"message": BILLING}),
        (429, {"retry-after": "1"}, {"message": "x", "code": "insufficient_quota"}),
        (429, {"retry-after-ms": "900"}, {"message": "x", "type": "insufficient_quota"}),
        (429, {}, {"message": "Quota: please retry in 9s.", "code": "insufficient_quota"}),
        (
            429,
            {},
            {
                "message": "You exceeded your current quota, check your plan and billing details.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"retryDelay": "34s"}],
            },
        ),
        (429, {}, {"message": "Too many tokens, please wait before trying again."}),
        (503, {}, {"message": "the billing service is unavailable"}),
        (503, {}, {"message": "x", "code": "billing_service_unavailable"}),
        (500, {}, {"message": "insufficient balance of load"}),
        (502, {}, {"message": "credit balance service timed out"}),
        (403, {}, {"message": "x", "status": "rateLimitExceeded"}),
        (400, {}, {"message": "Too many tokens, wait", "type": "ThrottlingException"}),
        (400, {}, {"message": "x", "code": "json_validate_failed"}),
    ],
)
def test_what_passes_is_tried_again_whatever_its_words(
    status: int, headers: dict[str, str], error: dict[str, Any]
) -> None:
    assert _kind(status, headers, **error) == "transient"


@pytest.mark.parametrize(
    "code",
    [
        "insufficient_quota",
        "insufficient_balance",
        "InsufficientCredits",
        "insufficient_user_quota",
        "exceeded_current_quota_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "quota_exceeded",
        "Arrearage",
        "payment_required",
    ],
)
def test_only_a_code_says_that_an_account_is_empty(code: str) -> None:
    for status in (400, 402, 403, 429):
        assert _kind(status, message="pay", code=code) == "permanent"
    assert _kind(429, message=f"not a word of it: {code}") == "transient"


@pytest.mark.parametrize(
    "words",
    [
        "Remove s3Uri and try again",
        "unsupported_file: please try again with a PDF",
        "Unknown parameter: 'timeout'",
        "tools are temporarily not supported",
        "Model unavailable in your region; the service is unavailable",
        "server_error in your template",
        "rate limit must be a number",
        "the request timed out of range",
        "overloaded function add is ambiguous",
        "Too many requests in the batch",
        "internal_error is no known field",
        "try again in 2s",
    ],
)
def test_a_wrong_request_is_never_tried_again_for_its_words(words: str) -> None:
    for status in (400, 404, 422):
        assert _kind(status, message=words, type="invalid_request_error") == "permanent"
    assert fault_of_error({"message": words, "code": 400}, {}).kind == "permanent"


@given(st.text(max_size=200), st.sampled_from([400, 404, 422, 405, 415]))
def test_no_text_makes_a_wrong_request_pass(words: str, status: int) -> None:
    assert _kind(status, message=words) != "transient"


@given(st.text(max_size=200), st.sampled_from([408, 409, 425, 502, 503, 504, 529]))
def test_no_text_makes_a_fault_of_the_server_stay(words: str, status: int) -> None:
    assert _kind(status, message=words) == "transient"


@pytest.mark.parametrize(
    "words",
    [
        "The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy.",
        "Content Exists Risk",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        "Output blocked by content filtering policy",
        "Input data may contain inappropriate content.",
        "Your request was rejected as a result of our safety system.",
        "Your chosen model requires moderation and your input was flagged",
        "系统检测到输入或生成内容可能包含不安全或敏感内容",
    ],
)  # fmt: skip
def test_what_a_policy_forbids_is_told_apart(words: str) -> None:
    assert _kind(400, message=words) == "not_allowed"
    assert _kind(403, message=words) == "not_allowed"


@pytest.mark.parametrize(
    "words",
    [
        "Unknown parameter: 'moderation'",
        "Unrecognized request argument supplied: safety_settings",
        "content_filter must be a boolean",
        "The field content_filter: extra inputs are not permitted",
    ],
)
def test_a_parameter_that_is_named_after_a_policy_is_a_wrong_request(words: str) -> None:
    assert _kind(400, message=words, type="invalid_request_error") == "permanent"


def test_a_request_larger_than_its_whole_rate_limit_never_fits() -> None:
    words = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."

    assert _kind(429, message=words, code="rate_limit_exceeded", type="tokens") == "too_long"
    assert _kind(413, message=words, code="rate_limit_exceeded") == "too_long"
    assert _kind(429, {"retry-after": "3"}, message=words) == "transient"
