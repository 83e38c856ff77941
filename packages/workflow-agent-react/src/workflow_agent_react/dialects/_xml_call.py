"""One call of the XML protocol, `name(argument="value", other=2)`: reads and prints it. Pure.

A scanner, not a chain of patterns: strings may hold tags, brackets and quotes of either kind.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 64
"""Deeper nested arguments are refused."""

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_TOOL = re.compile(r"\w[\w.\-]*")  # those of MCP servers may begin with a digit
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(\.\d++)?+([eE][+-]?\d++)?+(?![\w./\\-])")  # 007 is text
_BARE = re.compile(r"[\w.*~@/\\:+-]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[^ux]|$)", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SELF_ESCAPES = frozenset("\\\"'/")
OWN_TAG = re.compile(r"<(?=/?(?:thought|action|observation|final_answer))", re.IGNORECASE)
_NAME_SEPARATOR = re.compile(r"=|:(?![/\\])")  # no web address, no drive
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
# Possessive, so that a missing quote costs one pass. Of four quotes the first is text.
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL),
    '"""': re.compile(r'"""((?:[^"\\]++|\\.|"(?!""(?!")))*+)"""', re.DOTALL),
    "'''": re.compile(r"'''((?:[^'\\]++|\\.|'(?!''(?!')))*+)'''", re.DOTALL),
}
_CONSTANTS: dict[str, object] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}


class XmlFault(ValueError):
    """The reply can't be read; the message tells the model why."""


@dataclass(frozen=True, slots=True)
class Action:
    """A call as it is written: arguments by place and by name."""

    name: str
    positional: tuple[object, ...] = ()
    named: dict[str, object] = field(default_factory=dict[str, object])
    source: str = ""
    """What the model wrote."""


def read_action(text: str) -> Action:
    """Read a text that is one call and nothing else.

    Raises:
        XmlFault: it isn't.
    """
    scanner = CallScanner(text, 0)
    action, complete = scanner.call()
    if not complete or scanner.skip_spaces() != len(text):
        raise XmlFault("it is not one call name(argument=value, …)")
    return action


def print_action(name: str, arguments: dict[str, Any]) -> str:
    """Write a call so that `read_action` gives the same name and named arguments.

    Its strings hold none of the protocol's tags: these are written with an escape, so that no
    stop sequence cuts them.
    """
    parts = (
        f"{key if _NAME.fullmatch(key) else _quoted(key)}={_quoted(value)}"
        for key, value in arguments.items()
    )
    return f"{name}({', '.join(parts)})"


def _quoted(value: object) -> str:
    return OWN_TAG.sub(r"\\u003c", json.dumps(value, ensure_ascii=False))


def without_tags(text: str) -> str:
    """A tool's output in which the protocol's own tags can't be taken for ours."""
    return OWN_TAG.sub("&lt;", text)


