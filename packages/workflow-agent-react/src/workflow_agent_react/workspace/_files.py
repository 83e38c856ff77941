"""Reading, writing and patching files of a workspace."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._encoding import Text, ending_of, like_before, read_text
from workflow_agent_react.workspace._git_files import must_not_steer_git
from workflow_agent_react.workspace._names import actual_path, printable
from workflow_agent_react.workspace._patch import Edit, apply_edits
from workflow_agent_react.workspace._paths import told_to_the_model
from workflow_agent_react.workspace._workspace import NotRegular, Place, Workspace
from workflow_protocol import current_work
from workflow_util_agent import CONTROL_CODE, terminal_text

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Larger files are neither read, patched nor written."""
MAX_SHOWN_BYTES = 15_000  # below the loop's own cut, so that a model pages on with `offset`
DEFAULT_LINES = 400
_LEAST_PART = 2_000  # bytes of a long line, so that it isn't begun at the end of a page


def read_file(
    workspace: Workspace, path: str, *, offset: int = 1, limit: int = 0, column: int = 1
) -> str:
    """Lines of a text file, numbered, and how to read on. The pages together are its text.

    Control codes are left out, and what they overwrite, as a terminal would.

    Args:
        offset: the first line, from 1; negative counts from the end.
        limit: how many lines; 0 for the default.
        column: the first character of the first line, from 1: a long line is read in parts.

    Raises:
        ToolError: there is no such file, it isn't text, or it is too big.
    """
    with told_to_the_model(workspace, path):
        path = actual_path(workspace, path)
        data = workspace.read(path, max_bytes=MAX_FILE_BYTES)
    _must_fit(len(data), path)
    text = as_text(data, path)
    lines = text.lines()
    if not lines:
        return f"({printable(workspace.relative(path))} is empty)"
    first = max(offset if offset >= 0 else len(lines) + 1 + offset, 1)
    if first > len(lines):
        raise ToolError(f"{path!r} has {_count(len(lines), 'line')}; offset {offset} is past that")
    with_codes = [number for number, line in enumerate(lines, start=1) if CONTROL_CODE.search(line)]
    for number in with_codes:
        lines[number - 1] = _as_shown(lines[number - 1])
    shown, on = _page(lines, first, max(column, 1), limit if limit > 0 else DEFAULT_LINES)
    notes = [on, text.note(), _codes_note(with_codes)]
    return "\n".join([*shown, *filter(None, notes)])


def _as_shown(line: str) -> str:
    return terminal_text(re.sub("[\v\f\x85]", "", line))


