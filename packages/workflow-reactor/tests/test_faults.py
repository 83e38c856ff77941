import email.utils
import json
import time
from typing import Any

import pytest

from workflow_reactor._faults import error_words, fault_of_error_body, fault_of_status, retry_after


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "bad key", "type": "auth", "code": "x"}}, "bad key (auth)"),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            "busy (overloaded_error)",
        ),
        ([{"error": {"code": 400, "message": "no", "status": "INVALID"}}], "no"),
        ({"error": "plain words"}, "plain words"),
        ({"detail": "not here"}, "not here"),
        ({"odd": 1}, '{"odd":1}'),
        ("just text\n here", "just text here"),
        (None, ""),
        ([], ""),
    ],
)
def test_the_providers_words_are_found_in_each_shape(body: Any, words: str) -> None:
    assert error_words(body)[0] == words


@pytest.mark.parametrize(
    ("status", "body", "transient"),
    [
        (400, {"error": {"message": "bad"}}, False),
        (401, {"error": {"message": "key"}}, False),
        (408, "", True),
        (429, {"error": {"message": "slow down"}}, True),
        (429, {"error": {"message": "x", "type": "insufficient_quota"}}, False),
        (500, "<html>", True),
        (503, "", True),
        (301, "", False),
    ],
)
def test_statuses_are_sorted_into_those_that_pass_and_those_that_stay(
    status: int, body: Any, transient: bool
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    assert fault_of_status(status, {}, raw).transient is transient


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        ({"message": "upstream failed", "code": 502}, True),
        ({"message": "insufficient credit", "code": 402}, False),
        ({"message": "Overloaded", "code": "529"}, True),
        ({"message": "model is overloaded"}, True),
        ({"message": "no such model"}, False),
    ],
)
def test_errors_under_status_200_are_sorted_too(error: Any, transient: bool) -> None:
    assert fault_of_error_body(error).transient is transient


def test_the_wish_to_wait_is_read_in_each_form() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "2500", "retry-after": "9"}) == 2.5
    assert 28 < (retry_after({"retry-after": date}) or 0) <= 30
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ("-1", "soon", "inf", "nan"):
        assert retry_after({"retry-after": nonsense}) is None
    assert retry_after({}) is None
