"""`memory …`: the facts that threads remembered, by namespace and key."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from uwf._errors import Failed
from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, age
from uwf.terminal._style import Styled
from uwf.terminal._table import Column
from uwf.terminal._view import shorten
from workflow_cas import Store, open_store
from workflow_execute import read_facts, write_facts
from workflow_protocol import Fact, check_value, fact_ref, namespace_ref
from workflow_register import find_home, store_path

_COLUMNS = (
    Column("namespace"),
    Column("key"),
    Column("value", folds=True),
    Column("thread"),
    Column("written", align="right"),
)


def list_(output: Output, namespace: str | None) -> int:
    """List the facts, of one namespace or of all."""

    async def main() -> None:
        found: dict[str, Fact] = {}
        if store_path(find_home()).exists():
            async with open_existing(find_home()) as store:
                prefix = "memory/" if namespace is None else namespace_ref(namespace)
                found = await read_facts(store, prefix)
        now_ms = time.time_ns() // 1_000_000
        output.table(
            _COLUMNS,
            [
                (
                    _as_data(ref, fact),
                    [
                        _namespace_of(ref),
                        Styled(fact.key, "name"),
                        shorten(fact.value),
                        fact.thread,
                        Styled(age(fact.at_ms, now_ms), "dim"),
                    ],
                )
                for ref, fact in found.items()
            ],
        )
        if not found:
            output.say("nothing is remembered there")

    run_async(main)
    return 0


def show(output: Output, namespace: str, key: str) -> int:
    """Print one fact as it is."""
    ref = fact_ref(namespace, key)

    async def work(store: Store) -> int:
        fact = await _fact(store, ref)
        if fact is None:
            raise Failed(1, _nothing(namespace, key))
        output.data(_as_data(ref, fact), fact.value)
        return 0

    return _with_store(work, nothing=_nothing(namespace, key))


def set_(output: Output, namespace: str, key: str, value: str) -> int:
    """Keep a fact in the name of a person."""
    ref = fact_ref(namespace, key)
    check_value(value)

    async def main() -> None:
        async with open_store(store_path(find_home())) as store:
            fact = Fact(key=key, value=value, thread="", step=0, at_ms=time.time_ns() // 1_000_000)
            await write_facts(store, {ref: fact})
        output.data(_as_data(ref, fact), f"{namespace} {key}: {value}")

    run_async(main)
    return 0


def forget(output: Output, namespace: str, key: str | None) -> int:
    """Forget one fact, or all of a namespace."""
    prefix = namespace_ref(namespace) if key is None else fact_ref(namespace, key)

    async def work(store: Store) -> int:
        found = await read_facts(store, prefix)
        if key is not None:
            found = {ref: fact for ref, fact in found.items() if ref == prefix}
        if not found:
            raise Failed(1, _nothing(namespace, key))
        await write_facts(store, dict.fromkeys(found))
        keys = [fact.key for fact in found.values()]
        words = f"{len(keys)} fact{'s' * (len(keys) != 1)} of {namespace} forgotten"
        output.data({"namespace": namespace, "forgotten": keys}, words)
        output.say("What threads read of it stays in their records. To free the rest: `uwf cas gc`")
        return 0

    return _with_store(work, nothing=_nothing(namespace, key))


def _nothing(namespace: str, key: str | None) -> str:
    where = f"in {namespace!r}" if key is None else f"under {key!r} in {namespace!r}"
    return f"nothing is remembered {where}; `uwf memory list` lists what is"


async def _fact(store: Store, ref: str) -> Fact | None:
    return (await read_facts(store, ref)).get(ref)


def _namespace_of(ref: str) -> str:
    return unquote(ref.split("/")[1])


def _as_data(ref: str, fact: Fact) -> dict[str, object]:
    return {
        "namespace": _namespace_of(ref),
        "key": fact.key,
        "value": fact.value,
        "thread": fact.thread or None,
        "step": fact.step,
        "at_ms": fact.at_ms,
    }


def _with_store(work: Callable[[Store], Awaitable[int]], *, nothing: str) -> int:
    if not store_path(find_home()).exists():
        raise Failed(1, nothing)

    async def main() -> int:
        async with open_store(store_path(find_home())) as store:
            return await work(store)

    return run_async(main)
