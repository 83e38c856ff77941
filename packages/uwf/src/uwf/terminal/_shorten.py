"""Texts for people: cut where they are long, with a count of what is left out."""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec


class Cut(NamedTuple):
    """How much of a text is shown."""

    lines: int = 14
    chars: int = 300
    """Of one line."""


def cut_lines(text: str, cut: Cut | None) -> list[str]:
    """The lines of a text; of a long one the beginning and the end, and what is missing between.

    Args:
        cut: `None` to leave nothing out.
    """
    lines = text.removesuffix("\n").expandtabs(4).split("\n")
    if cut is None:
        return lines
    if len(lines) > cut.lines:
        last = cut.lines // 4
        first = cut.lines - last - 1
        missing = lines[first:-last]
        chars = sum(map(len, missing)) + len(missing)
        note = f"[… {len(missing):,} lines, {chars:,} characters left out …]"
        lines = [*lines[:first], note, *lines[-last:]]
    return [_cut_line(line, cut.chars) for line in lines]


def _cut_line(line: str, chars: int) -> str:
    if len(line) <= chars:
        return line
    last = chars // 4
    first = chars - last
    missing = len(line) - chars
    return f"{line[:first]}[… {missing:,} characters left out …]{line[-last:]}"


def argument_lines(arguments: str, cut: Cut | None, width: int = 70) -> list[str]:
    """A call's arguments: on one line where they are short, else one below the other.

    Numbers stay as they were written. What is no JSON object is shown as it is.
    """
    try:
        values = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cut_lines(arguments, cut)
    pairs = [(name, _value_text(bytes(value))) for name, value in values.items()]
    line = "  ".join(f"{name}={text}" for name, text in pairs)
    if len(line) <= width and "\n" not in line:
        return [line] if line else []
    lines: list[str] = []
    for (name, text), value in zip(pairs, values.values(), strict=True):
        if len(name) + len(text) <= width and "\n" not in text:
            lines.append(f"{name}={text}")
        else:
            block = cut_lines(_block_text(bytes(value)), cut)
            lines += [f"{name}:", *(f"  {each}" for each in block)]
    return lines


def changed_arguments(written: str, used: str, cut: Cut | None) -> list[str]:
    """What a call ran with beside, or in place of, what was written: a default, another value."""
    try:
        before = msgspec.json.decode(written, type=dict[str, object])
        after = msgspec.json.decode(used, type=dict[str, msgspec.Raw])
        changed = {
            name: value
            for name, value in after.items()
            if name not in before or before[name] != msgspec.json.decode(value)
        }
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ["", *cut_lines(used, cut)]
    gone = ", ".join(name for name in before if name not in after)
    lines = argument_lines(msgspec.json.encode(changed).decode(), cut) or ["the same values"]
    lines += [f"without {gone}"] if gone else []
    return lines if len(lines) == 1 else ["", *lines]


def value_lines(data: bytes, cut: Cut | None, width: int = 70) -> list[str]:
    """A JSON value: on one line where it is short, else a text as itself, or indented JSON."""
    text = _value_text(data)
    return [text] if len(text) <= width else cut_lines(_block_text(data), cut)


def _value_text(data: bytes) -> str:
    """A value on one line, as JSON."""
    if data.startswith(b'"'):
        return json.dumps(msgspec.json.decode(data, type=str), ensure_ascii=False)
    return msgspec.json.format(data, indent=-1).decode("utf-8", "replace")


def _block_text(data: bytes) -> str:
    """A long value: a text as itself, anything else as indented JSON."""
    if data.startswith(b'"'):
        return msgspec.json.decode(data, type=str)
    return msgspec.json.format(data, indent=2).decode("utf-8", "replace")
