from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import LlmProvider
from workflow_reactor.http._faults import ProviderFault
from workflow_reactor.http._retry import wait_before_retry

PROVIDER = LlmProvider(base_url="http://h/v1", model="m", max_attempts=5, max_wait_s=60)


def fault(**more: Any) -> ProviderFault:
    settings: dict[str, Any] = {"kind": "transient", "message": "m", **more}
    return ProviderFault(**settings)


@pytest.mark.parametrize(("jitter", "waits"), [(1.0, [0.5, 1, 2, 4]), (0.0, [0, 0, 0, 0])])
def test_waits_are_a_random_part_of_a_doubling_span(jitter: float, waits: list[float]) -> None:
    assert [
        wait_before_retry(fault(), PROVIDER, attempt=n, waited_s=0, jitter=lambda: jitter)
        for n in (1, 2, 3, 4)
    ] == waits


def test_attempts_and_kinds_end_it() -> None:
    assert wait_before_retry(fault(), PROVIDER, attempt=5, waited_s=0) is None
    for kind in ("permanent", "too_long", "not_allowed"):
        assert wait_before_retry(fault(kind=kind), PROVIDER, attempt=1, waited_s=0) is None


def test_a_wait_beyond_the_cap_is_not_begun() -> None:
    slow = fault(retry_after_s=40)

    assert wait_before_retry(slow, PROVIDER, attempt=1, waited_s=0) == 40
    assert wait_before_retry(slow, PROVIDER, attempt=2, waited_s=40) is None


@given(
    st.integers(1, 10_000),
    st.floats(0, 100),
    st.none() | st.floats(0, 1e9),
    st.floats(0, 1),
)
def test_a_wait_is_never_shorter_than_asked_nor_beyond_the_cap(
    attempt: int, waited_s: float, asked_s: float | None, jitter: float
) -> None:
    wait_s = wait_before_retry(
        fault(retry_after_s=asked_s), PROVIDER, attempt=attempt, waited_s=waited_s,
        jitter=lambda: jitter,
    )  # fmt: skip

    assert wait_s is None or (asked_s or 0) <= wait_s <= 60 - waited_s
