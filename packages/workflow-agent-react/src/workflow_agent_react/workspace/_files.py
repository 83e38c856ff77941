"""Reading, writing and patching files of a workspace."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._git_files import must_not_steer_git
from workflow_agent_react.workspace._patch import Edit, apply_edits, encoding_of
from workflow_agent_react.workspace._paths import told_to_the_model
from workflow_agent_react.workspace._workspace import NotRegular, Place, Workspace

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Larger files are neither read, patched nor written."""
MAX_SHOWN_BYTES = 15_000  # below the loop's own cut, so that a model pages on with `offset`
MAX_LINE_CHARS = 2_000
DEFAULT_LINES = 400
_SNIFFED_BYTES = 8_192


def read_file(workspace: Workspace, path: str, *, offset: int = 1, limit: int = 0) -> str:
    """Lines of a text file, numbered, and what was left out.

    Args:
        offset: the first line, from 1; negative counts from the end.
        limit: how many lines; 0 for the default.

    Raises:
        ToolError: there is no such file, it isn't text, or it is too big.
    """
    with told_to_the_model(workspace, path):
        data = workspace.read(path, max_bytes=MAX_FILE_BYTES)
    _must_fit(len(data), path)
    text, note = decode(data, path)
    lines = split_lines(text)
    if not lines:
        return f"({workspace.relative(path)} is empty)"
    first = max(offset if offset >= 0 else len(lines) + 1 + offset, 1)
    if first > len(lines):
        raise ToolError(f"{path!r} has {_count(len(lines), 'line')}; offset {offset} is past that")
    shown = _number(lines, first, limit if limit > 0 else DEFAULT_LINES)
    return "\n".join([*shown, *_left_out(first, len(shown), len(lines)), *note])


def write_file(workspace: Workspace, path: str, content: str) -> str:
    """Create a file or replace all of it, at once for whoever reads it meanwhile.

    Raises:
        ToolError: the path can't be written. Nothing changed then, but for new folders.
    """
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"the content can't be written as UTF-8: {error.reason}") from None
    _must_fit(len(data), path)
    shown = workspace.relative(path)
    check = partial(must_not_steer_git, workspace, path)
    with (
        told_to_the_model(workspace, path),
        workspace.place(path, make_folders=True, check=check) as place,
    ):
        before = _state(place)
        _replace(place, data, before)
    was = "new file" if before is None else f"it had {_count(before.st_size, 'byte')}"
    return f"wrote {_count(len(data), 'byte')} to {shown} ({was})"


def patch_file(workspace: Workspace, path: str, edits: Sequence[Edit]) -> str:
    """Apply exact replacements to a file: all of them or none.

    Raises:
        ToolError: an edit doesn't fit, or the file can't be read or written. Nothing changed.
    """
    shown = workspace.relative(path)
    check = partial(must_not_steer_git, workspace, path)
    with told_to_the_model(workspace, path), workspace.place(path, check=check) as place:
        data, before = place.read(max_bytes=MAX_FILE_BYTES)
        _must_fit(len(data), path)
        decode(data, path)
        patched = apply_edits(data, edits)
        _must_fit(len(patched.data), path)
        _replace(place, patched.data, before, unchanged=True)
    places = ", ".join(map(str, patched.lines[:20])) + (", …" if len(patched.lines) > 20 else "")
    return f"patched {shown}: {_count(len(patched.lines), 'place')} changed, at line {places}"


def decode(data: bytes, path: str) -> tuple[str, list[str]]:
    """A file's text with `\\n` endings, and notes about what the text doesn't show.

    Raises:
        ToolError: it isn't text.
    """
    mark, encoding = encoding_of(data)
    body = data[len(mark) :]
    if encoding == "utf-8" and b"\0" in body[:_SNIFFED_BYTES]:
        raise ToolError(f"{path!r} is a binary file of {_count(len(data), 'byte')}, not text")
    try:
        text, note = body.decode(encoding), [f"({encoding})"] if encoding != "utf-8" else []
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        note = [f"(not valid {encoding}: the bytes that aren't are shown as \ufffd)"]
    return text.replace("\r\n", "\n"), note


def split_lines(text: str) -> list[str]:
    """The lines of a text; a newline at the end doesn't begin another one."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _number(lines: Sequence[str], first: int, limit: int) -> list[str]:
    shown: list[str] = []
    size = 0
    for number, line in enumerate(lines[first - 1 : first - 1 + limit], start=first):
        if len(line) > MAX_LINE_CHARS:
            cut = len(line) - MAX_LINE_CHARS
            line = f"{line[:MAX_LINE_CHARS]} … ({cut} more characters)"
        shown.append(f"{number}|{line}")
        size += len(shown[-1].encode("utf-8", "surrogatepass")) + 1
        if size > MAX_SHOWN_BYTES and len(shown) > 1:
            shown.pop()
            break
    return shown


def _left_out(first: int, shown: int, total: int) -> list[str]:
    last = first + shown - 1
    if last < total:
        more = f"{total - last} more line{'s' * (total - last != 1)}"
        return [f"({more} of {total}; call read_file with offset={last + 1})"]
    return [f"(end of file, {_count(total, 'line')})"]


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
