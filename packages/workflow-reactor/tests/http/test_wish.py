import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor.http._error_body import read_error_body
from workflow_reactor.http._wish import wished_wait


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached for gpt-4o on TPM: Limit 30000. Please try again in 2s.", 2),
        ("Limit 3 / min. Please try again in 20s. Visit https://x.test/account", 20),
        ("Please try again in 6m0s. Need more tokens?", 360),
        ("Please try again in 1m26.4s", 86.4),
        ("Please try again in 429ms.", 0.429),
        ("Please try again in 1h2m3.5s", 3723.5),
        ("Please retry after 20 seconds. Please go here: https://x.test", 20),
        ("Please retry in 34.074824224s.", 34.074824224),
        ("Retry your request after 43 seconds", 43),
        ("Try again in 2 minutes and 5 seconds", 125),
        ("You must wait at least 1 hour", 3600),
        ("The limit resets in 3 days", 259_200),
        ("wait 7 msecs", 0.007),
        ("Retry after 1 min, 30 sec", 90),
        ("Remove s3Uri and try again", None),
        ("Wait for 3 more messages", None),
        ("Try again", None),
        ("It took 3 seconds", None),
        ("", None),
    ],
)
def test_words_say_how_long_to_wait(text: str, seconds: float | None) -> None:
    assert wished_wait(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34.5s"}]}}, 34.5),
        ([{"error": {"details": [{"x": 1}, {"retryDelay": "7s"}]}}], 7),
        ({"error": {"metadata": {"raw": '{"error": {"details": [{"retryDelay": "7s"}]}}'}}}, 7),
        ({"error": {"message": "m", "retry_after": 3}}, 3),
        ({"error": {"message": "m", "retryAfter": "3.5"}}, 3.5),
        ({"retry_after_ms": 1500}, 1.5),
        ({"retry_after_seconds": 12}, 12),
        ({"error": {"type": "usage_limit_reached", "resets_in_seconds": 30}}, 30),
        ({"error": {"message": "m", "retry_after": None}}, None),
        ({"error": {"message": "m", "retryDelay": "soon"}}, None),
    ],
)
def test_a_field_says_it_at_any_depth(body: Any, seconds: float | None) -> None:
    assert read_error_body(json.dumps(body).encode()).retry_after_s == seconds
    assert (
        read_error_body(json.dumps(body, separators=(",", ":")).encode()).retry_after_s == seconds
    )


@given(st.text() | st.from_regex(r"try again in [0-9.]{1,40}[a-z]{0,3}"))
def test_any_text_gives_a_finite_wait_or_none(text: str) -> None:
    seconds = wished_wait(text)

    assert seconds is None or 0 <= seconds < 1e18
