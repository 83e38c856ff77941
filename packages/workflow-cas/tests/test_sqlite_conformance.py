from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workflow_cas import SqliteStore, open_store
from workflow_cas.testing import StoreConformance


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        async with open_store(tmp_path / "store.db") as store:
            yield store


class TestSqliteStoreWithNormalDurability(StoreConformance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        async with open_store(tmp_path / "store.db", durability="normal") as store:
            yield store
