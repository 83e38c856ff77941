import os
import re
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react._errors import OutsideWorkspace, ToolError
from workflow_agent_react.workspace import _files
from workflow_agent_react.workspace._files import patch_file, read_file, write_file
from workflow_agent_react.workspace._patch import Edit
from workflow_agent_react.workspace._workspace import Workspace
from workflow_protocol import Work, working


def read(root: Path, path: str, *, offset: int = 1, limit: int = 0, column: int = 1) -> str:
    with Workspace(root) as workspace:
        return read_file(workspace, path, offset=offset, limit=limit, column=column)


def write(root: Path, path: str, content: str) -> str:
    with Workspace(root) as workspace:
        return write_file(workspace, path, content)


def patch(root: Path, path: str, *edits: Edit) -> str:
    with Workspace(root) as workspace:
        return patch_file(workspace, path, edits)


def test_what_was_written_is_told_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    work = Work()
    with working(work):
        assert work.changed_paths is None
        write(tmp_path, "link/a.txt", "one")
        patch(tmp_path, "./real/../link/a.txt", Edit("one", "two"))

    assert work.changed_paths == ("real/a.txt", "real/a.txt")


def refusal(call: object, root: Path, *args: object) -> str:
    assert callable(call)
    with pytest.raises(ToolError) as caught:
        call(root, *args)
    return str(caught.value)


def test_a_file_is_shown_with_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\r\nthree")

    assert read(tmp_path, "a.txt") == "1|one\n2|\n3|three\n(end of file, 3 lines)"


@pytest.mark.parametrize(
    ("offset", "limit", "text"),
    [
        (2, 2, "2|l2\n3|l3\n(2 more lines of 5; call read_file with offset=4)"),
        (0, 1, "1|l1\n(4 more lines of 5; call read_file with offset=2)"),
        (4, 1, "4|l4\n(1 more line of 5; call read_file with offset=5)"),
        (5, 9, "5|l5\n(end of file, 5 lines)"),
        (-2, 0, "4|l4\n5|l5\n(end of file, 5 lines)"),
        (-9, 1, "1|l1\n(4 more lines of 5; call read_file with offset=2)"),
    ],
)
def test_a_part_is_shown_and_the_rest_is_told(
    tmp_path: Path, offset: int, limit: int, text: str
) -> None:
    (tmp_path / "a").write_text("l1\nl2\nl3\nl4\nl5\n")

    assert read(tmp_path, "a", offset=offset, limit=limit) == text


def test_a_long_file_is_shown_in_parts_that_lead_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {n}\n" for n in range(1000)))

    shown = read(tmp_path, "a").splitlines()

    assert shown[-2:] == [
        "400|line 399",
        "(600 more lines of 1000; call read_file with offset=401)",
    ]


def test_long_lines_are_shown_whole_as_long_as_they_fit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(("x" * 3000 + "\n") * 300)

    shown = read(tmp_path, "a").splitlines()

    assert shown == [
        *(f"{number}|" + "x" * 3000 for number in range(1, 5)),
        "(296 more lines of 300; call read_file with offset=5)",
    ]


def test_a_line_longer_than_a_page_is_shown_in_parts_that_lead_on(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n" + "x" * 20_000 + "\nthree\n")

    first = read(tmp_path, "a").splitlines()
    second = read(tmp_path, "a", offset=2, column=14_992).splitlines()

    assert first == [
        "1|one",
        "2|" + "x" * 14_991,
        "(characters 1 to 14991 of 20000 in line 2 of 3; call read_file with offset=2, "
        "column=14992 to go on in it; the next line is offset=3)",
    ]
    assert second == ["2|" + "x" * 5_009, "3|three", "(end of file, 3 lines)"]
    with pytest.raises(ToolError, match="line 3 has 5 characters; column 6 is past that"):
        read(tmp_path, "a", offset=3, column=6)


LINES = st.lists(
    st.tuples(st.text("aé好😀|\t ", max_size=6), st.integers(1, 9_000)), max_size=6
).map(lambda lines: [text * times for text, times in lines])


@settings(max_examples=60)
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(0, 3))
def test_the_pages_together_are_the_text(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, ended: bool, limit: int
) -> None:
    root = tmp_path_factory.mktemp("pages")
    (root / "a").write_bytes((end.join(lines) + (end if ended else "")).encode())
    read_lines: dict[int, str] = {}
    on = {"offset": 1, "column": 1}
    while True:
        page, _, note = read(root, "a", limit=limit, **on).rpartition("\n(")
        assert len(page.encode()) <= _files.MAX_SHOWN_BYTES
        for line in page.split("\n") if page else []:
            number, _, text = line.partition("|")
            read_lines[int(number)] = read_lines.get(int(number), "") + text
        following = re.search(r"call read_file with offset=(\d+)(?:, column=(\d+))?", note)
        if following is None:
            break
        on = {"offset": int(following[1]), "column": int(following[2] or 1)}
    while lines and not lines[-1] and not ended:  # a newline at the end doesn't begin a line
        lines.pop()
        ended = True
    assert list(read_lines.values()) == lines or not any(lines)


