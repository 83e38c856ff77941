"""`thread changes` and `thread files`: what steps did to the workspace, and how it was then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from uwf._errors import Failed, UsageError
from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._style import Style, Styled, printable_name
from workflow_cas import Store
from workflow_execute import (
    FilesOfStep,
    StoredThread,
    ThreadNotFound,
    files_of_step,
    find_thread,
    read_thread,
)
from workflow_protocol import Hash
from workflow_register import find_home, store_path
from workflow_workspace import FileChange, FileDiff, compare, diff, read_files, restore

_Work = Callable[[Store, StoredThread], Awaitable[int]]
_LETTERS = {"added": "A", "deleted": "D", "changed": "M"}
_LOOKS: dict[str, Style] = {"+": "good", "-": "bad", "@": "name"}


class ShownChange(msgspec.Struct, kw_only=True):
    """One path that a step changed, as it is shown."""

    path: str
    """As the system gives it: what is no UTF-8 stands as surrogates (`os.fsencode`)."""
    kind: str
    added: int
    """Lines."""
    deleted: int
    diff: str = ""


def changes(output: Output, thread: str, step: int | None, *, names: bool) -> int:
    """Show what a step changed in the workspace, or all steps together.

    Args:
        step: counted from 1, as `show` does; one more than there are is the unfinished turn.
        names: without the lines that changed.
    """

    async def work(store: Store, found: StoredThread) -> int:
        around = await _around(store, found, step)
        if around.after is None:
            raise Failed(1, _unknown(found, step))
        shown = await read_changes(store, around, diffs=not names)
        data = {"thread": found.thread_id, "step": step, "changes": shown, **_hashes(around)}
        output.data(data, _words(shown))
        return 0

    return _with_stored(thread, work)


def files(
    output: Output, thread: str, step: int | None, *, to: Path | None, given: str | None
) -> int:
    """List the files as they were after a step, or put them into a folder.

    Args:
        step: as for `changes`.
        to: an empty or a new folder.
        given: a version instead of a step's.
    """
    if step is not None and given is not None:
        raise UsageError("give a step or --version, not both")

    async def work(store: Store, found: StoredThread) -> int:
        version = Hash(given) if given else (await _around(store, found, step)).after
        if version is None:
            raise Failed(1, _unknown(found, step))
        if to is not None:
            await restore(store, version, to)
            output.data({"thread": found.thread_id, "version": version, "to": to}, str(to))
            return 0
        entries = await read_files(store, version)
        kept = {path: entry for path, entry in entries.items() if entry.kind != "folder"}
        listed = [
            {"path": path, "kind": entry.kind, "size": entry.size, "reason": entry.reason}
            for path, entry in sorted(kept.items())
        ]
        lines = [
            printable_name(path) + (f"  (left out: {entry.reason})" if entry.reason else "")
            for path, entry in sorted(kept.items())
        ]
        output.data({"thread": found.thread_id, "version": version, "files": listed},
                    "\n".join(lines))  # fmt: skip
        return 0

    return _with_stored(thread, work)


async def read_changes(
    store: Store, around: FilesOfStep, *, diffs: bool, most: int | None = None
) -> list[ShownChange]:
    """What differs between the two versions of a step; folders that only hold changes aside.

    Of paths behind the first `most` the lines are not counted.
    """
    if around.after is None or around.before == around.after:
        return []
    found: list[ShownChange] = []
    for change in await compare(store, around.before, around.after):
        if change.is_mere_folder:
            continue
        is_counted = most is None or len(found) < most
        lines = await diff(store, change) if is_counted else FileDiff(text="", added=0, deleted=0)
        found.append(_shown_change(change, lines, diffs=diffs))
    return found


def summary_of(changed: Sequence[ShownChange], most: int | None = None) -> list[Styled | str]:
    """A line for each of the first paths, with how many lines came and went."""
    words: list[Styled | str] = []
    for each in changed[:most]:
        words += ["\n"] if words else []
        counts = f"  +{each.added} -{each.deleted}" if each.added or each.deleted else ""
        words += [
            Styled(f"{_LETTERS[each.kind]} {printable_name(each.path)}", "strong"),
            Styled(counts, "dim"),
        ]
    if most is not None and len(changed) > most:
        words += ["\n", Styled(f"… and {len(changed) - most} more paths", "dim")]
    return words


def _words(changed: Sequence[ShownChange]) -> list[Styled | str]:
    if not changed:
        return ["no file changed"]
    words = summary_of(changed)
    for each in changed:
        # By line feeds alone: `splitlines` makes two lines of one with a form feed in it.
        for line in each.diff.removesuffix("\n").split("\n")[1 if each.diff else 0 :]:
            look = None if line.startswith(("+++", "---")) else _LOOKS.get(line[:1])
            words += ["\n", line if look is None else Styled(line, look)]
    return words


async def _around(store: Store, found: StoredThread, step: int | None) -> FilesOfStep:
    """The versions around a step, or around the whole thread.

    Raises:
        UsageError: there is no such step.
    """
    count = len(found.steps)
    if step is not None:
        if not 1 <= step <= count + 1:
            raise UsageError(f"thread {found.thread_id} has {count} steps; give one from 1 on")
        return await files_of_step(store, found, step - 1)
    each = [await files_of_step(store, found, number) for number in range(count + 1)]
    before = next((one.before for one in each if one.before is not None), None)
    after = next((one.after for one in reversed(each) if one.after is not None), None)
    return FilesOfStep(before=before, after=after)


def _unknown(found: StoredThread, step: int | None) -> str:
    if not found.start.versioned:
        return f"no versions were kept of the workspace of thread {found.thread_id}"
    what = "it" if step is None else f"step {step}"
    return f"no version is known there: {what} only read, or none could be kept"


def _shown_change(change: FileChange, lines: FileDiff, *, diffs: bool) -> ShownChange:
    return ShownChange(
        path=change.path,
        kind=change.kind,
        added=lines.added,
        deleted=lines.deleted,
        diff=lines.text if diffs else "",
    )


def _hashes(around: FilesOfStep) -> dict[str, Hash | None]:
    return {"before": around.before, "after": around.after}


def _with_stored(thread: str, work: _Work) -> int:
    home = find_home()
    if not store_path(home).exists():
        raise ThreadNotFound(thread)

    async def main() -> int:
        async with open_existing(home) as store:
            return await work(store, await read_thread(store, await find_thread(store, thread)))

    return run_async(main)
