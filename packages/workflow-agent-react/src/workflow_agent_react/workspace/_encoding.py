"""How the bytes of a file are text: by its mark, as UTF-8, or as what they plainly are. Pure."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from charset_normalizer.models import CharsetMatch

# The longer mark first: UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8_192
_SAMPLE_BYTES = 16_384
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254")
_OF_TWO_BYTES = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_CANDIDATES = (
    *_LATIN,
    *_OF_TWO_BYTES,
    *("cp1251", "koi8_r", "cp866", "iso8859_5", "cp1253", "cp1255", "cp1256"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_CENTRAL_EUROPE = frozenset(
    ("Polish", "Czech", "Slovak", "Hungarian", "Romanian", "Slovene", "Croatian", "Lithuanian")
)
# What an accented letter looks like in Latin script: alone, or two, beside plain letters.
_ALONE = re.compile(r"(?:(?<=[A-Za-z])[^\W\d_a-zA-Z]{1,2}|[^\W\d_a-zA-Z]{1,2}(?=[A-Za-z]))")
_CODES = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class Text(msgspec.Struct, frozen=True):
    """A text with its own line endings, and how its bytes are made of it."""

    text: str
    """Bytes that don't fit are surrogates, as of `surrogateescape`."""
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark that stands before it."""
    is_known: bool = True
    """Whether the encoding is; otherwise it is UTF-8 at most in part."""

    def encode(self, text: str) -> bytes:
        """Another text as the bytes of such a file.

        Raises:
            UnicodeEncodeError: the encoding hasn't all of its characters.
        """
        return self.mark + text.encode(self.encoding, _errors(self.encoding))

    def lines(self) -> list[str]:
        """The lines; a newline at the end doesn't begin another. `\ufffd` is what doesn't fit."""
        text = with_newlines(self.text, ending_of(self.text))
        lines = re.sub("[\ud800-\udfff]", "\ufffd", text).split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def note(self) -> str:
        """What its lines don't show of it; may be empty."""
        if re.search("[\ud800-\udfff]", self.text) or not self.is_known:
            return f"(not valid {self.encoding}: the bytes that aren't are shown as \ufffd)"
        return f"({self.encoding})" if self.encoding != "utf-8" else ""


def with_newlines(text: str, ending: str) -> str:
    """A text whose lines end in `\n` instead of `\r\n`; or of `\r`, if that is the ending."""
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if ending == "\r" else text


def ending_of(text: str) -> str:
    """What most lines of a text end in: `\n`, `\r\n`, or `\r` if there is nothing else."""
    newlines = text.count("\n")
    if not newlines:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if text.count("\r\n") * 2 > newlines else "\n"


