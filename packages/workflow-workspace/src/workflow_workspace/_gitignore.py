"""The lines of a `.gitignore`: matched in linear time, and with a bound for all of them together.

A pattern becomes the bits of a number, one for each place in it (a "shift-and" automaton,
Baeza-Yates and Gonnet, CACM 35(10), 1992): a byte of the path moves all places at once, so no star
is ever tried again. Names and paths without a star, and `*.suffix`, are looked up. All are bytes,
as git has them: `?` is one byte.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

MAX_PATH_BYTES = 4096  # PATH_MAX: a pattern that asks for more can't match
MAX_STEPS = 8_000_000
"""What the rules of one walk may take: three seconds, or some more where they are very long."""
_STEPS_A_BYTE = 3  # of rules that are read
_STEPS_A_PATH = 2  # of what is only looked up
_SLASH = ord("/")


class Effort(msgspec.Struct):
    """What the rules of a walk may still take. Beyond that they are left out, and it says so."""

    steps: int = MAX_STEPS
    """How many are left; below 0 it was not enough."""

    @property
    def is_spent(self) -> bool:
        """Whether rules were left out."""
        return self.steps < 0

    @property
    def note(self) -> str:
        """Words for the model; empty where all rules were applied."""
        note = "some rules of .gitignore were not applied, because they take too long"
        return f"({note})" if self.is_spent else ""


class Glob(msgspec.Struct, frozen=True):
    """One pattern as an automaton. Bit n of each number is the place before token n."""

    literals: dict[int, int]
    """The tokens that a byte fits, by the byte."""
    any: int
    """The tokens that fit every byte but `/`, and those of `[!…]`."""
    excluded: dict[int, int]
    """The bytes that a token of `any` doesn't fit."""
    stars: int
    """The places at which a `*` stands: any bytes but `/` leave them where they are."""
    double_stars: int
    """The places at which `**` stands: any bytes do."""
    optional_folders: int
    """The places of a `**/`, which may also stand for nothing."""
    end: int
    first: int
    """The byte that a match begins with; -1 where it may be any."""

    def match(self, path: bytes, effort: Effort) -> bool:
        """Whether all of a path fits."""
        literals, any_byte, excluded = self.literals, self.any, self.excluded
        stars, double_stars, optional_folders = self.stars, self.double_stars, self.optional_folders
        places = 1 | ((1 & optional_folders) << 1)
        steps = 0
        for byte in path:
            steps += 1
            if byte == _SLASH:
                moved = (places & literals.get(byte, 0)) << 1
                stay = places & double_stars
            else:
                fits = literals.get(byte, 0) | (any_byte & ~excluded.get(byte, 0))
                moved = (places & fits) << 1
                stay = places & (stars | double_stars)
            places = moved | ((moved & optional_folders) << 1) | stay
            if not places:
                break
        effort.steps -= steps
        return bool(places & self.end)


def compile_glob(pattern: bytes, effort: Effort) -> Glob | None:
    """A pattern of gitignore(5) without `!` and the first and last `/`; `None` if no path fits."""
    literals: dict[int, int] = {}
    excluded: dict[int, int] = {}
    any_byte = stars = double_stars = optional_folders = 0
    bit, first = 1, -1
    for kind, given in _tokens(pattern):
        effort.steps -= len(given)
        match kind:
            case "*":
                stars |= bit
                continue
            case "**":
                double_stars |= bit
                continue
            case "**/":
                double_stars |= bit
                optional_folders |= bit
                literals[_SLASH] = literals.get(_SLASH, 0) | bit
            case "set":
                for byte in given:
                    literals[byte] = literals.get(byte, 0) | bit
                if len(given) == bit == 1 and not stars | double_stars:
                    first = given[0]
            case "other":
                any_byte |= bit
                for byte in given:
                    excluded[byte] = excluded.get(byte, 0) | bit
            case "broken":
                return None
        bit <<= 1
        if bit >> MAX_PATH_BYTES > 1:
            return None
    return Glob(literals, any_byte, excluded, stars, double_stars, optional_folders, bit, first)