def test_an_offset_past_the_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")

    with pytest.raises(ToolError, match="'a' has 1 line; offset 7 is past that"):
        read(tmp_path, "a", offset=7)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    assert read(tmp_path, "a") == "(a is empty)"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfhi", "1|hi\n(end of file, 1 line)"),
        ("\ufeffgrün".encode("utf-16-le"), "1|grün\n(end of file, 1 line)\n(utf-16-le)"),
        ("\ufeffgrün".encode("utf-32-be"), "1|grün\n(end of file, 1 line)\n(utf-32-be)"),
        (b"caf\xe9", "1|café\n(end of file, 1 line)\n(cp1252)"),
        (
            b"\xb3\xb3",
            "1|\ufffd\ufffd\n(end of file, 1 line)\n"
            "(not valid utf-8: the bytes that aren't are shown as \ufffd)",
        ),
    ],
)
def test_the_encoding_is_taken_from_the_mark_or_the_bytes_and_a_misfit_is_said(
    tmp_path: Path, data: bytes, text: str
) -> None:
    (tmp_path / "a").write_bytes(data)

    assert read(tmp_path, "a") == text


def test_control_codes_and_what_they_overwrite_are_not_shown_and_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\x1b[32mok\x1b[0m\n 10%\r100%\n\x0cpage\nplain\n", newline="")

    assert read(tmp_path, "log") == (
        "1|ok\n2|100%\n3|page\n4|plain\n(end of file, 4 lines)\n"
        "(control codes, and what they overwrite, are not shown; there are some in lines 1, 2, 3)"
    )
    patch(tmp_path, "log", Edit("ok\n100%", "fine\n100%"))
    assert (tmp_path / "log").read_bytes().startswith(b"\x1b[32mfine\x1b[0m\n 10%\r100%\n")


def test_a_binary_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\0\0")

    assert refusal(read, tmp_path, "a.png") == "'a.png' is a binary file of 6 bytes, not text"


def test_a_file_beyond_the_limit_is_refused_by_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "MAX_FILE_BYTES", 1024 * 1024)
    with open(tmp_path / "big", "wb") as file:
        file.truncate(1024 * 1024 + 1)

    message = "'big' is larger than 1 MiB, too large for this tool; use shell_exec with head"
    assert message in refusal(read, tmp_path, "big")
    assert message in refusal(patch, tmp_path, "big", Edit("a", "b"))
    assert message in refusal(write, tmp_path, "big", "x" * (1024 * 1024 + 1))


def test_what_is_not_a_file_is_told_with_the_tool_to_use(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "src/a.py").touch()
    folder = "'src' is a folder, give the path of a file; files in it: 'src/a.py'"
    pipe = "'pipe' is not a regular file but a pipe, socket or device"

    assert refusal(read, tmp_path, "src") == folder
    assert refusal(write, tmp_path, "src", "x") == folder
    assert refusal(patch, tmp_path, "src", Edit("a", "b")) == folder
    assert refusal(read, tmp_path, "pipe") == pipe
    assert refusal(write, tmp_path, "pipe", "x") == pipe
    assert refusal(patch, tmp_path, "pipe", Edit("a", "b")) == pipe


def test_writing_makes_folders_and_tells_the_bytes(tmp_path: Path) -> None:
    assert write(tmp_path, "x/y/ä.txt", "grün\n") == "wrote 6 bytes to x/y/ä.txt (new file)"
    assert (tmp_path / "x/y/ä.txt").read_bytes() == "grün\n".encode()
    assert write(tmp_path, "./x/y/ä.txt", "") == "wrote 0 bytes to x/y/ä.txt (it had 6 bytes)"


def test_a_replaced_file_keeps_its_mode_and_owner_and_a_new_one_follows_the_umask(
    tmp_path: Path,
) -> None:
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o751)
    owner = (script.stat().st_uid, script.stat().st_gid)

    write(tmp_path, "run.sh", "new")
    patch(tmp_path, "run.sh", Edit("new", "newer"))
    write(tmp_path, "other", "x")

    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert (script.stat().st_uid, script.stat().st_gid) == owner
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o666 & ~umask


