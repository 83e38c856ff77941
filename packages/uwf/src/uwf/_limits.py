"""The engine's limits as `workflow.yaml` has them."""

from __future__ import annotations

from pathlib import Path

from workflow_execute import Limits, Price
from workflow_register import load_config


def configured_limits(home: Path) -> Limits:
    """Read the limits and prices of the configuration."""
    limits = load_config(home).limits
    return Limits(
        max_steps=limits.max_steps,
        max_rounds=limits.max_rounds,
        max_tokens=limits.max_tokens,
        max_cost=limits.max_cost,
        max_seconds=limits.max_seconds,
        prices={
            model: Price(input=price.input, output=price.output, cached=price.cached)
            for model, price in limits.prices.items()
        },
    )
