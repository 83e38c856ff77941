import re
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workflow_agent_react.search._grep import grep_for, grep_words, words_of
from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._workspace import Workspace

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

LINES = ["", "foo", "foo bar", "FOO", "a.b", "aab", "grün 1", "\ttab", "x\ry", "a" * 300, "\ufeffm"]

TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.mark.parametrize("ripgrep", [pytest.param(True, marks=needs_ripgrep), False])
@pytest.mark.parametrize(
    "pattern",
    [
        "fo+",
        "^$",
        "a.b",
        r"a\.b",
        "(?i)foo",
        r"\bbar\b",
        r"gr\wn \d",
        "[^a-z]",
        "y$",
        "x.y",
        r"^\s",
        "^.m",
        r"(?P<q>a)(?P=q)",
        "foo(?! bar)",
        "a++b",
        "[[:alpha:]]",
        r"\<foo",
        r"\b{start}",
        "-v",
        r"\u0062",
    ],
)
async def test_a_pattern_means_what_python_says(pattern: str, ripgrep: bool) -> None:
    with warnings.catch_warnings(action="ignore"):
        found = re.compile(pattern).search

    hits = await grep_for(pattern, literal=False, ripgrep=ripgrep)(TEXT)

    assert hits == [(n, line.encode()) for n, line in enumerate(LINES) if found(line)]


async def test_plain_text_is_found_as_it_stands() -> None:
    assert await grep_for("a.b", literal=True)(TEXT) == [(4, b"a.b")]
    assert await grep_for("a", literal=True)(b"aa a\n\nb\na\n") == [(0, b"aa a"), (3, b"a")]


async def test_words_are_found_in_any_order_and_case_and_within_longer_ones() -> None:
    text = "MAX_REQUESTS = 3\nrequest max\n\nmax\nMaxRequest of Größe\n".encode()

    assert words_of("max_request, (Max)!") == ["max", "request", "max"]
    assert words_of("_ *") == []
    assert [number for number, _ in await grep_words(["max", "request"])(text)] == [0, 1, 4]
    assert await grep_words(["größe"])(text) == [(4, "MaxRequest of Größe".encode())]


async def test_nothing_matches_in_no_lines() -> None:
    assert await grep_for("x*", literal=False)(b"") == []


PATTERNS = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            ".",
            "x",
            r"\d",
            r"\w",
            r"\s",
            "^",
            "$",
            "*",
            "+",
            "?",
            "|",
            "(",
            ")",
            "[ab]",
            "[^a]",
            "{2}",
            "{1,}",
            "(?i)",
            "(?:",
            r"\b",
            r"\.",
            "é",
            "-",
            "#",
            " ",
            "[",
            "]",
            "{",
            "(?i)k",
            r"\W",
            r"\S",
        ]
    ),
    min_size=1,
    max_size=7,
).map("".join)


@needs_ripgrep
@given(
    pattern=PATTERNS,
    lines=st.lists(st.text("abx1é²\u0301\u212a\x1c. -#\t\r", max_size=8), min_size=1, max_size=5),
)
@example(pattern=r"a\b", lines=["a²"])
@example(pattern=r"^\w*$", lines=["e\u0301"])
@example(pattern=r"a\sb", lines=["a\x1cb"])
@example(pattern="[a[ab]]", lines=["a"])
@example(pattern="[]a[b]]", lines=["a", "b]", "]]"])
@settings(max_examples=60)
def test_ripgrep_and_python_give_the_same_results(pattern: str, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "file").write_bytes("\n".join(lines).encode())

        async def both() -> list[str]:
            opened = partial(Workspace, Path(folder))
            return [await search_files(opened, pattern, ripgrep=which) for which in (True, False)]

        by_ripgrep, by_python = anyio.run(both)

    assert by_ripgrep == by_python
