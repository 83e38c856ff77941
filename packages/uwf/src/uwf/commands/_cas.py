"""`cas verify|gc`: what of the store is damaged and whom that concerns, and what nobody needs."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from workflow_cas import Store, StoreError, VerifyReport
from workflow_execute import SummaryFault, check_summaries
from workflow_protocol import Hash
from workflow_register import find_home, remove_unpacked, store_path, unpacked_path


def verify(output: Output) -> int:
    """Read and hash all that is stored. Exit code 1 if anything is wrong; nothing is changed."""

    async def work(store: Store) -> int:
        report = await store.verify()
        unlisted = await check_summaries(store)
        affected = {} if report.ok else await _damaged_refs(store)
        _print_report(output, report, affected, unlisted)
        return 0 if report.ok and not unlisted else 1

    return _with_store(output, work)


def gc(output: Output, *, older_than_h: float, dry_run: bool) -> int:
    """Remove what nothing leads to any more, or with `dry_run` only say what that is."""

    async def work(store: Store) -> int:
        keep_s = older_than_h * 3600
        report = await store.collect_garbage(keep_newer_than_s=keep_s, dry_run=dry_run)
        gone = await _remove_unpacked(store, frozenset(report.removed), keep_s, dry_run=dry_run)
        output.data(
            {
                "removed": len(report.removed),
                "bytes": report.removed_bytes,
                "kept": report.kept,
                "unpacked": len(gone),
                "dry_run": dry_run,
            },
            f"{'would remove' if dry_run else 'removed'} {len(report.removed)} objects, "
            f"{report.removed_bytes} bytes; {report.kept} objects are kept",
        )
        if gone:
            done = "would remove" if dry_run else "removed"
            output.say(f"{done} {len(gone)} folders of unpacked bundles")
        return 0

    return _with_store(output, work)


async def _remove_unpacked(
    store: Store, removed: frozenset[Hash], keep_s: float, *, dry_run: bool
) -> list[str]:
    """Remove the unpacked bundles that no thread and no workflow needs any more."""
    folder = unpacked_path(find_home())
    keep: set[Hash] = set()
    for path in folder.iterdir() if folder.is_dir() else ():
        name = Hash(path.name)
        with contextlib.suppress(StoreError):
            if len(name) == 64 and name not in removed:
                keep.add((await store.get(name)).hash)
    return remove_unpacked(folder, keep=frozenset(keep), keep_newer_than_s=keep_s, dry_run=dry_run)


def _with_store(output: Output, work: Callable[[Store], Awaitable[int]]) -> int:
    home = find_home()
    if not store_path(home).exists():
        output.say(f"nothing is stored in {home}")
        return 0

    async def main() -> int:
        async with open_existing(home) as store:
            return await work(store)

    return run_async(main)


def _print_report(
    output: Output,
    report: VerifyReport,
    affected: Mapping[str, list[str]],
    unlisted: Sequence[SummaryFault],
) -> None:
    for problem in report.problems:
        output.data(
            {"kind": problem.kind, "place": problem.place, "message": problem.message},
            f"{problem.kind:<10} {problem.place}: {problem.message}",
        )
    for kind, names in affected.items():
        output.data({kind: names}, f"{kind:<10} {' '.join(names)}")
    for thread, fault in unlisted:
        place = f"thread {thread}"
        output.data(
            {"kind": "index", "place": place, "message": fault}, f"{'index':<10} {place}: {fault}"
        )
    problems = len(report.problems) + len(unlisted)
    output.data(
        {
            "objects": report.objects,
            "refs": report.refs,
            "bytes": report.bytes,
            "problems": problems,
        },
        f"{report.objects} objects, {report.refs} refs, {report.bytes} bytes: "
        f"{problems or 'no'} problem{'s' * (problems != 1)}",
    )
    if not report.ok:
        output.say(
            "restore the store from a backup. Everything that is not listed here can still be used"
        )
    if unlisted:
        output.say(
            "`uwf thread list` may show other than is stored. To mend it: `uwf store reindex`"
        )


async def _damaged_refs(store: Store) -> dict[str, list[str]]:
    """The threads and workflows that lead to something damaged, by the first word of their refs."""
    try:
        refs = await store.refs()
    except StoreError:
        return {}  # then the report tells of the refs themselves
    found: dict[str, list[str]] = {}
    for name, target in refs.items():
        kind, _, rest = name.partition("/")
        names = found.setdefault(f"{kind}s", [])
        thing = rest.partition("/")[0]
        if thing not in names and not await _is_intact(store, target):
            names.append(thing)
    return {kind: names for kind, names in found.items() if names}


async def _is_intact(store: Store, target: Hash) -> bool:
    """Whether everything that an object leads to can be read."""
    seen = {target}
    waiting = [target]
    while waiting:
        try:
            found = await store.get(waiting.pop())
        except StoreError:
            return False
        waiting += [ref for ref in found.refs if ref not in seen]
        seen.update(found.refs)
    return True
