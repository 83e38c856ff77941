"""Files in other encodings and with other line endings: read, searched, patched and replaced."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react._errors import ToolError
from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._encoding import read_text
from workflow_agent_react.workspace._files import patch_file, read_file, write_file
from workflow_agent_react.workspace._patch import Edit
from workflow_agent_react.workspace._workspace import Workspace

GERMAN = "Die Größe der Tür beträgt fünf Meter.\nSchöne Grüße aus München.\n"
FRENCH = "Voilà le résumé: les élèves ont été très déçus.\nÇa coûte cher, où êtes-vous?\n"
RUSSIAN = "Привет, мир! Это обычный русский текст,\nкоторый нужно прочитать.\n"  # noqa: RUF001 - it is Russian
JAPANESE = "これは日本語のテキストです。\nファイルを読んでください。\n"
CHINESE = "这是一个中文文件，请阅读它的内容。\n程序员写代码。\n"  # noqa: RUF001 - it is Chinese
KOREAN = "안녕하세요. 이것은 한국어 텍스트입니다.\n파일을 읽어 주세요.\n"

CASES = [
    *((GERMAN, encoding) for encoding in ("cp1252", "latin-1")),
    *((FRENCH, encoding) for encoding in ("cp1252", "latin-1")),
    *((RUSSIAN, encoding) for encoding in ("koi8-r", "cp1251", "cp866", "iso8859-5")),
    *((JAPANESE, encoding) for encoding in ("shift_jis", "cp932", "euc_jp")),
    *((CHINESE, encoding) for encoding in ("gbk", "gb18030")),
    (KOREAN, "euc_kr"),
    *(
        (text, encoding)
        for text in (GERMAN, RUSSIAN, CHINESE, "plain\nASCII\n")
        for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    ),
    *(
        ("\ufeff" + text, encoding)
        for text in (GERMAN, CHINESE, "plain\nASCII\n")
        for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    ),
]
EACH = pytest.mark.parametrize(
    ("text", "encoding"), CASES, ids=[f"{encoding}-{text[:9]!a}" for text, encoding in CASES]
)
ENDINGS = pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])


def read(root: Path, path: str = "a") -> str:
    with Workspace(root) as workspace:
        return read_file(workspace, path)


def write(root: Path, content: str) -> str:
    with Workspace(root) as workspace:
        return write_file(workspace, "a", content)


def patch(root: Path, old: str, new: str) -> str:
    with Workspace(root) as workspace:
        return patch_file(workspace, "a", [Edit(old, new)])


@EACH
@ENDINGS
def test_what_is_read_can_be_patched_in_its_own_encoding_and_endings(
    tmp_path: Path, text: str, encoding: str, end: str
) -> None:
    original = text.replace("\n", end)
    (tmp_path / "a").write_bytes(original.encode(encoding))
    plain = text.removeprefix("\ufeff")
    first, second = plain.splitlines()

    assert read(tmp_path).startswith(f"1|{first}\n2|{second}\n(end of file, 2 lines)")
    patch(tmp_path, f"{first}\n{second[:5]}", f"{second[:5]}\n{first}")

    changed = original.replace(f"{first}{end}{second[:5]}", f"{second[:5]}{end}{first}")
    assert (tmp_path / "a").read_bytes() == changed.encode(encoding)


@EACH
async def test_what_stands_in_a_file_is_found(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a").write_bytes(text.encode(encoding))
    word = text.removeprefix("\ufeff").splitlines()[1].split()[0]

    found = await search_files(partial(Workspace, tmp_path), word)

    assert f"a:2: {word}" in found


@EACH
@ENDINGS
def test_a_file_that_is_replaced_keeps_its_encoding_and_endings(
    tmp_path: Path, text: str, encoding: str, end: str
) -> None:
    (tmp_path / "a").write_bytes(text.replace("\n", end).encode(encoding))
    plain = text.removeprefix("\ufeff")
    content = "".join(reversed(plain.splitlines(keepends=True)))
    mark = "\ufeff" if text != plain else ""

    said = write(tmp_path, content)
    first = (tmp_path / "a").read_bytes()
    assert first == (mark + content).replace("\n", end).encode(encoding)
    assert ("kept its encoding, " in said) == (encoding != "utf-8" or bool(mark))
    assert ("line endings" in said) == (end != "\n")

    write(tmp_path, content)
    assert (tmp_path / "a").read_bytes() == first


@pytest.mark.parametrize("encoding", ["cp1252", "koi8-r", "cp932", "gbk", "utf-16-le", "utf-32-be"])
def test_the_same_content_again_gives_the_same_file(tmp_path: Path, encoding: str) -> None:
    text = {"cp1252": FRENCH, "koi8-r": RUSSIAN, "cp932": JAPANESE, "gbk": CHINESE}
    (tmp_path / "a").write_bytes(text.get(encoding, CHINESE).encode(encoding))
    short = {"cp1252": "où", "koi8-r": "мир", "cp932": "設定", "gbk": "你好"}.get(encoding, "你好")

    write(tmp_path, short)
    assert (tmp_path / "a").read_bytes() == short.encode(encoding)
    assert "it had this text already" in write(tmp_path, short)
    assert (tmp_path / "a").read_bytes() == short.encode(encoding)


def test_content_that_the_encoding_does_not_have_is_written_as_utf_8_and_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_bytes(GERMAN.replace("\n", "\r\n").encode("cp1252"))

    said = write(tmp_path, "fünf → 5\n")

    assert said.endswith(
        "kept its CRLF line endings; it was cp1252, which has no '→'; now it is UTF-8)"
    )
    assert (tmp_path / "a").read_bytes() == "fünf → 5\r\n".encode()


def test_a_patch_that_the_encoding_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(GERMAN.encode("cp1252"))

    with pytest.raises(ToolError, match="the file is cp1252, which has no '→'"):
        patch(tmp_path, "fünf", "→ 5")
    assert (tmp_path / "a").read_bytes() == GERMAN.encode("cp1252")


@pytest.mark.parametrize(
    "data",
    ["Zażółć gęślą\n".encode("iso8859-2"), "Привет".encode("koi8-r"), "你好".encode("gbk")],
    ids=["iso8859-2", "koi8-r", "gbk"],
)
def test_an_edit_that_would_mix_encodings_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(b"name: x\n" + data)

    assert "\ufffd" in read(tmp_path)
    assert "(not valid utf-8: " in read(tmp_path)
    with pytest.raises(ToolError, match="so text beyond ASCII would mix two enc"):
        patch(tmp_path, "name: x", "name: é")
    patch(tmp_path, "name: x", "name: y")
    assert (tmp_path / "a").read_bytes() == b"name: y\n" + data
    assert "its encoding was not known; now it is UTF-8" in write(tmp_path, "é")


def test_a_damaged_utf_8_file_is_patched_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("grün, süß\n".encode() + b"\xff\n")

    patch(tmp_path, "süß", "süßer")

    assert (tmp_path / "a").read_bytes() == "grün, süßer\n".encode() + b"\xff\n"
    with pytest.raises(ToolError, match="stands for a byte that isn't text"):
        patch(tmp_path, "\ufffd", "x")


@pytest.mark.parametrize(
    ("before", "content", "after", "said"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "kept its CRLF line endings"),
        (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n", ""),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n", "kept its CRLF line endings"),
        (b"a\rb\r", "x\ny\n", b"x\ry\r", "kept its CR line endings"),
        (b"a\nb\r\nc\r\n", "x\ny\n", b"x\r\ny\r\n", "its mixed line endings are all CRLF now"),
        (b"a\nb\nc\r\n", "x\ny\n", b"x\ny\n", "its mixed line endings are all LF now"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n", ""),
        (b"a", "x\r\ny", b"x\r\ny", ""),
        (b"", "x\n", b"x\n", ""),
        (b"\0\1\2", "x\n", b"x\n", ""),
    ],
)
def test_line_endings_are_kept_and_told(
    tmp_path: Path, before: bytes, content: str, after: bytes, said: str
) -> None:
    (tmp_path / "a").write_bytes(before)

    told = write(tmp_path, content)

    assert (tmp_path / "a").read_bytes() == after
    assert told.partition("; ")[2] == (f"{said})" if said else "")
    write(tmp_path, content)
    assert (tmp_path / "a").read_bytes() == after


@given(st.binary(max_size=60))
def test_any_bytes_are_text_that_gives_them_back_or_none(data: bytes) -> None:
    text = read_text(data)
    if text is not None and (text.is_known or not text.mark):
        assert text.encode(text.text) == data


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_what_is_utf_8_is_read_so(text: str) -> None:
    found = read_text(text.encode())
    if "\0" not in text:
        assert found is not None
        assert found.encoding == "utf-8"
        assert found.text == text.removeprefix("\ufeff")
