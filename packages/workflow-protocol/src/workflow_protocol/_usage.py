"""What model calls took: tokens, and what the provider says they cost."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and costs of some model calls, and how many calls did not say."""

    input_tokens: int = 0
    """What was sent, those from a cache included."""
    output_tokens: int = 0
    """What came back, reasoning included."""
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider's prompt cache already held."""
    calls: int = 0
    """Model calls."""
    unknown_calls: int = 0
    """Calls whose usage the provider left out: they are in `calls`, but in no token count."""
    cost_micros: int | None = None
    """What the provider says that all these calls cost, in millionths of its currency (US dollars
    at OpenRouter). `None` where it doesn't say so of each of them."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            calls=self.calls + other.calls,
            unknown_calls=self.unknown_calls + other.unknown_calls,
            cost_micros=self._cost_with(other),
        )

    def _cost_with(self, other: Usage) -> int | None:
        if not self.calls or not other.calls:  # no calls, no cost
            return self.cost_micros if self.calls else other.cost_micros
        if self.cost_micros is None or other.cost_micros is None:
            return None
        return self.cost_micros + other.cost_micros
