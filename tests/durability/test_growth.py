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


def file_bytes(path: Path) -> int:
    return path.stat().st_size


def has_dbstat() -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT * FROM dbstat")
        except sqlite3.OperationalError:
            return False
    return True


async def measure(path: Path, rounds: int, reply_bytes: int, result_bytes: int) -> int:
    """The new bytes of a turn of so many rounds, in a file of its own."""
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
    return new


@pytest.mark.parametrize("sizes", [(100, 100), (300, 1000), (300, 3000), (1000, 10_000)])
async def test_a_round_adds_its_new_bytes_and_at_most_512_more(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    new = {rounds: await measure(tmp_path / str(rounds), rounds, *sizes) for rounds in (20, ROUNDS)}

    for count in (file_bytes, stored_bytes) if has_dbstat() else (file_bytes,):
        beside = {rounds: count(tmp_path / str(rounds)) - new[rounds] for rounds in new}
        assert (beside[ROUNDS] - beside[20]) / (ROUNDS - 20) <= PROMISED


async def test_the_file_grows_by_the_same_in_early_and_in_late_rounds(tmp_path: Path) -> None:
    paths = {rounds: tmp_path / str(rounds) for rounds in (100, 200, 700, 800)}
    for rounds, path in paths.items():
        await measure(path, rounds, 300, 1000)
    size = {rounds: path.stat().st_size for rounds, path in paths.items()}

    early, late = size[200] - size[100], size[800] - size[700]
    assert late <= early * 1.1
