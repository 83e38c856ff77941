import os
from functools import partial
from pathlib import Path

import anyio
import pytest

from workflow_agent_react._errors import OutsideWorkspace, ToolError
from workflow_agent_react.search import _search
from workflow_agent_react.search._name_filter import name_filter
from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._walk import walk
from workflow_agent_react.workspace._workspace import Workspace


async def found(
    root: Path, pattern: str, *, path: str = ".", glob: str = "", ripgrep: bool = True
) -> list[str]:
    opened = partial(Workspace, root)
    text = await search_files(opened, pattern, path=path, glob=glob, ripgrep=ripgrep)
    return text.split("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    (root / "src" / "app").mkdir(parents=True)
    (root / "README.md").write_text("# Title\nfoo(bar) and more\n")
    (root / "src" / "app" / "main.py").write_bytes(b"import os\r\n\r\ndef main():\r\n    pass\r\n")
    (root / "src" / "util.js").write_text("function main() {}\n")
    (root / "data.bin").write_bytes(b"def main\0")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("def main\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("def main of somebody else\n")
    (root / "out").symlink_to("../outside")
    (root / "same.py").symlink_to("src/app/main.py")
    os.mkfifo(root / "pipe")
    return root


async def test_a_search_gives_places_in_order_and_skips_what_is_not_its_own(root: Path) -> None:
    assert await found(root, r"def main|function \w+") == [
        "src/app/main.py-1- import os",
        "src/app/main.py-2- ",
        "src/app/main.py:3: def main():",
        "src/app/main.py-4-     pass",
        "src/util.js:1: function main() {}",
        "(2 matching lines in 4 files searched)",
    ]


async def test_few_matches_are_shown_with_the_lines_around_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(1, 10)))
    (tmp_path / "b").write_text("6\n  7")
    around = [
        *("a-1- 1", "a-2- 2", "a:3: 3", "a:4: 4", "a-5- 5", "a-6- 6", "a-7- 7", "a-8- 8", "a:9: 9"),
        *("b:1: 6", "b-2-   7"),
        "(4 matching lines in 2 files searched)",
    ]

    assert await found(tmp_path, "[349]|^6") == [
        *around[:5],
        "a:6: 6",
        *around[6:-1],
        "(5 matching lines in 2 files searched)",
    ]
    assert await found(tmp_path, "[349]|^6", path="a") == [
        *around[:5],
        "a:6: 6",
        *around[6:9],
        "(4 matching lines in 1 file searched)",
    ]
    assert await found(tmp_path, "[3-9]") == [
        *(f"a:{number}: {number}" for number in range(3, 10)),
        *("b:1: 6", "b:2: 7"),
        "(9 matching lines in 2 files searched)",
    ]
    monkeypatch.setattr(_search, "_BATCH_BYTES", 1)
    assert await found(tmp_path, "[34]|6") == [
        *around[:5],
        "a:6: 6",
        *around[6:8],
        *around[9:-1],
        "(4 matching lines in 2 files searched)",
    ]


async def test_a_search_can_be_narrowed(root: Path) -> None:
    py = [
        "src/app/main.py-1- import os",
        "src/app/main.py-2- ",
        "src/app/main.py:3: def main():",
        "src/app/main.py-4-     pass",
        "(1 matching line in 1 file searched)",
    ]
    assert await found(root, "main", glob="*.py") == py
    assert await found(root, "main", glob="./src/app/*") == py
    assert await found(root, "main", path="src/app") == py
    assert await found(root, "main", path="src/app/main.py") == py
    assert (await found(root, "main", glob="*.{py,js}"))[-1] == (
        "(2 matching lines in 2 files searched)"
    )


async def test_no_match_says_how_much_was_searched(root: Path) -> None:
    nowhere = ["no match for 'nowhere' in 4 files; try another word, or read a likely file"]
    assert await found(root, "nowhere") == nowhere


async def test_a_glob_that_leaves_out_the_match_is_lifted_and_it_says_so(root: Path) -> None:
    assert await found(root, "function", glob="*.md") == [
        "src/util.js:1: function main() {}",
        "(1 matching line in 4 files searched)",
        "(no match in '*.md'; these are in other files)",
    ]
    nowhere = ["no match for 'nowhere' in 4 files; try another word, or read a likely file"]
    assert await found(root, "nowhere", glob="*.md") == nowhere


async def test_a_path_that_leaves_out_the_match_is_lifted_and_it_says_so(root: Path) -> None:
    assert await found(root, "function", path="src/app") == [
        "src/util.js:1: function main() {}",
        "(1 matching line in 4 files searched)",
        "(no match in 'src/app'; these are in other files)",
    ]
    assert await found(root, "function", path="lib", glob="*.py") == [
        "src/util.js:1: function main() {}",
        "(1 matching line in 4 files searched)",
        "(there is no 'lib'; at the top there are '.gitignore', 'README.md', 'data.bin', 'out', "
        "'pipe', 'same.py', 'src/')",
        "(no match in '*.py' and 'lib'; these are in other files)",
    ]
    assert (await found(root, "more FOO", path="lib"))[-1] == (
        "(no match for 'more FOO'; these have its words, in any order and case)"
    )


@pytest.mark.parametrize("pattern", ["more FOO", "foo_and_more", "Bar, more"])
async def test_text_that_stands_nowhere_is_looked_for_by_its_words(
    root: Path, pattern: str
) -> None:
    assert await found(root, pattern, glob="*.md") == [
        "README.md-1- # Title",
        "README.md:2: foo(bar) and more",
        "(1 matching line in 4 files searched)",
        f"(no match for {pattern!r}; these have its words, in any order and case)",
    ]