_PIECES = re.compile(
    rb"""(?P<folders>(?:(?:\A|(?<=/))\*\*+/)+)             # **/ at the beginning or after a slash
    |(?P<across>(?:\A|(?<=/))\*\*+(?=\Z|\\/))           # ** between a slash and the end
    |(?P<star>\*+)|(?P<one>\?)|(?P<set>\[)
    |\\(?P<escaped>.)|(?P<broken>\\)|(?P<byte>.)""",
    re.DOTALL | re.VERBOSE,
)
_SPECIAL = re.compile(rb"[*?\[\\]")
_CLASSES = {
    b"alnum": bytes(b for b in range(128) if chr(b).isalnum()),
    b"alpha": bytes(b for b in range(128) if chr(b).isalpha()),
    b"blank": b" \t",
    b"cntrl": bytes((*range(32), 127)),
    b"digit": b"0123456789",
    b"graph": bytes(range(33, 127)),
    b"lower": bytes(range(ord("a"), ord("z") + 1)),
    b"print": bytes(range(32, 127)),
    b"punct": bytes(b for b in range(33, 127) if not chr(b).isalnum()),
    b"space": b" \t\n\r",
    b"upper": bytes(range(ord("A"), ord("Z") + 1)),
    b"xdigit": b"0123456789abcdefABCDEF",
}

_Kind = Literal["*", "**", "**/", "set", "other", "broken"]


def _tokens(pattern: bytes) -> Iterator[tuple[_Kind, bytes]]:
    """The tokens, and the bytes that they take, or (`other`) don't take."""
    special = _SPECIAL.search(pattern)
    plain = special.start() if special else len(pattern)
    for byte in pattern[:plain]:
        yield "set", bytes((byte,))
    rest, at = pattern[plain:], 0  # git matches it by itself, so `a**/b` is `a` and then `**/b`
    while (piece := _PIECES.match(rest, at)) is not None:
        at = piece.end()
        match piece.lastgroup:
            case "folders":
                yield "**/", b""
            case "across":
                yield "**", b""
            case "star":
                yield "*", b""
            case "one":
                yield "other", b"/"
            case "set":
                kind, given, at = _bracket_set(rest, at)
                yield kind, given
            case "broken":
                yield "broken", b""
            case _:
                yield "set", piece["escaped"] or piece["byte"]


def _bracket_set(pattern: bytes, at: int) -> tuple[_Kind, bytes, int]:
    """A `[…]` whose `[` has been read: its token, and where it ends."""
    negated = pattern[at : at + 1] in {b"!", b"^"} and at < len(pattern)
    at += negated
    given: set[int] = set()
    begin, before = at, -1
    while at < len(pattern):
        byte = pattern[at]
        if byte == ord("]") and at > begin:
            if negated:
                return "other", bytes(given | {_SLASH}), at + 1
            return "set", bytes(given - {_SLASH}), at + 1
        if pattern[at : at + 2] == b"[:":
            end = pattern.find(b"]", at + 2)
            if end > 0 and pattern[end - 1 : end] == b":" and end - 1 >= at + 2:
                name = pattern[at + 2 : end - 1]
                if name not in _CLASSES:
                    break
                given.update(_CLASSES[name])
                at, before = end + 1, -1
                continue
            if end < 0:
                break
        is_range = byte == ord("-") and before >= 0 and pattern[at + 1 : at + 2] not in {b"]", b""}
        if is_range:
            at += 1
            byte = pattern[at]
        if byte == ord("\\"):
            at += 1
            if at >= len(pattern):
                break
            byte = pattern[at]
        given.update(range(before, byte + 1) if is_range else (byte,))
        before = -1 if is_range else byte
        at += 1
    return "broken", b"", len(pattern)


