from __future__ import annotations

import pytest

from workflow_cas import MemoryStore
from workflow_cas.testing import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


def test_it_can_be_made_without_a_loop() -> None:
    MemoryStore()
