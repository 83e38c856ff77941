"""No parser of supplied text takes more than time in proportion to it, whatever the text is.

Python code is counted line by line, which no busy machine disturbs. What patterns and decoders do
inside counts no lines: there it is CPU time, and only where a text takes long at all.
"""

import itertools
from collections.abc import Callable
from functools import partial

import pytest

from uwf.commands._sandbox_use import NO_SANDBOX
from workflow_workspace.git._places import WORKTREE

from .parsers import PARSERS, Parser, quietly
from .work import cpu_s, lines_run
from .worst_cases import shapes

SMALL = 500
QUICK_S = 0.01
"""What takes less is no danger, and too little to compare."""
MOST = 2
"""So many times the work that is in proportion; what goes by the square has four times it."""


def grows_by_lines(read: Callable[[str], object], make: Callable[[int], str]) -> str:
    texts = make(SMALL), make(4 * SMALL)
    few, many = (lines_run(partial(read, text)) for text in texts)
    return f"{few} lines, then {many}" if many > 4 * MOST * few + 500 else ""


def grows_by_time(read: Callable[[str], object], make: Callable[[int], str], large: int) -> str:
    text = make(large)
    if cpu_s(lambda: read(text)) < QUICK_S:
        return ""
    quarter = make(large // 4)
    few = min(cpu_s(lambda: read(quarter)) for _ in range(7))
    many = min(cpu_s(lambda: read(text)) for _ in range(7))
    too_slow = many > max(QUICK_S, 4 * MOST * few)
    return f"{few:.4f} s, then {many:.4f} s" if too_slow else ""


def grown(parser: Parser, *, every: int, large: int) -> dict[str, str]:
    read = quietly(parser.read)
    return {
        name: problem
        for name, make in itertools.islice(shapes(*parser.families), 0, None, every)
        for problem in (grows_by_time(read, make, large), grows_by_lines(read, make))
        if problem
    }


@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
def test_four_times_the_text_is_four_times_the_work(parser: Parser) -> None:
    assert grown(parser, every=6, large=16_000) == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
def test_four_times_the_text_is_four_times_the_work_whatever_it_is(parser: Parser) -> None:
    assert grown(parser, every=1, large=64_000) == {}


SEARCHED: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "results of commands": (
        lambda text: NO_SANDBOX.search(text.encode()),
        ["[", "[, no sandbox: ", ", no sandbox", "[;", "[a"],
    ),
    "configuration of a submodule": (
        WORKTREE.search,
        ["\n", " ", "worktree = a ", "\nworktree", "\n worktree =", " \n"],
    ),
}


@pytest.mark.parametrize("name", SEARCHED)
def test_what_commands_left_is_searched_in_proportion_to_its_length(name: str) -> None:
    search, pieces = SEARCHED[name]
    heads, large = ["", "worktree = a"], 8_000
    found = {
        (head, piece): grows_by_time(search, partial(repeated, head, piece), large)
        for head in heads
        for piece in pieces
    }
    assert {shape: problem for shape, problem in found.items() if problem} == {}


def repeated(head: str, piece: str, size: int) -> str:
    return head + piece * (size // len(piece)) + "b"
