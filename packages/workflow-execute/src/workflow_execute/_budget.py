"""Limits, and the budget that a thread and its children draw from together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from workflow_execute._errors import LimitReached
from workflow_execute._records import Allowed
from workflow_protocol import OwnLimits, Usage

MICROS = 1_000_000
_N = TypeVar("_N", int, float)


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


def _least(one: _N | None, other: _N | None) -> _N | None:
    return other if one is None else one if other is None else min(one, other)


def _most(one: _N | None, other: _N | None) -> _N | None:
    return None if one is None or other is None else max(one, other)


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


ALLOWANCE = Allowed(max_steps=3, max_rounds=10, max_tokens=50_000, max_seconds=300.0)
"""What a thread may take from its `at_limit` role on, where its limits don't leave more. Of costs
it is what these tokens cost at the highest price."""


class Budget:
    """Keeps what threads have spent together below their limits.

    The worst case of each model call is reserved before it is sent, so that calls at the same time
    can't overspend. A call whose usage isn't known counts as its worst case.

    A thread and its children share one by themselves; hand one to several `Engine.start` and
    `resume` for threads that have nothing else to do with each other. Each of these that goes to
    its `at_limit` role may take an `ALLOWANCE` beyond the limits that they share.
    """

    def __init__(self, limits: Limits, *, above: Budget | None = None, thread_id: str = "") -> None:
        self.limits = limits
        self.reserved = NO_CHARGE
        self._above = above
        self._thread_id = thread_id
        self._allowed: Allowed | None = None
        self._by_thread: dict[str, Charge] = {}

    def part(self, own: OwnLimits, thread_id: str) -> Budget:
        """The part of it for one thread and those that it starts, with limits of their own.

        Tokens and costs of all limits above hold, too.
        """
        engine, is_top = self.whole().limits, self._above is None
        limits = Limits(
            max_steps=_least(engine.max_steps, own.get("max_steps")),
            max_rounds=_least(engine.max_rounds, own.get("max_rounds")),
            max_tokens=own.get("max_tokens"),
            max_cost=own.get("max_cost"),
            max_seconds=_least(engine.max_seconds if is_top else None, own.get("max_seconds")),
            max_depth=min(engine.max_depth, own.get("max_depth", engine.max_depth)),
            prices=engine.prices,
        )
        return Budget(limits, above=self, thread_id=thread_id)

    def allowed_from(self, steps: int, seconds: float) -> Allowed:
        """What the thread of this part may take in all from its `at_limit` role on.

        Args:
            steps: how many it has, with the one that ended at the limit.
            seconds: for how long it was run.
        """
        spent, tokens = self.spent, ALLOWANCE.max_tokens or 0
        prices = self.limits.prices.values()
        dearest = max((max(price.input, price.output) for price in prices), default=0.0)
        return Allowed(
            max_steps=steps + (ALLOWANCE.max_steps or 0),
            max_rounds=ALLOWANCE.max_rounds,
            max_tokens=spent.tokens + tokens,
            max_cost=(spent.micros + tokens * dearest) / MICROS,
            max_seconds=seconds + (ALLOWANCE.max_seconds or 0),
        )

    def allow(self, allowed: Allowed, *, is_top: bool) -> None:
        """Let the thread of this part take so much in all, or what its limits leave if it is more.

        Args:
            allowed: what it may take.
            is_top: it goes beyond the limits above, too: no thread above it keeps to them.
        """
        limits = self.limits
        self._allowed = allowed if is_top else None
        self.limits = replace(
            limits,
            max_steps=_most(limits.max_steps, allowed.max_steps),
            max_rounds=_most(limits.max_rounds, allowed.max_rounds),
            max_tokens=_most(limits.max_tokens, allowed.max_tokens),
            max_cost=_most(limits.max_cost, allowed.max_cost),
            max_seconds=_most(limits.max_seconds, allowed.max_seconds),
        )

    def whole(self) -> Budget:
        """The budget that it is a part of, however far down: the engine's."""
        return self if self._above is None else self._above.whole()

    def tightest(self) -> Limits:
        """Its limits, with the tightest tokens and costs of those above."""
        tightest, below = self.limits, self
        for each in [*self._all()][1:]:
            tokens, cost = each.limits.max_tokens, each.limits.max_cost
            if below._allowed is not None:
                tokens = _most(tokens, below._allowed.max_tokens)
                cost = _most(cost, below._allowed.max_cost)
            tightest = replace(
                tightest,
                max_tokens=_least(tightest.max_tokens, tokens),
                max_cost=_least(tightest.max_cost, cost),
            )
            below = each
        return tightest

    def _all(self) -> Iterator[Budget]:
        """The budgets that count what it takes, its own first."""
        each: Budget | None = self
        while each is not None:
            yield each
            each = each._above

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
        if not any(each._limits_calls for each in self._all()):
            return NO_CHARGE
        worst = self.price(model, at_most())
        below: Budget | None = None
        for each in self._all():
            for reached in each._reached(model, worst):
                if below is None or not below._has_allowance(reached.limit, worst):
                    raise reached
            below = each
        for each in self._all():
            each.reserved = each.reserved.plus(worst)
        return worst

    @property
    def _limits_calls(self) -> bool:
        return self.limits.max_tokens is not None or self.limits.max_cost is not None

    def _has_allowance(self, limit: str, worst: Charge) -> bool:
        """Whether a call that a limit above has no room for fits into what the thread may take."""
        if self._allowed is None:
            return False
        taken = self.spent.plus(self.reserved).plus(worst)
        if limit == "max_tokens":
            return taken.tokens <= (self._allowed.max_tokens or 0)
        return taken.micros <= (self._allowed.max_cost or 0) * MICROS

    def _reached(self, model: str, worst: Charge) -> Iterator[LimitReached]:
        """The limits that have no room for a call."""
        limits, taken = self.limits, self.spent.plus(self.reserved)
        if limits.max_tokens is not None and taken.tokens + worst.tokens > limits.max_tokens:
            yield LimitReached(
                "max_tokens",
                f"the limit of {limits.max_tokens} tokens is reached: {taken.tokens} are spent "
                f"or reserved, and the next request to {model!r} may take {worst.tokens}",
                thread=self._thread_id,
            )
        if limits.max_cost is not None and taken.micros + worst.micros > limits.max_cost * MICROS:
            yield LimitReached(
                "max_cost",
                f"the limit of {limits.max_cost:g} is reached: {taken.micros / MICROS:.4f} are "
                f"spent or reserved, and the next request to {model!r} may cost "
                f"{worst.micros / MICROS:.4f}",
                thread=self._thread_id,
            )

    def release(self, reservation: Charge) -> None:
        """Give a reservation back: the call is over, or was not made."""
        if reservation is not NO_CHARGE:
            for each in self._all():
                each.reserved = each.reserved.minus(reservation)

    def count(self, charged: Charge, *, thread_id: str = "") -> None:
        """Add what was spent, now or in an earlier run."""
        for each in self._all():
            each._by_thread[thread_id] = each._by_thread.get(thread_id, NO_CHARGE).plus(charged)

    def set_spent(self, thread_id: str, charged: Charge) -> None:
        """Set what a thread has spent in its earlier runs, in this budget alone."""
        self._by_thread[thread_id] = charged

    def price(self, model: str, usage: Usage) -> Charge:
        """What an amount of tokens counts: by the model's price, or else what the provider says.

        Raises:
            LimitReached: costs are limited, and the model has no price.
        """
        tokens = usage.input_tokens + usage.output_tokens
        price = self.limits.prices.get(model)
        if price is None:
            if any(each.limits.max_cost is not None for each in self._all()):
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
