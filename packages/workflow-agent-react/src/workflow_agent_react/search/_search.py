"""Finding text in the files of a workspace."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice

import msgspec
from anyio import CancelScope, current_time, move_on_after, to_thread

from workflow_agent_react._errors import ToolError
from workflow_agent_react.search._excerpt import Span, beginning, is_long, matched_line
from workflow_agent_react.search._grep import (
    Grep,
    Hit,
    grep_for,
    grep_words,
    regex_fault,
    words_of,
)
from workflow_agent_react.search._name_filter import name_filter
from workflow_agent_react.workspace._encoding import read_text
from workflow_agent_react.workspace._names import actual_path, printable
from workflow_agent_react.workspace._paths import NoSuchPath, told_to_the_model
from workflow_agent_react.workspace._walk import Entry, walk
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import Effort

MAX_MATCHES = 100
MAX_SHOWN_CHARS = 15_000  # below an adapter's own cut, as for `read_file`
MAX_SEARCHED_BYTES = 8 * 1024 * 1024
"""Larger files are not searched, which the result says."""
FEW_MATCHES, CONTEXT_LINES = 5, 2
"""So few matches are shown with so many lines before and after, which saves reading the files."""
SEARCH_S = 20.0
_SPANS_S = 3.0
"""So long the matches in long lines may be looked for; else their beginnings are shown."""
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_S = 0.1
_MAX_PATTERN = 1_000
_MAX_NAMES = 3_000
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")


class _Found(msgspec.Struct):
    lines: list[str] = msgspec.field(default_factory=list[str])
    around: list[str] = msgspec.field(default_factory=list[str])
    """The first matches with the lines around them."""
    chars: int = 0
    files: int = 0
    more: bool = False
    too_big: int = 0
    stopped: str = ""


class _Batch(msgspec.Struct):
    """Files to search at once: their texts one after the other, each ending in a newline."""

    paths: list[str] = msgspec.field(default_factory=list[str])
    starts: list[int] = msgspec.field(default_factory=list[int])
    """The line, from 0, at which each begins."""
    text: bytearray = msgspec.field(default_factory=bytearray)
    lines: int = 0
    files: int = 0
    too_big: int = 0

    def place(self, number: int) -> tuple[str, int, int]:
        """The file that a line stands in, and the lines at which it begins and ends."""
        file = bisect_right(self.starts, number) - 1
        end = self.starts[file + 1] if file + 1 < len(self.starts) else self.lines
        return printable(self.paths[file]), self.starts[file], end

    def place_words(self, number: int) -> str:
        """The place of a line as it is shown."""
        path, start, _ = self.place(number)
        return f"{path}:{number - start + 1}"

    def around(self, matched: Mapping[int, str]) -> list[str]:
        """These lines, as they are shown, with those around them in the form of `grep -C`."""
        lines = self.text.split(b"\n")
        shown: dict[int, str] = {}
        for number in matched:
            path, start, end = self.place(number)
            first, last = max(start, number - CONTEXT_LINES), min(end, number + CONTEXT_LINES + 1)
            for near in range(first, last):
                text = f"{path}-{near - start + 1}- {beginning(lines[near].rstrip())}"
                shown[near] = matched.get(near, text)
        return list(shown.values())

    def add(self, path: str, text: bytes) -> None:
        self.files += 1
        if text:
            self.paths.append(path)
            self.starts.append(self.lines)
            self.text += text
            self.lines += text.count(b"\n")
            if not text.endswith(b"\n"):
                self.text += b"\n"
                self.lines += 1


async def search_files(
    root: Callable[[], Workspace],
    pattern: str,
    *,
    path: str = ".",
    glob: str = "",
    ripgrep: bool = True,
) -> str:
    """Lines that match, as `path:line: text`, and how much was searched.

    Where nothing matches, more is tried, and the result says so: a regular expression as plain
    text, files that the path or glob leaves out, and lines that have the words of a plain text in
    any order and case (`requests per minute` where a file has `REQUESTS_PER_MINUTE`). Few matches
    are shown with the lines around them, as `path-line- text`. Of a long line the parts around the
    matches are shown, as `path:line:column: text`.

    Args:
        root: opens the workspace; it is closed here.
        glob: only files that a line of a `.gitignore` with this text would match.
        ripgrep: match with `rg` where it is installed.

    Raises:
        ToolError: the pattern or glob can't be used, or there is no such folder and no match
            elsewhere.
    """
    _must_be_usable(pattern)
    fault = regex_fault(pattern)
    literal = bool(fault) or _SPECIAL.search(pattern) is None
    grep = grep_for(pattern, literal=literal, ripgrep=ripgrep)
    note = f"(searched as plain text: not a valid regular expression, {fault})" if fault else ""
    attempts = [(grep, path, glob, note)]
    if not literal:
        note = "(no match as a regular expression; these match as plain text)"
        attempts.append((grep_for(pattern, literal=True), path, glob, note))
    if glob or path != ".":
        left = " and ".join(map(repr, filter(None, (glob, path if path != "." else ""))))
        note = f"(no match in {left}; these are in other files)"
        attempts.append((grep, ".", "", note))
    if literal and (words := words_of(pattern)):
        note = f"(no match for {pattern!r}; these have its words, in any order and case)"
        attempts.append((grep_words(words), ".", "", note))
    found, missing, limits = _Found(), None, _Limits(until=time.monotonic() + SEARCH_S)
    for how, where, only, note in attempts:
        try:
            found = await _search(root, how, path=where, glob=only, limits=limits)
        except NoSuchPath as error:
            missing = error
            continue
        if found.lines or found.stopped:
            return _report(found, pattern, f"({missing})\n{note}" if missing else note, limits)
    if missing:
        raise missing
    note = await to_thread.run_sync(_named_like, root, pattern, limits)
    return _report(found, pattern, note, limits)


class _OutOfTime(Exception):
    """Raised and caught here, in the thread that looks for files."""


class _Limits(msgspec.Struct):
    """What a search may take, with all that it tries."""

    until: float
    """By `time.monotonic`."""
    effort: Effort = msgspec.field(default_factory=Effort)

    def check(self) -> None:
        """Raise `_OutOfTime` when it is time to stop."""
        if time.monotonic() > self.until:
            raise _OutOfTime


def _named_like(root: Callable[[], Workspace], pattern: str, limits: _Limits) -> str:
    """Small models look for a file by its name."""
    name = pattern.strip("*./ ").lower()
    paths: list[str] = []
    with root() as workspace, suppress(_OutOfTime):
        entries = islice(walk(workspace, ".", effort=limits.effort, check=limits.check), _MAX_NAMES)
        paths.extend(printable(entry.path) for entry in entries if entry.kind == "file")
    named = [path for path in paths if name and name in path.lower()][:5]
    return f"(it is in the name of {', '.join(map(repr, named))}; call read_file)" if named else ""


def _must_be_usable(pattern: str) -> None:
    if not pattern:
        raise ToolError("the pattern is empty; give a text or regular expression to look for")
    if len(pattern) > _MAX_PATTERN:
        raise ToolError(f"the pattern is longer than {_MAX_PATTERN} characters; look for a part")
    if "\n" in pattern:
        raise ToolError("lines are searched one by one; look for the text of one line")
    if "\0" in pattern or any(map(_is_surrogate, pattern)):
        raise ToolError("the pattern has a character that no text file can have")


def _is_surrogate(character: str) -> bool:
    return 0xD800 <= ord(character) <= 0xDFFF


async def _search(
    root: Callable[[], Workspace], grep: Grep, *, path: str, glob: str, limits: _Limits
) -> _Found:
    found, out_of_time = _Found(), False
    left = limits.until - time.monotonic()
    with CancelScope(deadline=current_time() + left) as limit:
        with closing(_batches(root, path, glob, limits)) as batches:
            try:
                while (batch := await to_thread.run_sync(next, batches, None)) is not None:
                    await _search_batch(batch, grep, found)
                    if found.more:
                        break
            except _OutOfTime:
                out_of_time = True
    if limit.cancelled_caught or out_of_time:
        found.stopped = f"stopped after {SEARCH_S:g} s"
    return found


async def _search_batch(batch: _Batch, grep: Grep, found: _Found) -> None:
    hits = await grep(batch.text)
    found.files += batch.files
    found.too_big += batch.too_big
    room = max(MAX_MATCHES - len(found.lines), 0)
    spans = await _spans_in_long(grep, hits[:room])
    lines = {
        number: matched_line(batch.place_words(number), line, spans.get(number, ()))
        for number, line in hits[:room]
    }
    if 0 < len(hits) <= FEW_MATCHES - len(found.lines):
        found.around += await to_thread.run_sync(batch.around, lines)
    for number, text in lines.items():
        place = f"{batch.place_words(number)}: "
        line = place + text.removeprefix(place).lstrip() if text.startswith(place) else text
        if found.lines and found.chars + len(line) > MAX_SHOWN_CHARS:
            found.more = True
            return
        found.lines.append(line)
        found.chars += len(line) + 1
    found.more = len(hits) > len(lines)


async def _spans_in_long(grep: Grep, hits: Sequence[Hit]) -> dict[int, list[Span]]:
    """Where the matches are in the lines that are too long to be shown whole, by their number."""
    long = {number: line for number, line in hits if is_long(line)}
    if long:
        with move_on_after(_SPANS_S):
            return dict(zip(long, await grep.spans(list(long.values())), strict=True))
    return {}


def _batches(
    root: Callable[[], Workspace], path: str, glob: str, limits: _Limits
) -> Generator[_Batch]:
    """The texts to search, a few megabytes and a tenth of a second at a time."""
    wanted = name_filter(glob)
    with root() as workspace:
        batch, since = _Batch(), time.monotonic()
        for entry in _entries(workspace, path, limits):
            if entry.kind == "file" and wanted(entry.path):
                data = _read(workspace, entry.path)
                if data is not None and len(data) > MAX_SEARCHED_BYTES:
                    batch.too_big += 1
                elif data is not None and (text := _text(data)) is not None:
                    batch.add(entry.path, text)
            if len(batch.text) > _BATCH_BYTES or time.monotonic() - since > _BATCH_S:
                yield batch
                batch, since = _Batch(), time.monotonic()
        yield batch


def _entries(workspace: Workspace, path: str, limits: _Limits) -> Iterator[Entry]:
    with told_to_the_model(workspace, path):
        path = actual_path(workspace, path)
        try:
            yield from walk(workspace, path, effort=limits.effort, check=limits.check)
        except NotADirectoryError:
            workspace.read(path, max_bytes=0)
            yield Entry(workspace.relative(path), "file")


def _read(workspace: Workspace, path: str) -> bytes | None:
    try:
        return workspace.read(path, max_bytes=MAX_SEARCHED_BYTES)
    except (OSError, ToolError):
        return None  # gone, or not ours to read


def _text(data: bytes) -> bytes | None:
    """The text as UTF-8 with plain newlines; `None` when it isn't text."""
    if data.isascii() and b"\r" not in data and b"\0" not in data:
        return data
    text = read_text(data)
    return None if text is None else "".join(f"{line}\n" for line in text.lines()).encode()


def _report(found: _Found, pattern: str, note: str, limits: _Limits) -> str:
    end: list[str] = []
    files = f"{found.files} file{'s' * (found.files != 1)}"
    if found.more:
        end.append(
            f"(the first {len(found.lines)} matches; narrow the pattern, path or glob for others)"
        )
    elif not found.lines:
        end.append(f"no match for {pattern!r} in {files}; try another word, or read a likely file")
    else:
        count = len(found.lines)
        end.append(f"({count} matching line{'s' * (count != 1)} in {files} searched)")
    if found.too_big:
        end.append(f"({found.too_big} larger than {MAX_SEARCHED_BYTES >> 20} MiB not searched)")
    if found.stopped:
        end.append(f"({found.stopped}: the pattern is slow or there is much to search)")
    if limits.effort.note:
        end.append(limits.effort.note)
    few = len(found.lines) <= FEW_MATCHES
    return "\n".join([*(found.around if few else found.lines), *end, *([note] if note else [])])