def _codes_note(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    where = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
    return (
        "(control codes, and what they overwrite, are not shown; "
        f"there are some in line{'s' * (len(lines) != 1)} {where})"
    )


def _page(lines: Sequence[str], first: int, column: int, limit: int) -> tuple[list[str], str]:
    """Numbered lines that fit on a page, and where to go on. The last may be a part of its line."""
    total = len(lines[first - 1])
    if column > max(total, 1):
        has = _count(total, "character")
        raise ToolError(f"line {first} has {has}; column {column} is past that")
    shown: list[str] = []
    room = MAX_SHOWN_BYTES
    for number, line in enumerate(lines[first - 1 : first - 1 + limit], start=first):
        rest = line[column - 1 :] if column > 1 else line
        part = _fitting(rest, room - len(f"{number}|\n"))
        is_cut = len(part) < len(rest)
        if is_cut and shown and (len(part) < _LEAST_PART or _fits_on_a_page(rest)):
            break
        shown.append(f"{number}|{part}")
        room -= _size(shown[-1]) + 1
        if is_cut:
            return shown, _within_line(number, column, column + len(part), len(line), len(lines))
        column = 1
    return shown, _left_out(first + len(shown) - 1, len(lines))


def _fits_on_a_page(line: str) -> bool:
    room = MAX_SHOWN_BYTES - _LEAST_PART
    return len(line) <= room and _size(line) <= room


def _fitting(text: str, room: int) -> str:
    """As much of the beginning of a text as fits into so many bytes."""
    part = text[: max(room, 1)]
    while (size := _size(part)) > room and len(part) > 1:
        part = part[: max(len(part) * room // size, 1)]
    return part


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _within_line(number: int, start: int, end: int, total: int, lines: int) -> str:
    after = f"; the next line is offset={number + 1}" if number < lines else ""
    return (
        f"(characters {start} to {end - 1} of {total} in line {number} of {lines}; "
        f"call read_file with offset={number}, column={end} to go on in it{after})"
    )


def _left_out(last: int, total: int) -> str:
    if last < total:
        more = f"{total - last} more line{'s' * (total - last != 1)}"
        return f"({more} of {total}; call read_file with offset={last + 1})"
    return f"(end of file, {_count(total, 'line')})"


def write_file(workspace: Workspace, path: str, content: str, *, append: bool = False) -> str:
    """Create a file, replace all of it or add to it, at once for whoever reads it meanwhile.

    A file that was there keeps its encoding, its byte order mark and its line endings where the
    content can be written so; the result says what was kept and what was not.

    Args:
        append: put the content behind what is there, which stays byte by byte.

    Raises:
        ToolError: the path can't be written. Nothing changed then, but for new folders.
    """
    try:
        _must_fit(len(content.encode()), path)
    except UnicodeEncodeError as error:
        raise ToolError(f"the content can't be written as UTF-8: {error.reason}") from None
    path = actual_path(workspace, path)
    shown = printable(workspace.relative(path))
    real = RealPath(workspace, path)
    with (
        told_to_the_model(workspace, path),
        workspace.place(path, make_folders=True, check=real.check) as place,
    ):
        before = _state(place)
        if append and before is not None:
            data, kept = _appended(place, path, content)
        else:
            data, kept = like_before(content, b"" if before is None else _readable(place))
        _must_fit(len(data), path)
        _replace(place, data, before, unchanged=append)
        current_work().touched(real.path)
    if append and before is not None:
        added = _count(len(data) - before.st_size, "byte")
        now = _count(len(data), "byte")
        return f"added {added} to {shown} ({'; '.join([f'it has {now} now', *kept])})"
    was = "new file" if before is None else f"it had {_count(before.st_size, 'byte')}"
    return f"wrote {_count(len(data), 'byte')} to {shown} ({'; '.join([was, *kept])})"


def patch_file(workspace: Workspace, path: str, edits: Sequence[Edit]) -> str:
    """Apply exact replacements to a file: all of them or none.

    Raises:
        ToolError: an edit doesn't fit, or the file can't be read or written. Nothing changed.
    """
    path = actual_path(workspace, path)
    shown = printable(workspace.relative(path))
    real = RealPath(workspace, path)
    with told_to_the_model(workspace, path), workspace.place(path, check=real.check) as place:
        data, before = place.read(max_bytes=MAX_FILE_BYTES)
        _must_fit(len(data), path)
        patched = apply_edits(as_text(data, path), edits)
        _must_fit(len(patched.data), path)
        _replace(place, patched.data, before, unchanged=True)
        current_work().touched(real.path)
    places = ", ".join(map(str, patched.lines[:20])) + (", …" if len(patched.lines) > 20 else "")
    return f"patched {shown}: {_count(len(patched.lines), 'place')} changed, at line {places}"


def _appended(place: Place, path: str, content: str) -> tuple[bytes, list[str]]:
    """The bytes of a file with more text, in its encoding and with its line ending, and a note."""
    data, _ = place.read(max_bytes=MAX_FILE_BYTES)
    _must_fit(len(data), path)
    if not data:
        return content.encode(), []
    text = as_text(data, path)
    ending = ending_of(text.text)
    more = content.replace("\r\n", "\n").replace("\n", ending)
    if not text.is_known and not more.isascii():
        raise ToolError(f"{path!r} has an unknown encoding; only ASCII can be added to it")
    try:
        data += text.encode(more)[len(text.mark) :]
    except UnicodeEncodeError as error:
        lacks = more[error.start]
        raise ToolError(
            f"{path!r} is {text.encoding}, which has no {lacks!r}; add other text, or write the "
            "whole file anew, which makes it UTF-8"
        ) from None
    is_joined = text.text and not text.text.endswith(("\n", ending))
    return data, ["it had no newline at its end, so the last line goes on"] if is_joined else []


class RealPath:
    """Where the place of a path is, without the links on the way; git's own places are refused."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        self._workspace = workspace
        self._asked = path
        self.path = ""

    def check(self, names: Sequence[str]) -> None:
        must_not_steer_git(self._workspace, self._asked, names)
        self.path = "/".join(names)


def as_text(data: bytes, path: str) -> Text:
    """A file's text.

    Raises:
        ToolError: it isn't text.
    """
    text = read_text(data)
    if text is None:
        raise ToolError(f"{path!r} is a binary file of {_count(len(data), 'byte')}, not text")
    return text


def _readable(place: Place) -> bytes:
    """The bytes of a file that is replaced; none if they are too many, or not ours to read."""
    with suppress(PermissionError):
        data, _ = place.read(max_bytes=MAX_FILE_BYTES)
        if len(data) <= MAX_FILE_BYTES:
            return data
    return b""


def _state(place: Place) -> os.stat_result | None:
    try:
        found = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(place.name)
    if not stat.S_ISREG(found.st_mode):
        raise NotRegular(place.name)
    return found


def _replace(
    place: Place, data: bytes, before: os.stat_result | None, *, unchanged: bool = False
) -> None:
    """Put a new file in the place by rename, with the mode and owner of the one before.

    Args:
        unchanged: only if the file is still the one that `before` tells of.
    """
    temporary = f".uwf-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=place.folder_fd)
    try:
        with open(fd, "wb") as file:
            if before is not None:
                with suppress(PermissionError):
                    os.fchown(fd, before.st_uid, before.st_gid)
                os.fchmod(fd, stat.S_IMODE(before.st_mode))
            file.write(data)
            file.flush()
            os.fsync(fd)
        if unchanged and not _same(before, _state(place)):
            raise ToolError("the file changed meanwhile, so nothing was written; read it again")
        os.rename(temporary, place.name, src_dir_fd=place.folder_fd, dst_dir_fd=place.folder_fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder_fd)
        raise


def _same(before: os.stat_result | None, after: os.stat_result | None) -> bool:
    def key(state: os.stat_result | None) -> tuple[int, ...] | None:
        return state and (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)

    return key(before) == key(after)


def _must_fit(size: int, path: str) -> None:
    if size > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // (1024 * 1024)
        raise ToolError(
            f"{path!r} is larger than {limit} MiB, too large for this tool; "
            "use shell_exec with head, tail, sed or grep"
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
