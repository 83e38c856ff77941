"""What a round adds to a real file, and that it is the same however long the thread is."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from workflow_cas import open_store
from workflow_execute import Engine, Limits, Price
from workflow_execute.testing import in_turn
from workflow_protocol import Metered, ThreadContext, Usage

ROUNDS = 400
PROMISED = 512
METERED = Metered[bytes](
    model="m", at_most=Usage, used=lambda reply: Usage(input_tokens=123_456, output_tokens=789)
)


def stored_bytes(path: Path) -> int:
    """The bytes of all rows and indexes, as SQLite counts them."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT sum(pgsize - unused) FROM dbstat"
        return connection.execute(query).fetchone()[0]


def has_dbstat() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT * FROM dbstat")
        except sqlite3.OperationalError:
            return False
    return True


async def measure(path: Path, rounds: int, reply_bytes: int, result_bytes: int) -> tuple[int, int]:
    """The bytes in rows and of the file after a turn of so many rounds, and the new ones."""
    new = 0

    async def turn(ctx: ThreadContext) -> int:
        nonlocal new
        sent = b""
        for number in range(rounds):
            reply = b'{"text":"%s"}' % os.urandom(reply_bytes // 2).hex().encode()
            result = os.urandom(result_bytes // 2).hex()
            sent += reply + result.encode()
            new += len(reply) + len(result) + len('[true,""]')

            async def ask(reply: bytes = reply) -> bytes:
                return reply

            async def read(result: str = result) -> tuple[bool, str]:
                return True, result

            await ctx.journal.run(
                f"llm/{number}", ask, type=bytes, request=lambda s=sent: s, metered=METERED
            )
            await ctx.journal.run(f"tool/{number}/0", read, type=tuple[bool, str])
        return rounds

    async with open_store(path, durability="normal") as store:
        engine = Engine(store, limits=Limits(prices={"m": Price(input=2.5, output=10)}))
        assert (await engine.start(in_turn(turn), "p")).state == "completed"
    return stored_bytes(path), new


@pytest.mark.skipif(not has_dbstat(), reason="this SQLite was built without dbstat")
@pytest.mark.parametrize("sizes", [(100, 100), (300, 1000), (300, 3000), (1000, 10_000)])
async def test_a_round_adds_its_new_bytes_and_at_most_512_more(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    few, few_new = await measure(tmp_path / "few", 20, *sizes)
    many, many_new = await measure(tmp_path / "many", ROUNDS, *sizes)

    overhead = ((many - few) - (many_new - few_new)) / (ROUNDS - 20)
    assert overhead <= PROMISED


async def test_the_file_grows_by_the_same_in_early_and_in_late_rounds(tmp_path: Path) -> None:
    paths = {rounds: tmp_path / str(rounds) for rounds in (100, 200, 700, 800)}
    for rounds, path in paths.items():
        await measure(path, rounds, 300, 1000)
    size = {rounds: path.stat().st_size for rounds, path in paths.items()}

    early, late = size[200] - size[100], size[800] - size[700]
    assert late <= early * 1.1
