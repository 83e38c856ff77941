"""Runs the Python blocks of one page, in order. As a program it reads them as JSON from a file.

It needs nothing but the standard library, so it also runs where one package is installed alone.
"""

from __future__ import annotations

import ast
import asyncio  # noqa: TID251 - anyio may not be installed beside the package whose page this is
import contextlib
import inspect
import io
import json
import linecache
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypedDict


class PythonBlock(TypedDict):
    """A block of a page, or what a comment above one sets up for it."""

    line: int
    """Of the page, where its code begins."""
    code: str
    prints: str | None
    """What the page says that it prints; `None` if it says nothing."""


async def run_blocks(page: str, blocks: list[PythonBlock]) -> None:
    """Run the blocks of a page in one namespace, but each script in one of its own.

    `stack`, an `AsyncExitStack` that is closed after the last block, is in the namespace.

    Raises:
        AssertionError: a block printed something else than the page says.
    """
    shared = _namespace("page")
    async with contextlib.AsyncExitStack() as stack:
        shared["stack"] = stack
        for block in blocks:
            code = _compiled(page, block)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                if is_script(block["code"]):
                    # A new thread: the script starts a loop. A new context: it is in none.
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(None, exec, code, _namespace("__script__"))
                elif code.co_flags & inspect.CO_COROUTINE:
                    await eval(code, shared)
                else:
                    exec(code, shared)
            if block["prints"] is not None and printed.getvalue() != block["prints"]:
                where = f"{page}:{block['line']}"
                raise AssertionError(
                    f"{where} prints\n{printed.getvalue()}\nand not\n{block['prints']}"
                )


def is_script(code: str) -> bool:
    """Whether the block starts an event loop itself, as `anyio.run(main)` does."""
    last = ast.parse(code).body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in {"anyio.run", "asyncio.run"}


def _compiled(page: str, block: PythonBlock) -> CodeType:
    """The code, so that tracebacks and `inspect.getsource` show the lines of the page."""
    name = f"{page}:{block['line']}"
    source = "\n" * (block["line"] - 1) + block["code"]
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _namespace(name: str) -> dict[str, Any]:
    """Of a module that types can be found in by the name that their classes say."""
    module = sys.modules[name] = ModuleType(name)
    return module.__dict__


if __name__ == "__main__":
    page, blocks = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    asyncio.run(run_blocks(page, blocks))
