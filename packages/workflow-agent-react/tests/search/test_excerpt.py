"""What a search shows of a long line: parts around the matches, at columns that can be read on."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workflow_agent_react.search._excerpt import MAX_MATCH_CHARS, MAX_PARTS, matched_line
from workflow_agent_react.search._grep import grep_for, grep_words
from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._files import read_file
from workflow_agent_react.workspace._workspace import Workspace


async def found(root: Path, pattern: str) -> list[str]:
    return (await search_files(partial(Workspace, root), pattern)).split("\n")


@pytest.mark.parametrize("pattern", ["needle 7", r"needle \d", "needle[^n]7", "NEEDLE, is"])
async def test_what_stands_deep_in_one_line_is_found_and_read(tmp_path: Path, pattern: str) -> None:
    items = [f"größe {number}" for number in range(10_000)]
    items[7_000] = "here is the needle 7 of it"
    line = json.dumps({"items": items}, ensure_ascii=False)
    (tmp_path / "a.json").write_text(line)

    first = (await found(tmp_path, pattern))[0]

    place = re.fullmatch(r"a\.json:1:(\d+): … (.*) …", first)
    assert place is not None
    assert "here is the needle 7 of it" in place[2]
    with Workspace(tmp_path) as workspace:
        shown = read_file(workspace, "a.json", offset=1, column=int(place[1]))
    assert shown.startswith("1|" + place[2])


async def test_matches_at_both_ends_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("needle" + "é" * 50_000 + "needle\n")

    assert await found(tmp_path, "needle") == [
        "a:1:1: needle" + "é" * 234 + " …",
        "a:1:49773: … " + "é" * 234 + "needle",
        "(1 matching line in 1 file searched)",
    ]


async def test_of_many_matches_in_a_line_the_first_are_shown_and_the_others_counted(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_text("".join(f"{number:010}needle{'x' * 984}" for number in range(100)))

    shown = await found(tmp_path, "needle")

    assert [line.split(" … ")[0] for line in shown[1:5]] == [
        *("a:1:894:", "a:1:1894:", "a:1:2894:", "a:1:3894:")
    ]
    assert shown[5] == "a:1: (95 more matches, from column 5011 on)"


async def test_codes_and_overwritten_frames_do_not_reach_the_model(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\x1b[31mneedle\x1b[0m\n 10%\r100% needle\n", newline="")
    (tmp_path / "wide").write_text("x" * 300 + "\x1b[31mneedle\x1b[0m" + "x" * 300)

    shown = await found(tmp_path, "needle")

    assert shown[:2] == ["log:1: needle", "log:2: 100% needle"]
    assert "needle" in shown[2]
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", "\n".join(shown))


async def test_a_pattern_that_takes_for_ever_in_a_long_line_shows_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflow_agent_react.search._search._SPANS_S", 0.3)
    (tmp_path / "a").write_text("x" * 300 + "a" * 60 + "!" + "b" * 50)

    shown = await found(tmp_path, r"(a+)+b|!")

    assert shown[0] == "a:1: " + "x" * 240 + " …"


PIECES = st.lists(st.sampled_from(["x" * 90, "é" * 150, "好" * 200, "😀 ", "needle", "N1", " "]))


@given(PIECES)
@example(["needle"] * 2000)
async def test_the_parts_are_of_the_line_and_hold_the_first_matches(pieces: list[str]) -> None:
    line = "".join(pieces)
    matches = list(re.finditer("needle", line))
    (spans,) = await grep_for("needle", literal=True).spans([line.encode()])
    assert [line.encode()[start:end].decode() for start, end in spans] == ["needle"] * len(matches)
    if not matches:
        return

    *shown, last = f"{matched_line('a:1', line.encode(), spans)}\n".split("\n")

    parts = [re.fullmatch(r"a:1:(\d+): (… )?(.*?)( …)?", each) for each in shown]
    places = [(int(part[1]) - 1, part[3]) for part in parts if part is not None]
    assert len(places) <= MAX_PARTS
    for start, text in places:
        assert line[start : start + len(text)] == text
        assert len(text) <= MAX_MATCH_CHARS
    more = re.search(r"\((\d+) more match", shown[-1])
    count = len(matches) - (int(more[1]) if more is not None else 0)
    for match in matches[:count]:
        assert any(start <= match.start() < start + len(text) for start, text in places)
    assert not last


@pytest.mark.parametrize("pattern", ["needle|N.", "é+", r"(?<=e)\d|好", " "])
async def test_the_places_are_those_that_python_finds(pattern: str) -> None:
    lines = ["needle 好好é N1 ", "ééneedle", "", "e5e"]

    spans = await grep_for(pattern, literal=False).spans([line.encode() for line in lines])

    assert spans == [
        [
            (len(line[: match.start()].encode()), len(line[: match.end()].encode()))
            for match in re.finditer(pattern, line)
        ]
        for line in lines
    ]


async def test_words_are_shown_where_they_stand() -> None:
    lines = ["é MAX_REQUESTS requests".encode()]

    assert await grep_words(["requests", "max"]).spans(lines) == [[(3, 6), (7, 15), (16, 24)]]
