"""The workspace tools one by one, as the model sees them. Loaded when a role is given some."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta

from workflow_agent_react.search import _search
from workflow_agent_react.shell._shell import (
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    Shell,
)
from workflow_agent_react.tools._decorator import tool
from workflow_agent_react.tools._toolset import Toolset
from workflow_agent_react.workspace import _files, _listing, _moves
from workflow_agent_react.workspace._patch import Edit
from workflow_agent_react.workspace._workspace import Workspace
from workflow_protocol import Effect, ThreadContext
from workflow_util_agent.process import GRACE_S

MAX_RESULT_CHARS = 16_000
"""What each tool but `shell_exec` keeps to; the bounds are in their modules."""

MIN_LINES = 40
"""`read_file` shows so many at least: small models ask for one line at a time."""

_Path = Annotated[str, Meta(description="Path of a file in the workspace")]
_Folder = Annotated[str, Meta(description="Folder in the workspace; . is all of it")]


@tool(effect=Effect.READ, max_result_chars=MAX_RESULT_CHARS)
def read_file(
    ctx: ThreadContext,
    path: _Path,
    offset: Annotated[int, Meta(description="First line, from 1")] = 1,
    limit: Annotated[int, Meta(description="Number of lines")] = _files.DEFAULT_LINES,
    column: Annotated[int, Meta(description="First character of a long line, from 1")] = 1,
) -> str:
    """Read a text file. Each line is shown as number|text."""
    with Workspace(ctx.start.workspace) as workspace:
        lines = max(limit, MIN_LINES) if limit > 0 else limit
        return _files.read_file(workspace, path, offset=offset, limit=lines, column=column)


@tool(effect=Effect.READ, max_result_chars=MAX_RESULT_CHARS)
def list_files(
    ctx: ThreadContext,
    path: _Folder = ".",
    depth: Annotated[int, Meta(description="Levels of folders")] = _listing.DEFAULT_DEPTH,
) -> str:
    """List files and folders. Call it first, then read the file that fits the task."""
    with Workspace(ctx.start.workspace) as workspace:
        return _listing.list_files(workspace, path, depth=depth)


@tool(effect=Effect.READ, max_result_chars=MAX_RESULT_CHARS)
async def search_files(
    ctx: ThreadContext,
    pattern: Annotated[
        str, Meta(description="A word of the task to look for, or a regular expression")
    ],
    path: _Folder = ".",
    glob: Annotated[str, Meta(description="Only files of these names; empty for all")] = "",
) -> str:
    """Find lines that hold a word. Gives path:line: text for each match."""
    return await _search.search_files(
        partial(Workspace, ctx.start.workspace), pattern, path=path, glob=glob
    )


# REPEATABLE: the same content again leaves the same file. Added twice it would be there twice.
@tool(effect=Effect.REPEATABLE, unsafe_if="append", max_result_chars=MAX_RESULT_CHARS)
def write_file(
    ctx: ThreadContext,
    path: _Path,
    content: Annotated[str, Meta(description="The whole new text of the file")],
    append: Annotated[bool, Meta(description="Add content at the file's end instead")] = False,
) -> str:
    """Create a file or replace all of its text."""
    with Workspace(ctx.start.workspace) as workspace:
        return _files.write_file(workspace, path, content, append=append)


# UNSAFE: where `new` contains `old`, the same edit again would be made twice.
@tool(effect=Effect.UNSAFE, max_result_chars=MAX_RESULT_CHARS)
def patch_file(
    ctx: ThreadContext,
    path: _Path,
    old: Annotated[str, Meta(description="Exact text to replace, without line numbers")],
    new: Annotated[str, Meta(description="Text to put in its place")],
    replace_all: Annotated[bool, Meta(description="Replace every occurrence")] = False,
    more: Annotated[list[Edit], Meta(description="More edits of this file; all or none")] = [],  # noqa: B006 - never changed; the schema shows it
) -> str:
    """Replace text in a file. old must occur exactly once."""
    edits = [Edit(old, new, replace_all), *more]
    with Workspace(ctx.start.workspace) as workspace:
        return _files.patch_file(workspace, path, edits)


# UNSAFE, both: made again they would tell that the file isn't there, and what may be meant instead.
@tool(effect=Effect.UNSAFE, max_result_chars=MAX_RESULT_CHARS)
def move_file(
    ctx: ThreadContext,
    path: _Path,
    to: Annotated[str, Meta(description="New path, with the file's name")],
) -> str:
    """Move or rename a file. Nothing is replaced."""
    with Workspace(ctx.start.workspace) as workspace:
        return _moves.move_file(workspace, path, to)


@tool(effect=Effect.UNSAFE, max_result_chars=MAX_RESULT_CHARS)
def delete_file(ctx: ThreadContext, path: _Path) -> str:
    """Delete a file or an empty folder."""
    with Workspace(ctx.start.workspace) as workspace:
        return _moves.delete_file(workspace, path)


def shell_tool(shell: Shell) -> Toolset:
    """`shell_exec`, whose commands run as this shell says."""

    @tool(effect=Effect.UNSAFE, timeout_s=MAX_TIMEOUT_S + 3 * GRACE_S)
    async def shell_exec(
        ctx: ThreadContext,
        command: Annotated[str, Meta(description="Command for sh, run in the workspace")],
        timeout_s: Annotated[int, Meta(description="Seconds it may take")] = DEFAULT_TIMEOUT_S,
    ) -> str:
        """Run a shell command. Gives its output and exit code."""
        seconds = min(max(timeout_s, 1), MAX_TIMEOUT_S)
        return await shell.run(ctx.start.workspace, command, timeout_s=seconds)

    return Toolset.combine(shell_exec)
