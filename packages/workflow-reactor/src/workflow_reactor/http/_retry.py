"""Whether and when a failed request is sent again. The one place that retries is `_http`."""

from __future__ import annotations

import random
from collections.abc import Callable

from workflow_reactor._provider import LlmProvider
from workflow_reactor.http._faults import ProviderFault

FIRST_SPAN_S, LAST_SPAN_S = 0.5, 8.0


def wait_before_retry(
    fault: ProviderFault,
    provider: LlmProvider,
    *,
    attempt: int,
    waited_s: float,
    jitter: Callable[[], float] = random.random,
) -> float | None:
    """Seconds to wait before the next attempt; `None` when there is none.

    Never shorter than the provider asks. By itself a random part of a span that doubles: half a
    second, one, two, up to eight ("full jitter", so that many threads don't come back together).

    Args:
        attempt: how many requests were sent, from 1.
        waited_s: how long this call has waited already.
        jitter: a number from 0 to 1.
    """
    if fault.kind != "transient" or attempt >= provider.max_attempts:
        return None
    span_s = min(FIRST_SPAN_S * 2 ** min(attempt - 1, 10), LAST_SPAN_S)
    wait_s = max(fault.retry_after_s or 0.0, span_s * jitter())
    return wait_s if waited_s + wait_s <= provider.max_wait_s else None