def test_writing_through_a_link_changes_its_target_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")

    write(tmp_path, "link", "new")
    patch(tmp_path, "link", Edit("new", "newer"))

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "newer"


def test_a_hard_link_to_a_file_elsewhere_is_cut_and_not_written_through(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    root.mkdir()
    (tmp_path / "theirs").write_text("theirs")
    os.link(tmp_path / "theirs", root / "mine")

    write(root, "mine", "changed")

    assert (tmp_path / "theirs").read_text() == "theirs"


def test_a_reader_sees_the_old_or_the_new_file_and_nothing_between(tmp_path: Path) -> None:
    contents = ["a" * 100_000, "b" * 200_000]
    target = tmp_path / "f"
    target.write_text(contents[0])
    done = threading.Event()

    def keep_writing() -> None:
        while not done.is_set():
            for content in contents:
                write(tmp_path, "f", content)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        seen = {target.read_text() for _ in range(200)}
    finally:
        done.set()
        writer.join()

    assert seen <= set(contents)
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    message = refusal(write, tmp_path, "n" * 300, "x")

    assert "File name too long" in message
    assert refusal(write, tmp_path, "a", "\ud800").startswith("the content can't be written")
    assert os.listdir(tmp_path) == []


def test_a_patch_tells_where_it_changed_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\n")

    assert patch(tmp_path, "a", Edit("two", "2"), Edit("one", "1")) == (
        "patched a: 2 places changed, at line 1, 2"
    )
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n"


def test_a_patch_that_fails_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    before = (tmp_path / "a").stat()

    assert "nothing changed" in refusal(patch, tmp_path, "a", Edit("one", "1"), Edit("x", "y"))
    assert (tmp_path / "a").stat() == before


def test_a_binary_file_is_not_patched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\0b")

    assert "binary file" in refusal(patch, tmp_path, "a", Edit("a", "b"))


def test_nothing_outside_is_written(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    root.mkdir()
    (tmp_path / "theirs").write_text("theirs")
    (root / "out").symlink_to("../theirs")

    for path in ("../theirs", "out", str(tmp_path / "theirs"), "a/../../theirs"):
        with pytest.raises(OutsideWorkspace):
            write(root, path, "x")
    with pytest.raises(OutsideWorkspace):
        patch(root, "out", Edit("theirs", "x"))
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_a_folder_that_becomes_a_link_out_meanwhile_is_not_written_through(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    (root / "box").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("text")
    (root / "box" / "f").write_text("text")
    done = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not done.is_set():
            os.rename(root / "box", root / "kept")
            os.symlink(tmp_path / "outside", root / "box")
            os.unlink(root / "box")
            os.rename(root / "kept", root / "box")
            swaps += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    refused = 0
    tries = 0
    try:
        while tries < 500 or swaps < 20 or not refused:
            tries += 1
            try:
                patch(root, "box/f", Edit("text", "texttext"), Edit("texttext", "text "))
                patch(root, "box/f", Edit("text ", "text"))
            except OutsideWorkspace:
                refused += 1
            except ToolError:
                continue
    finally:
        done.set()
        swapper.join()

    assert os.listdir(tmp_path / "outside") == ["f"]
    assert (tmp_path / "outside" / "f").read_text() == "text"


@given(path=st.one_of(st.text(max_size=40), st.text("./ab\0~", max_size=12)))
def test_any_path_works_or_raises_a_tool_error(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    base = tmp_path_factory.mktemp("any")
    root = base / "proj"
    root.mkdir()
    try:
        write(root, path, "text")
        assert read(root, path) == "1|text\n(end of file, 1 line)"
    except ToolError:
        pass
    assert os.listdir(base) == ["proj"]
