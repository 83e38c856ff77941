"""Token counts of model calls."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens that some model calls took, and how many calls did not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider's prompt cache already held."""
    calls: int = 0
    unknown_calls: int = 0
    """Calls whose usage the provider left out: they are in `calls`, but in no token count."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            calls=self.calls + other.calls,
            unknown_calls=self.unknown_calls + other.unknown_calls,
        )
