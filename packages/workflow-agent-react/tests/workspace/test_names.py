"""Names in another Unicode form, and names that are not UTF-8: found, written to, never doubled."""

import os
import unicodedata
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workflow_agent_react._errors import OutsideWorkspace, ToolError
from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._files import patch_file, read_file, write_file
from workflow_agent_react.workspace._listing import list_files
from workflow_agent_react.workspace._names import actual_path
from workflow_agent_react.workspace._patch import Edit
from workflow_agent_react.workspace._workspace import Workspace

NFC, NFD = "café", "cafe\u0301"
FORMS = pytest.mark.parametrize(("stored", "asked"), [(NFC, NFD), (NFD, NFC)], ids=["NFC", "NFD"])


@FORMS
async def test_a_name_in_another_form_is_found_and_written_to_without_a_twin(
    tmp_path: Path, stored: str, asked: str
) -> None:
    (tmp_path / stored).mkdir()
    (tmp_path / stored / f"{stored}.txt").write_text("one\n")
    path = f"{asked}/{asked}.txt"

    with Workspace(tmp_path) as workspace:
        assert read_file(workspace, path).startswith("1|one\n")
        assert patch_file(workspace, path, [Edit("one", "two")]).startswith(
            f"patched {stored}/{stored}.txt: "
        )
        assert "(it had 4 bytes)" in write_file(workspace, f"{tmp_path}/{path}", "three\n")
        write_file(workspace, f"{asked}/new/file", "x\n")
        assert list_files(workspace, asked) == (
            f"{stored}/{stored}.txt\n{stored}/new/\n{stored}/new/file"
        )
    searched = await search_files(partial(Workspace, tmp_path), "three", path=f"{asked}/")
    assert searched.startswith(f"{stored}/{stored}.txt:1: three\n")
    assert os.listdir(tmp_path) == [stored]
    assert sorted(os.listdir(tmp_path / stored)) == sorted([f"{stored}.txt", "new"])


def test_of_two_names_that_look_the_same_each_is_read_by_its_own(tmp_path: Path) -> None:
    (tmp_path / NFC).write_text("composed")
    (tmp_path / NFD).write_text("decomposed")

    with Workspace(tmp_path) as workspace:
        assert "composed" in read_file(workspace, NFC).split("|")[1].split("\n")
        assert "1|decomposed" in read_file(workspace, NFD)
        shown = list_files(workspace).split("\n")
        assert set(shown) == {NFC, "cafe\\u0301"}
        assert "1|decomposed" in read_file(workspace, "cafe\\u0301")


def test_a_name_that_could_be_either_of_two_is_refused_with_both(tmp_path: Path) -> None:
    forms = ["e\u0302\u0301", "\xea\u0301"]
    for form in forms:
        (tmp_path / form).write_text(form)

    with Workspace(tmp_path) as workspace:
        for call in (
            partial(read_file, workspace),
            partial(write_file, workspace, content="x"),
            partial(patch_file, workspace, edits=[Edit("a", "b")]),
            partial(list_files, workspace),
        ):
            with pytest.raises(ToolError) as caught:
                call("\u1ebf")
            assert str(caught.value) == (
                "'\u1ebf' could be any of 2 names that look the same: "
                "'e\\u0302\\u0301', '\\xea\\u0301'; give one of these"
            )
        assert f"1|{forms[1]}" in read_file(workspace, "\\xea\\u0301")
    assert sorted(os.listdir(tmp_path)) == sorted(forms)


async def test_a_name_that_is_not_utf_8_is_shown_so_that_it_can_be_named_again(
    tmp_path: Path,
) -> None:
    folder = os.fsencode(tmp_path) + b"/d\xff"
    os.mkdir(folder)
    (tmp_path / os.fsdecode(b"d\xff/caf\xe9\n\x1b")).write_text("one\n")

    with Workspace(tmp_path) as workspace:
        (folder_line, name) = list_files(workspace).split("\n")
        assert (folder_line, name) == ("d\\udcff/", "d\\udcff/caf\\udce9\\n\\x1b")
        assert "1|one" in read_file(workspace, name)
        assert list_files(workspace, folder_line) == name
        assert patch_file(workspace, name, [Edit("one", "two")]).startswith(f"patched {name}: ")
        assert write_file(workspace, name, "three\n").startswith(f"wrote 6 bytes to {name} (it had")
    found = await search_files(partial(Workspace, tmp_path), "three")
    assert found.startswith(f"{name}:1: three\n")
    assert os.listdir(folder) == [b"caf\xe9\n\x1b"]


def test_a_name_as_it_is_written_comes_before_what_is_shown_like_it(tmp_path: Path) -> None:
    (tmp_path / "a\\n").write_text("a backslash")
    (tmp_path / "a\n").write_text("a newline")

    with Workspace(tmp_path) as workspace:
        assert "1|a backslash" in read_file(workspace, "a\\n")
        assert "1|a newline" in read_file(workspace, "a\n")


@pytest.mark.parametrize("alike", ["ﬁle", "ｆｉｌｅ", "FILE"])  # noqa: RUF001 - they look alike
def test_look_alikes_are_other_names_that_are_suggested(tmp_path: Path, alike: str) -> None:
    (tmp_path / "file").write_text("x")

    with Workspace(tmp_path) as workspace:
        with pytest.raises(ToolError, match="did you mean 'file'"):
            read_file(workspace, alike)
        assert "(new file)" in write_file(workspace, alike, "y")
    assert sorted(os.listdir(tmp_path)) == sorted(["file", alike])


@FORMS
def test_links_and_parents_on_the_way_lead_nowhere_else(
    tmp_path: Path, stored: str, asked: str
) -> None:
    root = tmp_path / "proj"
    (root / "sub").mkdir(parents=True)
    (tmp_path / stored).write_text("theirs")
    (root / stored).symlink_to(f"../{stored}")
    (root / f"{stored}2").symlink_to("sub")

    with Workspace(root) as workspace:
        for path in (asked, f"../{asked}", f"sub/../../{asked}", f"{asked}2/../../{asked}"):
            with pytest.raises(OutsideWorkspace):
                write_file(workspace, path, "mine")
        write_file(workspace, f"{asked}2/in", "mine")
    assert (root / "sub" / "in").read_text() == "mine"
    assert (tmp_path / stored).read_text() == "theirs"


LETTERS = "ae\u0301\u0302\u0327éê\u1ebfÅ\u212b\uac00\u1100\u1161K\u212a\\"
NAMES = st.text(st.sampled_from(LETTERS), min_size=1, max_size=4)


@given(NAMES, st.booleans())
def test_writing_in_any_form_never_makes_a_second_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, composed: bool
) -> None:
    root = tmp_path_factory.mktemp("names")
    asked = unicodedata.normalize("NFC" if composed else "NFD", name)
    (root / name).write_text("x")

    with Workspace(root) as workspace:
        write_file(workspace, asked, "y")
        assert actual_path(workspace, name) == name
    assert os.listdir(root) == [name]


@given(st.binary(min_size=1, max_size=6))
def test_any_name_is_found_by_what_is_shown_of_it(
    tmp_path_factory: pytest.TempPathFactory, name: bytes
) -> None:
    assume(not set(name) & {0, ord("/")} and name not in {b".", b"..", b".git", b".gitignore"})
    root = tmp_path_factory.mktemp("bytes")
    (root / os.fsdecode(name)).write_text("here")

    with Workspace(root) as workspace:
        assert "1|here" in read_file(workspace, list_files(workspace))
