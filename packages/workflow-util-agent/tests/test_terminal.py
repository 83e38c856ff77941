"""What a terminal finally shows: recorded programs, a plain model of a screen, and time."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_util_agent import terminal_text

BAR = "━" * 20


@pytest.mark.parametrize(
    ("stream", "shown"),
    [
        pytest.param(
            "\x1b[33mWARNING: no index\x1b[0m\x1b[33m\r\n\x1b[0mCollecting x\r\n"
            f"\x1b[?25l     \x1b[90m{BAR}\x1b[0m \x1b[32m0.0/263.4 kB\x1b[0m eta"
            f"\r\x1b[2K     \x1b[90m{BAR}\x1b[0m \x1b[32m263.4/263.4 kB\x1b[0m\r\n"
            "\x1b[?25hSaved x\r\n",
            f"WARNING: no index\nCollecting x\n     {BAR} 263.4/263.4 kB\nSaved x\n",
            id="pip",
        ),
        pytest.param(
            "\x1b[1mnpm\x1b[22m \x1b[33mwarn\x1b[39m old\n\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹"
            "\x1b[1G\x1b[0K\nadded 2 packages in 419ms\n\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0K",
            "npm warn old\n\nadded 2 packages in 419ms\n",
            id="npm",
        ),
        pytest.param(
            "  % Total    Time\n\r  0  1024  0:00:10\r 50  1024  0:00:05\r100  1024  0:00:00\n",
            "  % Total    Time\n100  1024  0:00:00\n",
            id="curl",
        ),
        pytest.param(
            "remote: Counting objects:  50% (1/2)\x1b[K\r"
            "remote: Counting objects: 100% (2/2)\x1b[K\r"
            "remote: Counting objects: 100% (2/2), done.\x1b[K\n",
            "remote: Counting objects: 100% (2/2), done.\n",
            id="git",
        ),
        pytest.param(
            "a: Waiting\nb: Waiting\n\x1b[2A\x1b[2K\ra: Pulled\x1b[2B\r"
            "\x1b[1A\x1b[2K\rb: Pulled\x1b[1B\r",
            "a: Pulled\nb: Pulled\n",
            id="docker",
        ),
        pytest.param(
            "".join(f"\x1b[H\x1b[2J\x1b[3Jframe {n}\nof many\n" for n in range(50)),
            "frame 49\nof many\n",
            id="a whole screen again and again",
        ),
        pytest.param("10%\b\b\b20%\b\b\bdone\n", "done\n", id="backspaces"),
        pytest.param("spinner |\r         \rdone\n", "done\n", id="blanks over it"),
        pytest.param("a\tb\rX\n", "X       b\n", id="a tab that is overwritten"),
        pytest.param("a\t\x1b[31mb\x1b[0m\x1b[K\t\n", "a\tb\t\n", id="tabs that are not"),
        pytest.param("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", id="a link"),
        pytest.param("\x1b]0;title\x07end", "end", id="a title"),
        pytest.param("\x9b31mred\x9b0m \x9d0;title\x9cend\x85next", "red end\nnext", id="C1"),
        pytest.param("a\0b\x07c\x7fd\x1b(Be\x0cf", "abcde\nf", id="other codes"),
        pytest.param("\x1b]0;never ended\nnext \x1b[", "\nnext ", id="cut off"),
        pytest.param("你好\rab", "ab好", id="a wide character"),
        pytest.param("你好\ra", "a 好", id="half a wide character"),
        pytest.param("e\u0301x\ro", "ox", id="an accent"),
        pytest.param("one\r\r\ntwo\r\n", "one\ntwo\n", id="more returns than one"),
        pytest.param("keeps  \r\nits blanks  ", "keeps  \nits blanks  ", id="blanks"),
    ],
)  # fmt: skip
def test_what_programs_write_is_shown_as_a_terminal_finally_does(stream: str, shown: str) -> None:
    assert terminal_text(stream) == shown


def test_the_progress_of_git_comes_to_its_last_frames(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(tmp_path / "from")]
    subprocess.run(["git", "init", "-q", tmp_path / "from"], check=True)
    for number in range(20):
        (tmp_path / "from" / f"{number}").write_text(str(number))
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    address = f"file://{tmp_path}/from"
    cloned = subprocess.run(
        ["git", "clone", "--progress", address, tmp_path / "to"], capture_output=True, check=True
    )

    stream = cloned.stderr.decode()
    lines = terminal_text(stream).splitlines()

    assert stream.count("\r") > 20
    assert "remote: Counting objects: 100% (22/22), done." in lines
    assert len(lines) == len(set(lines)) < 9


PIECES = [
    *("a", "bc", "hello world", " ", "é", "\r", "\n", "\r\n", "\b", "\n" * 8, "l\n" * 30 + "m"),
    *("\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[31m", "\x1b[?25l"),
    *("\x1b[A", "\x1b[9A", "\x1b[B", "\x1b[3C", "\x1b[2D", "\x1b[5G", "\x1b[E", "\x1b[F"),
    *("\x1b[H", "\x1b[2;3H", "\x1b[3d", "\x1b[2X", "\x1b[P", "\x1b[2@", "\x1b]0;t\x07", "\x1b(B"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_it_agrees_with_a_plain_grid(pieces: list[str]) -> None:
    assert rows(terminal_text("".join(pieces))) == rows(grid(pieces))


def rows(text: str) -> list[str]:
    return [row.rstrip() for row in text.rstrip().split("\n")]


def grid(pieces: list[str]) -> str:
    """A screen of 24 rows by the book: a character for each position."""
    cells: dict[tuple[int, int], str] = {}
    top = y = x = 0  # rows count from the first that there was
    for piece in pieces:
        command = re.fullmatch(r"\x1b\[(\d*)(?:;(\d*))?(.)", piece)
        if command is None:
            for character in "" if piece.startswith("\x1b") else piece:
                if character == "\n":
                    x, y = 0, y + 1
                    top = max(top, y - 23)
                elif character in "\r\b":
                    x = 0 if character == "\r" else max(x - 1, 0)
                else:
                    cells[y, x] = character
                    x += 1
            continue
        given, second, code = command.groups()
        count = int(given or 1)
        at = {key: value for key, value in cells.items() if key[0] == y and key[1] >= x}
        match code:
            case "A" | "F":
                y = max(y - count, top)
            case "B" | "E":
                y = min(y + count, top + 23)
            case "C":
                x += count
            case "D":
                x = max(x - count, 0)
            case "G":
                x = count - 1
            case "H":
                y, x = top + count - 1, int(second or 1) - 1
            case "d":
                y = top + count - 1
            case "X":
                for key in list(at):
                    if key[1] < x + count:
                        del cells[key]
            case "P" | "@":
                by = -count if code == "P" else count
                for key in at:
                    del cells[key]
                for (row, column), value in at.items():
                    if column + by >= x:
                        cells[row, column + by] = value
            case "K" | "J":
                erased = {"": ">", "1": "<", "2": "<>"}[given]
                for key in list(cells):
                    side = ">" if key >= (y, x) else "<"
                    here = key[0] == y if code == "K" else key[0] >= top
                    if here and (side in erased or key == (y, x)):
                        del cells[key]
            case _:
                pass
        if code in "EF":
            x = 0
    last = max([y, *(row for row, _ in cells)])
    width = max([0, *(column for _, column in cells)]) + 1
    return "\n".join(
        "".join(cells.get((row, column), " ") for column in range(width)) for row in range(last + 1)
    )


ANY = st.text(st.sampled_from("ab \t\n\r\b\x07\x1b[]();?0129mKJHAhcP\x9b\x9d\x9c\x85好\u0301\x7f"))


@given(ANY)
def test_no_code_is_left_and_what_is_left_stays(text: str) -> None:
    shown = terminal_text(text)

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert terminal_text(shown) == shown


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_text_without_codes_stays(text: str) -> None:
    assert terminal_text(text) == text


@pytest.mark.parametrize("lead", ["", "y" * 100_000], ids=["", "far out"])
@pytest.mark.parametrize(
    "unit",
    ["\r", "\x1b", "\x1b[", "\x1b]", "\x1b[1", "x\x1b[1K", "x\x1b[2K", "\b\bx\x1b[1K", "\u0301\x07",
     "\x1b[999C\x1b[1K", "\x1b[999G\x1b[1A", "\x1b[23B\x1b[H", "\x1b[9@", "\x1b7x\x1b8", "\r好",
     "\t\r"],
)  # fmt: skip
def test_time_grows_with_the_length_and_no_faster(unit: str, lead: str) -> None:
    def seconds(units: int) -> float:
        text = lead + unit * units
        began = time.process_time()
        terminal_text(text)
        return time.process_time() - began

    units = 20_000 // len(unit)
    assert seconds(4 * units) < 16 * max(seconds(units), 0.005)
