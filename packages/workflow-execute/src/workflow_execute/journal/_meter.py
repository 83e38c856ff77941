"""Charges the model calls of one turn against the budget of its thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from workflow_execute._budget import NO_CHARGE, Budget, Charge
from workflow_execute._errors import LimitReached
from workflow_execute._ids import now_ms
from workflow_execute._records import SUPERVISOR_KEYS, TurnRecord
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_protocol import Metered, Usage

T = TypeVar("T")


class TurnMeter:
    """Counts model calls and what they cost, in the name of one thread.

    Args:
        budget: what the calls draw from.
        thread_id: the thread.
        writer: writes the records of lost calls.
    """

    def __init__(self, budget: Budget, thread_id: str, writer: TurnWriter) -> None:
        self._budget = budget
        self._thread_id = thread_id
        self._writer = writer
        self._rounds = 0
        self.charged = NO_CHARGE
        """What the turn counts against the limits, as far as it was made here or `add`ed."""
        self.used = False
        """Whether any effect of the turn said what it took."""
        self._models: dict[str, None] = {}

    def add(self, charge: Charge) -> None:
        """Count towards the turn what was spent or is recorded. The budget has the latter."""
        self.charged = self.charged.plus(charge)
        self.used = True

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the role has asked, in the order in which it first did."""
        return tuple(self._models)

    def add_models(self, models: Iterable[str]) -> None:
        """Add those that earlier runs of the turn asked."""
        self._models.update(dict.fromkeys(models))

    def reuse(self, key: str, model: str) -> None:
        """Count the round of a call whose reply is recorded. Its charge is in what was `add`ed."""
        self._count_round(key, model)
        self.used = True

    def reserve(self, key: str, metered: Metered[T]) -> Charge:
        """Set the worst case of a call aside, for `settle` or `release`.

        Raises:
            LimitReached: it is one round too many, or does not fit into what is left.
        """
        limit = self._budget.limits.max_rounds
        if not key.startswith(SUPERVISOR_KEYS) and limit is not None and self._rounds >= limit:
            raise LimitReached(
                "max_rounds",
                f"the limit of {limit} model calls in one turn is reached",
                thread=self._thread_id,
            )
        reserved = self._budget.reserve(metered.model, metered.at_most)
        self._count_round(key, metered.model)
        return reserved

    def _count_round(self, key: str, model: str) -> None:
        if not key.startswith(SUPERVISOR_KEYS):
            self._rounds += 1
            self._models[model] = None

    def settle(self, reserved: Charge, metered: Metered[T], value: T) -> Charge:
        """Exchange the reservation for what the call took, and return that."""
        self._budget.release(reserved)
        charge = self._budget.charge(metered.model, metered.used(value), metered.at_most)
        self._budget.count(charge, thread_id=self._thread_id)
        self.add(charge)
        return charge

    def has_price(self, model: str, used: Usage) -> bool:
        """Whether it is known what calls cost: by the price table, or by the provider's word."""
        return model in self._budget.limits.prices or used.cost_micros is not None

    def release(self, reserved: Charge) -> None:
        """Give a reservation back: the call was not made."""
        self._budget.release(reserved)

    async def charge_lost_call(self, key: str, metered: Metered[T]) -> None:
        """Count a call whose reply nobody will see. What it took is unknown: the worst case.

        Raises:
            StoreError: it was not recorded.
        """
        worst = self._budget.price(metered.model, metered.at_most())
        self._budget.count(worst, thread_id=self._thread_id)
        self.add(worst)
        record = TurnRecord(
            key=key,
            at_ms=now_ms(),
            kind="lost",
            charged_tokens=worst.tokens,
            charged_micros=worst.micros,
        )
        await self._writer.append(record)