async def test_what_is_only_in_the_name_of_a_file_is_told(root: Path) -> None:
    assert await found(root, "util.js") == [
        "no match for 'util.js' in 4 files; try another word, or read a likely file",
        "(it is in the name of 'src/util.js'; call read_file)",
    ]


async def test_plain_text_with_signs_is_found_though_it_is_no_such_expression(root: Path) -> None:
    assert await found(root, "foo(") == [
        "README.md-1- # Title",
        "README.md:2: foo(bar) and more",
        "(1 matching line in 4 files searched)",
        "(searched as plain text: not a valid regular expression, "
        "missing ), unterminated subpattern at position 3)",
    ]
    assert await found(root, "foo(bar)") == [
        "README.md-1- # Title",
        "README.md:2: foo(bar) and more",
        "(1 matching line in 4 files searched)",
        "(no match as a regular expression; these match as plain text)",
    ]


async def test_many_matches_and_long_lines_are_cut(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 1000 + "\n" + "x\n" * 200)

    shown = await found(tmp_path, "x")

    assert shown[:6] == [
        "a:1:1: " + "x" * 240 + " …",
        *(f"a:1:{column}: … " + "x" * 240 + " …" for column in (241, 481, 721)),
        "a:1:961: … " + "x" * 40,
        "a:2: x",
    ]
    assert len(shown) == 105
    assert shown[-1] == "(the first 100 matches; narrow the pattern, path or glob for others)"


async def test_of_many_matches_the_indentation_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("  x:  1\n" * 6)

    assert await found(tmp_path, "x:") == [
        *(f"a:{number}: x:  1" for number in range(1, 7)),
        "(6 matching lines in 1 file searched)",
    ]


async def test_files_beyond_the_limit_are_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "MAX_SEARCHED_BYTES", 1024 * 1024)
    (tmp_path / "big").write_text("x" * (1024 * 1024 + 1))
    (tmp_path / "a").write_text("x\n")

    assert await found(tmp_path, "x") == [
        "a:1: x",
        "(1 matching line in 1 file searched)",
        "(1 larger than 1 MiB not searched)",
    ]


async def test_a_search_over_many_batches_counts_lines_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "_BATCH_BYTES", 10)
    for number in range(30):
        (tmp_path / f"{number:02}").write_text(f"\nhit {number}\n")

    shown = await found(tmp_path, r"hit \d")

    assert shown[:-1] == [f"{number:02}:2: hit {number}" for number in range(30)]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "the pattern is empty"),
        ("x" * 1001, "longer than 1000 characters"),
        ("a\nb", "lines are searched one by one"),
        ("a\0", "a character that no text file can have"),
        ("a\ud800", "a character that no text file can have"),
    ],
)
async def test_a_pattern_that_cannot_match_is_refused(
    root: Path, pattern: str, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        await found(root, pattern)


async def test_a_place_or_glob_that_cannot_be_searched_is_told(root: Path) -> None:
    with pytest.raises(ToolError, match="there is no 'nowhere'"):
        await found(root, "x", path="nowhere")
    with pytest.raises(ToolError, match="'pipe' is not a regular file"):
        await found(root, "x", path="pipe")
    with pytest.raises(OutsideWorkspace):
        await found(root, "main", path="out")
    with pytest.raises(ToolError, match="longer than 1000 characters"):
        await found(root, "x", glob="{a}" * 3000)
    with pytest.raises(ToolError, match="more than 100 patterns"):
        await found(root, "x", glob="{a,b}" * 100)
    with pytest.raises(ToolError, match="a character that a file name"):
        await found(root, "x", glob="a\0")


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("{a}" * 300, 0),
        ("{" * 900, 0),
        ("*m*a*i*n*.*p*y*", 1),
        ("**/app/{main,{x,y}}.{py,js}", 1),
        ("src/", 2),
        ("[", 0),
    ],
)
async def test_globs_of_any_shape_are_matched(root: Path, glob: str, files: int) -> None:
    shown = await search_files(partial(Workspace, root), "no such text", glob=glob)
    assert shown.count("no match") == 1
    assert len([path for path in walked(root) if name_filter(glob)(path)]) == files


def walked(root: Path) -> list[str]:
    with Workspace(root) as workspace:
        return [entry.path for entry in walk(workspace, ".") if entry.kind == "file"]


async def test_a_search_stops_while_it_still_looks_for_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "SEARCH_S", 0.0)
    shown = await found(root, "main")
    assert shown[-1].startswith("(stopped after 0 s")


async def test_an_expression_that_never_ends_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "SEARCH_S", 0.5)
    (tmp_path / "a").write_text("x" * 60 + "\n")

    with anyio.fail_after(5):
        shown = await found(tmp_path, r"^(x+x+)+y$", ripgrep=False)

    assert shown == [
        "no match for '^(x+x+)+y$' in 0 files; try another word, or read a likely file",
        "(stopped after 0.5 s: the pattern is slow or there is much to search)",
    ]


async def test_a_search_is_cancelled_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 60 + "\n")

    with anyio.fail_after(3), anyio.move_on_after(0.3) as limit:
        await found(tmp_path, r"^(x+x+)+y$", ripgrep=False)

    assert limit.cancelled_caught
