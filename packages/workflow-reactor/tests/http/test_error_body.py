import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor.http._error_body import ErrorBody, read_error, read_error_body

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "type", "status", "detail", "details", "metadata"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("body", "words", "code", "labels"),
    [
        (
            {"error": {"message": "bad key", "type": "auth", "code": "invalid_api_key"}},
            "bad key (auth)",
            None,
            "auth invalid_api_key",
        ),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            "busy (overloaded_error)",
            None,
            "overloaded_error",
        ),
        (
            [{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}],
            "no (INVALID_ARGUMENT)",
            400,
            "INVALID_ARGUMENT",
        ),
        ({"error": "plain words"}, "plain words", None, ""),
        ({"error": {"message": "m", "code": "429"}}, "m (429)", 429, "429"),
        ({"detail": "not here"}, "not here", None, ""),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required", None, ""),
        ({"message": "m", "code": 1302}, "m", None, ""),
        (
            {"error": {"message": "Provider error", "code": 502, "metadata": {"raw": "it\nbroke"}}},
            "Provider error: it broke",
            502,
            "",
        ),
        ({"odd": 1}, '{"odd":1}', None, ""),
        ("just text\n here", "just text here", None, ""),
        (None, "", None, ""),
        ([], "", None, ""),
        (7, "7", None, ""),
    ],
)
def test_the_providers_words_and_labels_are_found_in_each_shape(
    body: Any, words: str, code: int | None, labels: str
) -> None:
    assert read_error(body) == ErrorBody(words, code, labels)
    assert read_error_body(json.dumps(body).encode()) == ErrorBody(words, code, labels)


def test_google_says_in_the_body_how_long_to_wait() -> None:
    details = [{"@type": "x"}, 3, {"retryDelay": "soon"}, {"retryDelay": "34.5s"}]
    error = {"error": {"code": 429, "message": "slow", "details": details}}

    assert read_error(error).retry_after_s == 34.5


def test_a_long_message_is_cut() -> None:
    assert len(read_error({"error": {"message": "x" * 9_999, "type": "kind"}}).message) == 2_000


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_body_says_something_and_nothing_is_raised(body: bytes) -> None:
    found = read_error_body(body)

    assert len(found.message) <= 2_000
    assert found.code is None or 400 <= found.code < 600
