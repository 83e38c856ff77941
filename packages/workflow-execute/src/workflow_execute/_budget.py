"""Limits, and the budget that a thread and its children draw from together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workflow_execute._errors import LimitReached
from workflow_protocol import Usage

MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in any one currency, per million tokens."""

    input: float
    """Per million input tokens."""
    output: float
    """Per million output tokens."""
    cached: float | None = None
    """Input tokens that the provider's prompt cache held; as `input` if not given."""


def _no_prices() -> Mapping[str, Price]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a thread and its children may take before it is suspended. `None` is no limit."""

    max_steps: int | None = 100
    """Steps of one thread, its children's not counted."""
    max_rounds: int | None = None
    """Model calls in one turn of a role."""
    max_tokens: int | None = None
    """Input and output tokens together."""
    max_cost: float | None = None
    """In the currency of `prices`."""
    max_seconds: float | None = None
    """Time that the thread has been run for, all its runs together, with its children's."""
    max_depth: int = 8
    """How many levels of child threads there may be."""
    prices: Mapping[str, Price] = field(default_factory=_no_prices)
    """By the model's name, for `max_cost`."""


class Charge(NamedTuple):
    """An amount of tokens and money: what calls take, or may take at most."""

    tokens: int = 0
    """Input and output tokens together."""
    micros: int = 0
    """Millionths of the currency of the price table."""

    def plus(self, other: Charge) -> Charge:
        """The sum."""
        return Charge(self.tokens + other.tokens, self.micros + other.micros)

    def minus(self, other: Charge) -> Charge:
        """The difference."""
        return Charge(self.tokens - other.tokens, self.micros - other.micros)


NO_CHARGE = Charge()


class Budget:
    """Keeps what threads have spent together below their limits.

    The worst case of each model call is reserved before it is sent, so that calls at the same time
    can't overspend. A call whose usage isn't known counts as its worst case.

    A thread and its children share one by themselves; hand one to several `Engine.start` and
    `resume` for threads that have nothing else to do with each other.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.reserved = NO_CHARGE
        self._by_thread: dict[str, Charge] = {}

    @property
    def spent(self) -> Charge:
        """What all threads have spent together."""
        parts = self._by_thread.values()
        return Charge(sum(part.tokens for part in parts), sum(part.micros for part in parts))

    def reserve(self, model: str, at_most: Callable[[], Usage]) -> Charge:
        """Set the worst case of a call aside; `release` it when the call has ended.

        Where neither tokens nor costs are limited, nothing is set aside.

        Raises:
            LimitReached: it doesn't fit into what is left.
        """
        limits = self.limits
        if limits.max_tokens is None and limits.max_cost is None:
            return NO_CHARGE
        worst = self.price(model, at_most())
        taken = self.spent.plus(self.reserved)
        if limits.max_tokens is not None and taken.tokens + worst.tokens > limits.max_tokens:
            raise LimitReached(
                "max_tokens",
                f"the limit of {limits.max_tokens} tokens is reached: {taken.tokens} are spent "
                f"or reserved, and the next request to {model!r} may take {worst.tokens}",
            )
        if limits.max_cost is not None and taken.micros + worst.micros > limits.max_cost * MICROS:
            raise LimitReached(
                "max_cost",
                f"the limit of {limits.max_cost:g} is reached: {taken.micros / MICROS:.4f} are "
                f"spent or reserved, and the next request to {model!r} may cost "
                f"{worst.micros / MICROS:.4f}",
            )
        self.reserved = self.reserved.plus(worst)
        return worst

    def release(self, reservation: Charge) -> None:
        """Give a reservation back: the call is over, or was not made."""
        if reservation is not NO_CHARGE:
            self.reserved = self.reserved.minus(reservation)

    def count(self, charged: Charge, *, thread_id: str = "") -> None:
        """Add what was spent, now or in an earlier run."""
        self._by_thread[thread_id] = self._by_thread.get(thread_id, NO_CHARGE).plus(charged)

    def set_spent(self, thread_id: str, charged: Charge) -> None:
        """Set what a thread has spent in its earlier runs."""
        self._by_thread[thread_id] = charged

    def price(self, model: str, usage: Usage) -> Charge:
        """What an amount of tokens counts: by the model's price, or else what the provider says.

        Raises:
            LimitReached: costs are limited, and the model has no price.
        """
        tokens = usage.input_tokens + usage.output_tokens
        price = self.limits.prices.get(model)
        if price is None:
            if self.limits.max_cost is not None:
                raise LimitReached(
                    "prices", f"max_cost is set, but {model!r} has no price; add one to prices"
                )
            return Charge(tokens, usage.cost_micros or 0)
        cached = price.input if price.cached is None else price.cached
        cost = (
            (usage.input_tokens - usage.cached_tokens) * price.input
            + usage.cached_tokens * cached
            + usage.output_tokens * price.output
        )
        return Charge(tokens, math.ceil(cost))  # a price per million is millionths per token

    def charge(self, model: str, used: Usage, at_most: Callable[[], Usage]) -> Charge:
        """What a finished call counts: its usage, or its worst case where that isn't known."""
        return self.price(model, at_most() if used.unknown_calls else used)
