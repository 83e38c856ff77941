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
    `resume` for threads that have nothing else to do with each other.
    """

    def __init__(self, limits: Limits, *, above: Budget | None = None, thread_id: str = "") -> None:
        self.limits = limits
        self.reserved = NO_CHARGE
        self._above = above
        self._thread_id = thread_id
        self._is_free_of_above = False
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
        spent, limits = self.spent, self.tightest()
        tokens = ALLOWANCE.max_tokens or 0
        dearest = max((max(p.input, p.output) for p in limits.prices.values()), default=0.0)
        cost = (spent.micros + tokens * dearest) / MICROS
        return Allowed(
            max_steps=_most(limits.max_steps, steps + (ALLOWANCE.max_steps or 0)),
            max_rounds=_most(limits.max_rounds, ALLOWANCE.max_rounds or 0),
            max_tokens=_most(limits.max_tokens, spent.tokens + tokens),
            max_cost=_most(limits.max_cost, cost),
            max_seconds=_most(limits.max_seconds, seconds + (ALLOWANCE.max_seconds or 0)),
        )

    def allow(self, allowed: Allowed, *, is_top: bool) -> None:
        """Let the thread of this part take so much in all, or its limits if they are raised since.

        Args:
            allowed: what it may take.
            is_top: no thread above it keeps to a limit that it goes beyond.
        """
        limits = self.tightest() if is_top else self.limits
        self._is_free_of_above = is_top
        self.limits = replace(
            self.limits,
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
        tightest = self.limits
        for each in self._holding()[1:]:
            tightest = replace(
                tightest,
                max_tokens=_least(tightest.max_tokens, each.limits.max_tokens),
                max_cost=_least(tightest.max_cost, each.limits.max_cost),
            )
        return tightest

    def _holding(self) -> list[Budget]:
        """The budgets whose tokens and costs hold for it, its own first."""
        holding: list[Budget] = [self]
        while (last := holding[-1])._above is not None and not last._is_free_of_above:
            holding.append(last._above)
        return holding

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
        holding = [each for each in self._holding() if each._limits_calls]
        if not holding:
            return NO_CHARGE
        worst = self.price(model, at_most())
        for each in holding:
            each._check(model, worst)
        for each in self._all():
            each.reserved = each.reserved.plus(worst)
        return worst

    @property
    def _limits_calls(self) -> bool:
        return self.limits.max_tokens is not None or self.limits.max_cost is not None

    def _check(self, model: str, worst: Charge) -> None:
        """Make sure that a call fits.

        Raises:
            LimitReached: it doesn't.
        """
        limits, taken = self.limits, self.spent.plus(self.reserved)
        if limits.max_tokens is not None and taken.tokens + worst.tokens > limits.max_tokens:
            raise LimitReached(
                "max_tokens",
                f"the limit of {limits.max_tokens} tokens is reached: {taken.tokens} are spent "
                f"or reserved, and the next request to {model!r} may take {worst.tokens}",
                thread=self._thread_id,
            )
        if limits.max_cost is not None and taken.micros + worst.micros > limits.max_cost * MICROS:
            raise LimitReached(
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
            if any(each.limits.max_cost is not None for each in self._holding()):
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