def read_text(data: bytes) -> Text | None:
    """The text in a file's bytes; `None` if they are none."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data[len(mark) :], encoding, mark)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text[:_SNIFFED_BYTES]:
        return Text(text)
    if (wide := _wide(data)) is not None:
        return wide
    if b"\0" in data[:_SNIFFED_BYTES]:
        return None
    if text is not None:
        return Text(text)
    text = data.decode("utf-8", "surrogateescape")
    if _is_damaged_utf8(text):
        return Text(text)
    return _plainly(data) or Text(text, is_known=False)


def like_before(content: str, old: bytes) -> tuple[bytes, list[str]]:
    """A file's new content as bytes, like those before where that can be, and words about it.

    The same content again gives the same bytes.
    """
    before = read_text(old)
    ending = ending_of(before.text if before is not None else content)
    body = content.replace("\r\n", "\n").replace("\n", ending) if ending != "\n" else content
    if not body.isascii() and _holds(old, body):
        return old, ["it had this text already"]
    if not old or before is None:
        return content.encode(), []
    notes = [_about_endings(before.text, content, ending)]
    if not before.is_known:
        data = body.encode()
        notes.append("" if body.isascii() else "its encoding was not known; now it is UTF-8")
    else:
        try:
            data = before.encode(body.removeprefix("\ufeff") if before.mark else body)
            notes.append(_about_encoding(before))
        except UnicodeEncodeError as error:
            data = body.encode()
            lacks = body[error.start]
            notes.append(f"it was {before.encoding}, which has no {lacks!r}; now it is UTF-8")
    return data, [note for note in notes if note]


def _holds(data: bytes, text: str) -> bool:
    """Whether the bytes are this text in some encoding other than UTF-8."""
    for encoding in (*_CANDIDATES, *_WIDE):
        try:
            if text.encode(encoding) == data:
                return True
        except UnicodeEncodeError:
            continue
    return False


def _about_endings(before: str, content: str, ending: str) -> str:
    if "\n" not in content:
        return ""
    crlf = before.count("\r\n")
    name = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[ending]
    if crlf and crlf < before.count("\n"):
        return (
            ""
            if "\r" in content and ending == "\n"
            else f"its mixed line endings are all {name} now"
        )
    if ending == "\n" or content.count("\r\n") == content.count("\n"):
        return ""
    return f"kept its {name} line endings"


def _about_encoding(before: Text) -> str:
    if before.mark:
        return f"kept its encoding, {before.encoding} with a byte order mark"
    return f"kept its encoding, {before.encoding}" if before.encoding != "utf-8" else ""


def _errors(encoding: str) -> str:
    # Bytes that aren't UTF-8 come back as they were; so do lone surrogates of the wide encodings.
    if encoding == "utf-8":
        return "surrogateescape"
    return "surrogatepass" if encoding.startswith("utf") else "strict"


def _marked(data: bytes, encoding: str, mark: bytes) -> Text | None:
    try:
        return Text(data.decode(encoding, _errors(encoding)), encoding, mark)
    except UnicodeDecodeError:
        return Text(data.decode(encoding, "replace"), encoding, mark, is_known=False)


def _wide(data: bytes) -> Text | None:
    """UTF-16 or UTF-32 without a mark: ASCII characters in them have null bytes."""
    if b"\0" not in data[:_SNIFFED_BYTES]:
        return None
    found: list[tuple[int, Text]] = []
    for encoding in _WIDE:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if _is_likely(text):
            plain = sum(map(str.isascii, text[:_SNIFFED_BYTES]))
            found.append((plain, Text(text, encoding)))
    if not found:
        return None
    plain, text = max(found, key=lambda each: each[0])
    return text if plain or text.encoding.startswith("utf-32") else None


def _is_likely(text: str) -> bool:
    """Whether it has nothing but characters that texts have."""
    if _CODES.search(text):
        return False
    kinds = {unicodedata.category(character) for character in set(text[:_SNIFFED_BYTES])}
    return kinds.isdisjoint({"Cn", "Co", "Cs"})


def _is_damaged_utf8(text: str) -> bool:
    """Whether more of the characters beyond ASCII are UTF-8 than not."""
    wrong = len(re.findall("[\udc80-\udcff]", text))
    right = len(re.findall("[^\x00-\x7f\udc80-\udcff]", text))
    return right > wrong


def _plainly(data: bytes) -> Text | None:
    """The text in the encoding that it can only be in, if there is one."""
    sample = b"\n".join(_lines_beyond_ascii(data))
    encoding = _sure(sample)
    if encoding is None:
        return None
    try:
        text = data.decode(encoding)
        same = text.encode(encoding) == data
    except UnicodeError:
        return None
    return Text(text, encoding) if same and not _CODES.search(text) else None


def _lines_beyond_ascii(data: bytes) -> Iterator[bytes]:
    size = 0
    for line in data.split(b"\n"):
        if not line.isascii():
            yield line[:_SAMPLE_BYTES] if len(line) > _SAMPLE_BYTES else line
            size += len(line)
            if size > _SAMPLE_BYTES:
                return


def _sure(sample: bytes) -> str | None:
    """The encoding, if charset-normalizer is sure of it: nothing else comes near."""
    from charset_normalizer import from_bytes  # here: few workspaces need it

    found = from_bytes(sample, cp_isolation=list(_CANDIDATES))
    matches = [match for match in found if match.chaos <= 0.1]
    if not matches:
        return None
    best = max(matches, key=lambda match: (match.coherence, -match.chaos))
    if best.coherence > 0:
        return _by_language(best, matches)
    first, *others = matches
    if first.encoding in _OF_TWO_BYTES:
        near = [each for each in others if each.chaos < 0.03 and str(each) != str(first)]
        return first.encoding if first.chaos < 0.01 and not near and _variety(first) >= 6 else None
    return _as_latin(sample)


def _by_language(best: CharsetMatch, matches: Sequence[CharsetMatch]) -> str | None:
    if best.coherence < (0.1 if best.chaos < 0.02 else 0.2):
        return None
    rivals = [
        each for each in matches if each.coherence > 0.6 * best.coherence and str(each) != str(best)
    ]
    latin = {each.encoding: each for each in [best, *rivals] if each.encoding in _LATIN}
    if best.encoding not in latin:
        return best.encoding if not rivals and _variety(best) >= 8 else None
    if len(latin) < 1 + len(rivals):
        return None
    if best.encoding == "cp1252" and all(each.coherence < best.coherence for each in rivals):
        return "cp1252"
    west, central = latin.get("cp1252"), latin.get("cp1250")
    if west is not None and central is not None and len(latin) == 2:
        is_central = central.language in _CENTRAL_EUROPE and west.language != central.language
        return "cp1250" if is_central else "cp1252"
    if rivals:
        return None
    return "cp1252" if _decoded(bytes(best.raw), "cp1252") == str(best) else best.encoding


def _as_latin(sample: bytes) -> str | None:
    """A few accented letters within plain words, which are the same in the east and west."""
    text = _decoded(sample, "cp1252")
    if text is None or text != _decoded(sample, "cp1250"):
        return None
    rest = _ALONE.sub("", text)
    return "cp1252" if rest.isascii() or not re.search(r"[^\W\d_a-zA-Z]", rest) else None


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _variety(match: CharsetMatch) -> int:
    return len({character for character in str(match) if not character.isascii()})
