"""Edits the text of a configuration and keeps what people wrote: comments, order, quotes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

from workflow_register._errors import ConfigError, file_error
from workflow_register.config._yaml import parse_yaml, round_trip, to_plain_data

Values = Mapping[str, object]


def edit_config(path: Path, text: str, changes: Values) -> str:
    """Apply a merge patch to the text of a configuration and keep the rest as it is written.

    Raises:
        ConfigError: the text isn't YAML, or no mapping, or more than the patch would change. The
            result is not checked otherwise.
    """
    document = parse_yaml(path, text)
    if document is None:  # nothing but comments, which no node would keep
        document = CommentedMap()
        prefix = text if not text or text.endswith("\n") else text + "\n"
    else:
        prefix = ""
    if not isinstance(document, CommentedMap):
        raise file_error(path, "it should hold keys such as `providers:` and `models:`", 1)
    expected = _patched_copy(to_plain_data(document), changes)
    try:
        changed = _patch_in_place(document, changes)
    except KeyError as error:  # the parser's own, where others merge what is to be removed
        raise _shared_value_error(path) from error
    if not changed and expected == to_plain_data(document):
        return text
    yaml = round_trip()
    yaml.indent(mapping=_indent_of(text))
    out = io.StringIO()
    cast("Any", yaml).dump(document, out)
    after = prefix + out.getvalue()
    if to_plain_data(parse_yaml(path, after)) != expected:
        raise _shared_value_error(path)
    return after


def _shared_value_error(path: Path) -> ConfigError:
    return file_error(
        path,
        "this value is shared with other keys by an anchor (&) or a merge (<<), so the change "
        "would reach them too; write the value out in each place, then try again",
    )


def _patched_copy(tree: object, changes: Values) -> dict[str, object]:
    """What plain data says after a merge patch."""
    patched = dict(cast("Values", tree)) if isinstance(tree, Mapping) else {}
    for key, value in changes.items():
        if isinstance(value, Mapping):
            patched[key] = _patched_copy(patched.get(key), cast("Values", value))
        elif value is None:
            patched.pop(key, None)
        else:
            patched[key] = value
    return patched


def _patch_in_place(node: CommentedMap, changes: Values) -> bool:
    """Apply a merge patch in place and say whether anything changed."""
    values, changed = cast("dict[str, object]", node), False
    tail = _cut_trailing_lines(node)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            below = values.get(key)
            if not isinstance(below, CommentedMap):
                below = values[key] = CommentedMap()
                changed = True
            changed |= _patch_in_place(below, cast("Values", value))
        elif value is None:
            changed |= key in values
            values.pop(key, None)
        elif key not in values or values[key] != value:
            values[key] = value
            changed = True
    _append_trailing_lines(node, tail)
    return changed


def _cut_trailing_lines(node: CommentedMap) -> str:
    """Take off the lines after a mapping that belong to what follows it.

    The parser hangs them on the mapping's last value, so a new last key would come after them.
    They are the empty lines at the end, and all from the first comment that is indented less.
    """
    if (token := _trailing_comment(node)) is None:
        return ""
    first, newline, rest = str(token.value).partition("\n")
    lines = rest.splitlines(keepends=True)
    column = int(cast("Any", node).lc.col or 0)
    outside = (
        index
        for index, line in enumerate(lines)
        if line.strip() and len(line) - len(line.lstrip(" ")) < column
    )
    cut = next(outside, len(lines))
    while cut and not lines[cut - 1].strip():
        cut -= 1
    token.value = first + newline + "".join(lines[:cut])
    return "".join(lines[cut:])


def _append_trailing_lines(node: CommentedMap, tail: str) -> None:
    if not tail or (place := _last_entry(node)) is None:
        return
    if (token := _trailing_comment(node)) is not None:
        token.value += tail
    else:
        last, key = place
        mark = CommentMark(0)
        cast("Any", last).ca.items[key] = [None, None, CommentToken("\n" + tail, mark), None]


def _trailing_comment(node: CommentedMap) -> Any:
    """The comment after the last value of a mapping, however deep that is; `None` without one."""
    if (place := _last_entry(node)) is None:
        return None
    last, key = place
    return cast("Any", last).ca.items.get(key, (None, None, None))[2]


def _last_entry(node: CommentedMap) -> tuple[CommentedMap, object] | None:
    place: tuple[CommentedMap, object] | None = None
    below: object = node
    while isinstance(below, CommentedMap) and below:
        if place is not None and cast("Any", below).fa.flow_style():
            break
        key, value = list(cast("dict[object, object]", below).items())[-1]
        place, below = (below, key), value
    return place


def _indent_of(text: str) -> int:
    """The smallest indentation in the file, so that it keeps its look."""
    spaces = [
        len(line) - len(line.lstrip(" "))
        for line in text.splitlines()
        if line.startswith(" ") and line.strip()
    ]
    return min(max(min(spaces, default=2), 2), 8)
