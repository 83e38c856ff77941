"""Each fuzz target for a moment, from a fixed seed; `scripts/fuzz` gives them longer."""

import random

import pytest

from .fuzz_targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_fuzz_target_finds_nothing_in_its_first_inputs(name: str) -> None:
    for number in range(50):
        TARGETS[name](random.Random(f"{name}/{number}"))
