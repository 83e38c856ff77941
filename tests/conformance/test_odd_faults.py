"""What goes wrong between us and the model, one a line: retried and done, or the typed error."""

# ruff: noqa: E501 - an entry is a line, however long

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from workflow_protocol import Retrying
from workflow_reactor import (
    ContentRefused,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from workflow_reactor.testing import Wire, call, http

RESOLVE = call("resolve", answer=42)
WHOLE = http(200, RESOLVE)
HTML = b"<html>gateway</html>"
ZIPPED = gzip.compress(RESOLVE)


def error(message: str, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


def status(number: int, body: bytes = b"", **headers: str) -> Wire:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Wire(data=http(number, body, names))


class Fault(NamedTuple):
    """One answer of the server; `None`: it was retried once, and the run came to 42."""

    id: str
    wire: Wire
    error: type[ProviderError] | None = None
    words: str = ""
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed


SHORT = {"timeout_s": 0.3}

FAULTS = [
    # errors that pass
    Fault("429", status(429, error("slow down"))),
    Fault("408", status(408)),
    Fault("409", status(409)),
    Fault("500-html", status(500, HTML)),
    Fault("502-empty", status(502)),
    Fault("503-text", status(503, b"upstream connect error")),
    Fault("529-overloaded", status(529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')),
    Fault("500-bad-history-parser", status(500, error("error parsing tool call: raw='{'"))),
    Fault("400-model-wrote-no-call", status(400, error("Failed to call a function", code="tool_use_failed"))),
    Fault("200-error-502", status(200, b'{"error": {"message": "upstream failed", "code": 502}, "choices": null}')),
    Fault("200-error-in-choice", status(200, b'{"choices": [{"error": {"message": "x", "code": 503}}]}')),
    Fault("200-half-text-and-502", status(200, b'{"choices": [{"message": {"content": "hal"}, "finish_reason": "error", "error": {"message": "x", "code": 502}}]}')),
    Fault("200-half-text-and-words", status(200, b'{"choices": [{"message": {"content": "hal"}, "error": "it broke"}]}')),
    Fault("200-half-call-and-error", status(200, b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "boom"}}]}}], "error": {"message": "x"}}')),
    Fault("200-error-words", status(200, error("The model is overloaded"))),
    Fault("200-html", status(200, HTML)),
    Fault("200-empty", status(200)),
    Fault("200-half-json", status(200, RESOLVE[:50])),
    Fault("200-no-choices", status(200, b'{"choices": []}')),
    Fault("200-stream", status(200, b'data: {"choices": []}\n\ndata: [DONE]\n\n')),
    Fault("204", status(204)),
    Fault("429-upgrade-hint", status(429, error("Upgrade in billing", code="rate_limit_exceeded"))),
    Fault("503-billing-service", status(503, error("the billing service is unavailable"))),
    # broken connections
    Fault("closed-at-once", Wire(then="close")),
    Fault("reset-at-once", Wire(then="reset")),
    Fault("closed-in-headers", Wire(data=WHOLE[:20], then="close")),
    Fault("reset-in-headers", Wire(data=WHOLE[:20], then="reset")),
    Fault("closed-in-body", Wire(data=WHOLE[:-9], then="close")),
    Fault("reset-in-body", Wire(data=WHOLE[:-9], then="reset")),
    Fault("stalled-at-once", Wire(then="stall"), settings=SHORT),
    Fault("stalled-in-headers", Wire(data=WHOLE[:20], then="stall"), settings=SHORT),
    Fault("stalled-in-body", Wire(data=WHOLE[:-9], then="stall"), settings=SHORT),
    Fault("slow-drip", Wire(data=WHOLE, drip_s=0.01), settings=SHORT),
    Fault("garbage", Wire(data=b"\x00\x15\x03 not http\r\n\r\n", then="close")),
    Fault("chunk-garbage", Wire(data=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", then="close")),
    Fault("gzip-cut", status(200, ZIPPED[:-20], content_encoding="gzip")),
    Fault("gzip-bad", status(200, b"no gzip at all", content_encoding="gzip")),
    Fault("closed-after-reply", Wire(data=http(500), then="close")),
    # errors that stay
    Fault("401", status(401, error("bad key sk-loopback")), ProviderRefused, "bad key …; check the API key"),
    Fault("402", status(402, error("insufficient credit")), ProviderRefused, "insufficient credit"),
    Fault("403-html", status(403, HTML), ProviderRefused, "answered 403"),
    Fault("404", status(404, error("no such model")), ProviderRefused, "check base_url and the model's name"),
    Fault("400", status(400, b'{"detail": [{"loc": ["body"], "msg": "bad field"}]}'), ProviderRefused, "bad field"),
    Fault("400-google", status(400, b'[{"error": {"code": 400, "message": "no good", "status": "INVALID_ARGUMENT"}}]'), ProviderRefused, "no good (INVALID_ARGUMENT)"),
    Fault("400-string", status(400, b'{"error": "plain words"}'), ProviderRefused, "plain words"),
    Fault("422", status(422, error("x")), ProviderRefused, "answered 422"),
    Fault("400-try-again", status(400, error("Remove s3Uri and try again")), ProviderRefused, "Remove s3Uri"),
    Fault("400-timeout", status(400, error("Unknown parameter: 'timeout'")), ProviderRefused, "Unknown parameter"),
    Fault("400-temporarily", status(400, error("temporarily unavailable")), ProviderRefused, "temporarily"),
    Fault("429-quota", status(429, error("pay", type="insufficient_quota")), ProviderRefused, "insufficient_quota"),
    Fault("501", status(501), ProviderRefused, "501"),
    Fault("301", status(301, location="https://elsewhere.test/v1?key=x"), ProviderRefused, "redirect to 'https://elsewhere.test/v1?key=…'; set base_url"),
    Fault("308", status(308, location="/v2"), ProviderRefused, "a redirect to '/v2'"),
    Fault("200-error-402", status(200, error("insufficient credit", code=402)), ProviderRefused, "insufficient credit"),
    Fault("200-error-key", status(200, error("wrong key sk-loopback", code=401)), ProviderRefused, "wrong key …"),
    Fault("huge", status(200, b"[" + b" " * 5000 + b"]"), ProviderRefused, "larger than max_reply_bytes, 1000 bytes", {"max_reply_bytes": 1000}),
    Fault("huge-zipped", status(200, gzip.compress(b" " * 100_000), content_encoding="gzip"), ProviderRefused, "larger than", {"max_reply_bytes": 1000}),
    # what the conversation did
    Fault("400-too-long", status(400, error("too long", code="context_length_exceeded")), ContentRefused, "too long"),
    Fault("400-filtered", status(400, error("no", code="content_filter")), ContentRefused, "content_filter"),
    Fault("413", status(413, HTML), ContentRefused, "413"),
    Fault("400-vllm", status(400, error("You passed 9 input tokens, but the context length is only 8.")), ContentRefused, "max_result_chars"),
    Fault("500-llamacpp", status(500, error("Context size has been exceeded.", type="server_error")), ContentRefused, "choose one that takes more"),
    Fault("403-flagged", status(403, error("your input was flagged")), ContentRefused, "policy forbids"),
    # waits beyond the cap
    Fault("429-two-hours", status(429, retry_after="7200"), ProviderUnavailable, "it asks to wait 7200 s"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.id for fault in FAULTS])
async def test_a_fault_passes_or_is_typed(
    fault: Fault, run_react: Callable[..., Awaitable[Any]]
) -> None:
    run = await run_react([fault.wire, RESOLVE], **fault.settings)

    if fault.error is None:
        assert run.error is None
        assert run.value.answer == 42
        assert len(run.server.bodies) == 2
        assert run.server.bodies[0] == run.server.bodies[1]
        (noted,) = [event for event in run.journal.events if isinstance(event, Retrying)]
        assert noted.attempt == 1
        assert "sk-loopback" not in noted.reason
        assert len(run.waits_s) == 1
        assert 0 <= run.waits_s[0] <= 0.5
    else:
        assert type(run.error) is fault.error
        assert fault.words in str(run.error)
        assert len(run.server.bodies) == 1
        assert run.waits_s == []
        assert len(run.error.messages) == 2
    assert run.ran == []


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("wire", "low_s", "high_s"),
    [
        (status(429, retry_after="3"), 3, 3),
        (status(429, retry_after="Wed, 21 Oct 2015 07:28:03 GMT", date=DATE), 3, 3),
        (status(429, retry_after_ms="2500"), 2.5, 2.5),
        (status(429, b'{"error": {"details": [{"retryDelay": "4s"}]}}'), 4, 4),
        (
            status(
                429, error("Upgrade in billing, or try again in 2s.", code="insufficient_quota")
            ),
            2,
            2,
        ),
        (status(503, retry_after="-1"), 0, 0.5),
        (status(503, retry_after="soon"), 0, 0.5),
        (status(503, retry_after=DATE), 0, 0.5),
        (status(429), 0, 0.5),
    ],
)
async def test_the_wait_is_as_long_as_asked(
    wire: Wire, low_s: float, high_s: float, run_react: Callable[..., Awaitable[Any]]
) -> None:
    run = await run_react([wire, RESOLVE])

    assert run.value.answer == 42
    assert len(run.waits_s) == 1
    assert low_s <= run.waits_s[0] <= high_s


async def test_one_layer_retries_as_often_as_configured(
    run_react: Callable[..., Awaitable[Any]],
) -> None:
    run = await run_react([status(503)] * 9, max_attempts=4)

    assert isinstance(run.error, ProviderUnavailable)
    assert run.error.attempts == len(run.server.bodies) == 4
    assert "after 4 tries" in str(run.error)


async def test_waits_together_stay_below_their_cap(
    run_react: Callable[..., Awaitable[Any]],
) -> None:
    run = await run_react([status(429, retry_after="25")] * 9, max_attempts=9)

    assert isinstance(run.error, ProviderUnavailable)
    assert run.waits_s == [25, 25]
    assert run.error.retry_after_s == 25