class CallScanner:
    """Reads a call from a place in a text; `at` is where it has come to."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def skip_spaces(self) -> int:
        """Pass over spaces."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def call(self) -> tuple[Action, bool]:
        """Read `name(…)`. False when the closing bracket is missing at the end of the text."""
        start = self.skip_spaces()
        name = _TOOL.match(self.text, start)
        if name is None:
            raise XmlFault(f"a call name(argument=value, …) must follow <action>{self.near(start)}")
        self.at = name.end()
        if not self.take("("):
            raise XmlFault(f"an opening bracket ( must follow {name[0]!r}{self.near(self.at)}")
        positional: list[object] = []
        named: dict[str, object] = {}
        while not self.take(")"):
            if self.at_end():
                return self.action(name[0], positional, named, start), False
            key = self.argument_name()
            value = self.value(1)
            if key is None:
                positional.append(value)
            elif key in named:
                raise XmlFault(f"the argument {key!r} stands twice; write it once")
            else:
                named[key] = value
            self.separator(")")
        return self.action(name[0], positional, named, start), True

    def action(
        self, name: str, positional: list[object], named: dict[str, object], start: int
    ) -> Action:
        """The call that began at `start` and ends here."""
        return Action(name, tuple(positional), named, self.text[start : self.at])

    def at_end(self) -> bool:
        """Whether nothing is left but a closing tag, whole or cut."""
        rest = self.text[self.skip_spaces() : self.at + len("</action>")].lower()
        return "</action>".startswith(rest)

    def take(self, sign: str) -> bool:
        """Pass over spaces and the sign, if it comes next."""
        if self.text.startswith(sign, self.skip_spaces()):
            self.at += len(sign)
            return True
        return False

    def separator(self, closer: str) -> None:
        """Pass over a comma; the closer may come instead, and stays."""
        if not self.take(",") and not self.text.startswith(closer, self.at) and not self.at_end():
            raise XmlFault(f"a comma or {closer!r} is missing{self.near(self.at)}")

    def argument_name(self) -> str | None:
        """Read `name=` (or `"name"=`, and `:` for `=`), if an argument has one."""
        start = self.skip_spaces()
        if self.text[start : start + 1] in {'"', "'"}:
            name: object = self.value(1)
        else:
            found = _NAME.match(self.text, start)
            name = found[0] if found else None
            self.at = found.end() if found else start
        if isinstance(name, str) and _NAME_SEPARATOR.match(self.text, self.skip_spaces()):
            self.at += 1
            return name
        self.at = start
        return None

    def value(self, depth: int) -> object:
        """Read a string, number, word, list or object."""
        start = self.skip_spaces()
        if depth > MAX_DEPTH:
            raise XmlFault("the arguments are nested too deeply")
        match self.text[start : start + 1]:
            case '"' | "'":
                return self.string()
            case "[" | "(" as opener:
                self.at += 1
                return self.sequence(_CLOSERS[opener], depth)
            case "{":
                self.at += 1
                return self.mapping(depth)
            case _:
                return self.bare_value()

    def sequence(self, closer: str, depth: int) -> list[object]:
        """Read values up to the closer."""
        values: list[object] = []
        while not self.take(closer):
            self.refuse_end()
            values.append(self.value(depth + 1))
            self.separator(closer)
        return values

    def mapping(self, depth: int) -> dict[str, object]:
        """Read `key: value` pairs up to the closing brace."""
        values: dict[str, object] = {}
        while not self.take("}"):
            self.refuse_end()
            key = self.argument_name()
            if key is None:
                raise XmlFault(f'"key": value must stand in {{…}}{self.near(self.at)}')
            if key in values:
                raise XmlFault(f"the key {key!r} stands twice; write it once")
            values[key] = self.value(depth + 1)
            self.separator("}")
        return values

    def refuse_end(self) -> None:
        """Raise where the text ends here."""
        if self.at >= len(self.text):
            raise XmlFault("the action is cut off in the middle of a list or object")

    def string(self) -> str:
        """Read a string of either quote, or of three of them, with its escapes in one pass."""
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        found = _STRINGS[quote].match(self.text, self.at)
        if found is None:
            begin = self.text[self.at : self.at + 20]
            raise XmlFault(
                f"the string that begins with {begin} has no closing quote; inside a string "
                'write a quote as \\" and the < of a tag as \\u003c'
            )
        self.at = found.end()
        return _unescape(found[1])

    def bare_value(self) -> object:
        """Read a number or a word; other bare text without spaces or brackets is a string."""
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return self.number(number)
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            raise XmlFault(f"a value is missing{self.near(self.at)}")
        self.at = bare.end()
        return _CONSTANTS.get(bare[0], bare[0])

    def number(self, found: re.Match[str]) -> int | float:
        """The number that was found."""
        try:
            value = float(found[0]) if found[1] or found[2] else int(found[0])
        except ValueError:  # thousands of digits
            value = float("inf")
        if value in {float("inf"), float("-inf")}:
            raise XmlFault(f"the number {found[0][:20]}… is too large")
        return value

    def near(self, position: int) -> str:
        """The words that say where."""
        found = self.text[position : position + 20]
        return f", near {found!r}" if found else ", at the end"


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Two halves make one character, as JSON writes them; one alone, which no file can hold, U+FFFD.
    plain = _ESCAPE.sub(_escaped, text).encode("utf-16", "surrogatepass")
    return plain.decode("utf-16", "replace")


def _escaped(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) > 1:
        return chr(int(sign[1:], 16))
    if sign in _SELF_ESCAPES:
        return sign
    return _SIMPLE_ESCAPES.get(sign, found[0])  # "\d" means what it says, as in Python