class _Rule(msgspec.Struct, frozen=True):
    number: int
    glob: Glob
    of_names: bool
    """It is matched with the last part of a path."""
    of_folders: bool


class Rules(msgspec.Struct, frozen=True):
    """All rules of one `.gitignore`. The last one that fits a path decides."""

    negated: set[int] = msgspec.field(default_factory=set[int])
    """The rules that take a path back in, by their line."""
    names: dict[bytes, int] = msgspec.field(default_factory=dict[bytes, int])
    """The last rule of this name; those for folders only have a `/` at the end of the name."""
    paths: dict[bytes, int] = msgspec.field(default_factory=dict[bytes, int])
    """The last rule of this whole path."""
    suffixes: dict[bytes, int] = msgspec.field(default_factory=dict[bytes, int])
    """The last rule of this end of a name, such as `.pyc`."""
    lengths: set[int] = msgspec.field(default_factory=set[int])
    """The lengths of these ends, to look them up by."""
    globs: list[_Rule] = msgspec.field(default_factory=list[_Rule])
    """All others, the last one first."""

    @classmethod
    def of(cls, data: bytes, effort: Effort) -> Rules:
        """Read the lines of a file; those that git would not use are left out."""
        effort.steps -= _STEPS_A_BYTE * len(data)
        rules = cls()
        for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n")):
            if line and not line.startswith(b"#"):
                rules._add(number, _trimmed(line), effort)
        rules.globs.reverse()
        return rules

    def _add(self, number: int, pattern: bytes, effort: Effort) -> None:
        if pattern.startswith(b"!"):
            self.negated.add(number)
            pattern = pattern[1:]
        of_folders = pattern.endswith(b"/")
        pattern = pattern[:-1] if of_folders else pattern
        of_names = b"/" not in pattern
        pattern = pattern.removeprefix(b"/")
        if not pattern:
            return
        mark = b"/" if of_folders else b""
        suffix = pattern[1:]
        if not _SPECIAL.search(pattern):
            (self.names if of_names else self.paths)[pattern + mark] = number
        elif of_names and pattern.startswith(b"*") and suffix and not _SPECIAL.search(suffix):
            self.suffixes[suffix + mark] = number
            self.lengths.add(len(suffix))
        elif (glob := compile_glob(pattern, effort)) is not None:
            self.globs.append(_Rule(number, glob, of_names, of_folders))

    def decide(self, path: bytes, *, folder: bool, effort: Effort) -> bool | None:
        """Whether a path is ignored by these rules; `None` where none of them fits.

        What is more than the effort is left out.
        """
        effort.steps -= _STEPS_A_PATH + len(self.lengths)
        if effort.is_spent:
            return None
        name = path[path.rfind(b"/") + 1 :]
        best = self._last_exact_rule(name, path, b"")
        if folder:
            best = max(best, self._last_exact_rule(name, path, b"/"))
        for rule in self.globs:
            if rule.number < best or effort.is_spent:
                break
            effort.steps -= 1
            subject = name if rule.of_names else path
            if rule.of_folders and not folder:
                continue
            if rule.glob.first in {-1, subject[0]} and rule.glob.match(subject, effort):
                best = rule.number
        return None if best < 0 else best not in self.negated

    def _last_exact_rule(self, name: bytes, path: bytes, mark: bytes) -> int:
        best = max(self.names.get(name + mark, -1), self.paths.get(path + mark, -1))
        for length in self.lengths:
            if length <= len(name):
                best = max(best, self.suffixes.get(name[-length:] + mark, -1))
        return best


def _trimmed(line: bytes) -> bytes:
    """Without the spaces at the end that no backslash keeps, and the carriage return."""
    line = line.partition(b"\0")[0].removesuffix(b"\r")
    kept = line.rstrip(b" ")
    escapes = len(kept) - len(kept.rstrip(b"\\"))
    return line[: len(kept) + 1] if escapes % 2 and len(line) > len(kept) else kept
