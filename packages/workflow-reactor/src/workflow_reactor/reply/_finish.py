"""Why a reply ended, out of the words that servers have for it."""

from __future__ import annotations

import functools
import re

from workflow_reactor._messages import Finish

# The first that fits. `MALFORMED_FUNCTION_CALL` is an error, `content_filter` has no `stop` in it.
_WORDS: tuple[tuple[re.Pattern[str], Finish], ...] = (
    (
        re.compile(
            r"error|fail|abort|cancel|interrupt|insufficient|malformed|unexpected|incomplete"
            r"|timeout|timed_?out|time_?limit|overload|unavailable|disconnect|crash|invalid"
        ),
        "error",
    ),
    (
        re.compile(
            r"filter|safety|refus|policy|block|sensitive|recitation|prohibit|guardrail|moderat"
            r"|spii|unsafe|violat|flagged|language|intervened"
        ),
        "refused",
    ),
    (re.compile(r"length|max|limit|window|truncat|budget|overflow"), "length"),
    (re.compile(r"tool|function"), "tool_calls"),
    (re.compile(r"stop|end|eos|done|complete|finish|success|normal"), "stop"),
)


_MAX_CHARS = 200  # more is no reason, and would stay in the cache


def read_finish(reason: str) -> Finish:
    """Sort a `finish_reason`; `other` has no known word, so it doesn't say that it broke off."""
    return _sorted(reason[:_MAX_CHARS])


@functools.lru_cache(maxsize=64)
def _sorted(reason: str) -> Finish:
    words = reason.lower()
    for pattern, finish in _WORDS:
        if pattern.search(words):
            return finish
    return "other"
