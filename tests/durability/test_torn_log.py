"""SQLite's log cut anywhere, and padded with zeros, as a crash of the machine may leave it."""

from pathlib import Path

import pytest

from workflow_cas import open_store
from workflow_execute import Engine, Workflow, find_thread, list_threads, read_thread, read_turn
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, ThreadContext

ROUNDS = 6
TEXT = "Zwölf Boxkämpfer 🥊 jagen 拳击手"


def writing(ledger: list[str]) -> Workflow:
    """Six rounds with two tools that write."""

    async def turn(ctx: ThreadContext) -> str:
        said = ""
        for number in range(ROUNDS):

            async def reply(number: int = number) -> str:
                return f"{number} {TEXT}"

            async def write(number: int = number) -> str:
                ledger.append(f"{len(ctx.steps)}/{number}")
                return f"written {number}"

            body = said.encode()
            said += await ctx.journal.run(
                f"llm/{number}", reply, type=str, request=lambda b=body: b
            )
            for effect in (Effect.UNSAFE, Effect.REPEATABLE):
                key = f"tool/{number}/{effect}"
                said += await ctx.journal.run(key, write, type=str, effect=effect)
        return said

    return in_turn(turn, turn, schema=str)


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_log_that_is_cut_anywhere_keeps_what_is_complete_and_the_thread_goes_on(
    tmp_path: Path,
) -> None:
    source, copy = tmp_path / "source.sqlite3", tmp_path / "copy.sqlite3"
    log, log_copy = tmp_path / "source.sqlite3-wal", tmp_path / "copy.sqlite3-wal"
    async with open_store(source):
        pass
    empty = source.read_bytes()  # the tables alone: all that follows is in the log
    ledger: list[str] = []
    async with open_store(source) as store:
        uncut = await Engine(store).start(writing(ledger), "p")
        written = log.read_bytes()
    cuts = [*range(0, len(written), len(written) // 40), *range(len(written) - 40, len(written))]
    kept = -1
    for cut in cuts:
        for padding in (b"", bytes(512)):
            copy.write_bytes(empty)
            log_copy.write_bytes(written[:cut] + padding)
            async with open_store(copy) as store:
                assert (await store.verify()).ok
                records = 0
                for thread_id in await list_threads(store):
                    thread = await read_thread(store, thread_id)
                    turns = [*(step.turn for step in thread.steps), thread.turn]
                    records = sum([len(await read_turn(store, turn)) for turn in turns])
                again: list[str] = []
                if not await list_threads(store):
                    done = await Engine(store).start(writing(again), "p")
                elif (
                    await read_thread(store, await find_thread(store, "latest"))
                ).status.state == ("completed"):
                    continue
                else:
                    thread_id = await find_thread(store, "latest")
                    done = await Engine(store).resume(writing(again), thread_id)
                assert (await store.verify()).ok
            assert records >= kept
            kept = records
            if done.state == "failed":  # an unsafe effect was begun, and not finished in the log
                assert "was never recorded" in done.summary
                assert len(again) == len(set(again))
            else:
                assert done.value == uncut.value
                assert set(again) <= set(ledger)
    assert kept > 20
