"""Which lines match: plain text here, regular expressions in a process that can be stopped.

A regular expression may take longer than anyone will wait (`(a+)+$`), and no thread can be
stopped while it matches. `rg` matches in linear time; without it, a Python process does the work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

import anyio
from anyio import to_thread
from anyio.abc import ByteSendStream

from workflow_agent_react._errors import ToolError
from workflow_agent_react.search._excerpt import Span

Hit = tuple[int, bytes]


class Grep(Protocol):
    """Finds a pattern."""

    async def __call__(self, text: bytes | bytearray) -> list[Hit]:
        """The lines that match in a UTF-8 text of whole lines: number from 0, and content."""
        ...

    async def spans(self, lines: Sequence[bytes]) -> list[list[Span]]:
        """Where the matches are in each of these lines, in order and without overlap."""
        ...


_SPANS_WORKER = """
import re, sys
found = re.compile(sys.argv[1]).finditer
for number, line in enumerate(sys.stdin.buffer.read().decode().split("\\n")[:-1], 1):
    done, size = 0, 0
    for match in found(line):
        start, end = match.span()
        size += len(line[done:start].encode())
        done = start
        sys.stdout.write("%d:%d:%d\\n" % (number, size, size + len(match[0].encode())))
"""

_WORKER = """
import re, sys
found = re.compile(sys.argv[1]).search
for number, line in enumerate(sys.stdin.buffer.read().decode().split("\\n")[:-1], 1):
    if found(line):
        sys.stdout.buffer.write(b"%d:%s\\n" % (number, line.encode()))
"""

# What Python and Rust both accept but understand differently: possessive quantifiers, word
# boundaries written \< and \> or \b{start}, flags that only look alike, sets in sets, and an end of
# line before a beginning of one, which only Python finds on an empty line.
_UNLIKE = re.compile(
    r"[*+?}]\+|\\(?:[<>]|[bB]\{)|\(\?[a-zA-Z-]*[xLau]|\[\^?\]?[^\]]*\[|--|&&|~~|\|\||\$.*\^"
)

# What the two see alike in plain ASCII only: to Python the sign in "km²" belongs to a word and a
# combining accent doesn't, to Rust it is the other way round; of cases they have different lists.
_BY_CLASS = re.compile(r"\\[bBsSwW]|\(\?[a-zA-Z-]*i")
_SPACES = b"\x1c\x1d\x1e\x1f"  # to Python


def grep_for(pattern: str, *, literal: bool, ripgrep: bool = True) -> Grep:
    """The matcher for a pattern, which is valid for `re` unless it is literal."""
    if literal:
        return _Literal(pattern)
    rg = shutil.which("rg") if ripgrep and _UNLIKE.search(pattern) is None else None
    return _Process(pattern, rg)


def words_of(pattern: str) -> list[str]:
    """The words in a plain text, without case; `_` parts them as any sign does."""
    return re.findall(r"[^\W_]+", pattern.lower())


def grep_words(words: Sequence[str]) -> Grep:
    """The matcher for lines that hold all of these words, be it within longer ones, in any case."""
    return _Words(words)


def regex_fault(pattern: str) -> str:
    """Why this is no regular expression; empty when it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that [[:alpha:]] means more elsewhere
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return str(error)
    return ""


class _Words:
    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._any = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)

    async def __call__(self, text: bytes | bytearray) -> list[Hit]:
        return await to_thread.run_sync(self._match, text)

    def _match(self, text: bytes | bytearray) -> list[Hit]:
        lines = text.decode("utf-8", "replace").split("\n")[:-1]
        return [
            (number, line.encode())
            for number, line in enumerate(lines)
            if all(word in line.lower() for word in self._words)
        ]

    async def spans(self, lines: Sequence[bytes]) -> list[list[Span]]:
        return [list(_in_bytes(self._any.finditer(line.decode()))) for line in lines]


def _in_bytes(matches: Iterable[re.Match[str]]) -> Iterator[Span]:
    done = size = 0
    for match in matches:
        size += len(match.string[done : match.start()].encode())
        done = match.start()
        yield size, size + len(match[0].encode())


class _Literal:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern.encode()

    async def __call__(self, text: bytes | bytearray) -> list[Hit]:
        return await to_thread.run_sync(self._match, text)

    def _match(self, text: bytes | bytearray) -> list[Hit]:
        hits: list[Hit] = []
        counted, number = 0, 0
        at = text.find(self._pattern)
        while at >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            end = text.index(b"\n", at)
            number += text.count(b"\n", counted, start)
            counted = start
            hits.append((number, bytes(text[start:end])))
            at = text.find(self._pattern, end)
        return hits

    async def spans(self, lines: Sequence[bytes]) -> list[list[Span]]:
        pattern = re.compile(re.escape(self._pattern))
        return [[match.span() for match in pattern.finditer(line)] for line in lines]


class _Process:
    def __init__(self, pattern: str, rg: str | None) -> None:
        self._pattern = pattern
        self._rg = rg
        self._by_class = _BY_CLASS.search(pattern) is not None

    async def __call__(self, text: bytes | bytearray) -> list[Hit]:
        if not text:
            return []
        if self._rg is not None and (not self._by_class or _is_plain(text)):
            command = [self._rg, *_RG_OPTIONS, f"--regexp={self._pattern}", "-"]
            code, output = await _run(command, text)
            if code in {0, 1}:
                return await to_thread.run_sync(_hits, output)
            self._rg = None  # not in its syntax: a lookahead, a back reference
        command = [sys.executable, "-I", "-S", "-c", _WORKER, self._pattern]
        code, output = await _run(command, text)
        if code != 0:
            raise ToolError(f"the pattern {self._pattern!r} could not be used; try a simpler one")
        return await to_thread.run_sync(_hits, output)

    async def spans(self, lines: Sequence[bytes]) -> list[list[Span]]:
        text = b"".join(line + b"\n" for line in lines)
        command = [sys.executable, "-I", "-S", "-c", _SPANS_WORKER, self._pattern]
        _, output = await _run(command, text)
        spans: list[list[Span]] = [[] for _ in lines]
        for item in output.splitlines():
            number, start, end = map(int, item.split(b":"))
            spans[number - 1].append((start, end))
        return spans


def _is_plain(text: bytes | bytearray) -> bool:
    return text.isascii() and not any(sign in text for sign in _SPACES)


_RG_OPTIONS = (
    "--no-config",
    "--no-filename",
    "--no-heading",
    "--line-number",
    "--color=never",
    "--text",
    "--encoding=none",
    "--case-sensitive",
)


async def _run(command: Sequence[str], text: bytes | bytearray) -> tuple[int, bytes]:
    """Give the process the text and return its exit code and output. Killed when cancelled."""
    env = {"PATH": os.defpath, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        output = bytearray()
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process.stdin, text)
            async for chunk in process.stdout:
                output += chunk
        return await process.wait(), bytes(output)


async def _feed(stdin: ByteSendStream, text: bytes | bytearray) -> None:
    with suppress(anyio.BrokenResourceError):  # it refused the pattern and ended
        await stdin.send(bytes(text))
    await stdin.aclose()


def _hits(output: bytes) -> list[Hit]:
    hits: list[Hit] = []
    for item in output.split(b"\n")[:-1]:
        number, _, line = item.partition(b":")
        hits.append((int(number) - 1, line))
    return hits
