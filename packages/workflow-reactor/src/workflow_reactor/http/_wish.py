"""How long an error's text asks to wait: in a field at any depth, or in words."""

from __future__ import annotations

import re

_NUMBER = r"(\d{1,12}(?:\.\d{1,12})?)"
_PART = re.compile(
    rf"(?:\s|,|and\b)*+{_NUMBER}\s*+(ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?"
    r"|h|hrs?|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\b(?:try|retry|retrying|wait|available|resets?)\b[^.\d\n]{0,40}(?=\d)", re.IGNORECASE
)
# A field may stand in the body of an upstream that is quoted in a string, so with `\"` for `"`.
# `retryDelay` is Google's RetryInfo: https://cloud.google.com/apis/design/errors
_FIELD = re.compile(
    rf'"(?:retry_?delay|retry[_-]?(?:after|in)|resets?_?in)(_?ms|_?milliseconds|_?s'
    rf'|_?sec|_?seconds)?\\*+"\s*+:\s*+\\*+"?{_NUMBER}s?\\*+"?\s*+[,}}\]]',
    re.IGNORECASE,
)


def wished_wait(text: str) -> float | None:
    """Read the seconds that an error's text, JSON or plain, asks to wait; `None` if it doesn't."""
    field = _FIELD.search(text)
    if field is not None:
        in_ms = (field[1] or "").lower().lstrip("_").startswith("m")
        return float(field[2]) / (1000 if in_ms else 1)
    for lead in _LEAD.finditer(text):
        if (seconds := _duration(text, lead.end())) is not None:
            return seconds
    return None


def _duration(text: str, at: int) -> float | None:
    """The duration that begins there, such as `6m0.5s` or `2 minutes and 5 seconds`."""
    seconds: float | None = None
    while (part := _PART.match(text, at)) is not None:
        seconds = (seconds or 0.0) + float(part[1]) * _unit_s(part[2].lower())
        at = part.end()
    return seconds


def _unit_s(unit: str) -> float:
    if unit.startswith(("ms", "mil")):
        return 0.001
    return {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}[unit[0]]
