"""YAML to a `Config`, with the line of each fault."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scalarbool import ScalarBoolean

from workflow_register._errors import ConfigError, ConfigFault, file_error
from workflow_register.config._check import Misfit, Place, check_config, shown_place
from workflow_register.config._config import Config
from workflow_register.config._yaml_events import MAX_VALUES, find_event_fault, reused_anchor


def parse_config(path: Path, text: str) -> Config:
    """Read the text of a configuration; `path` is for the errors.

    Raises:
        ConfigError: everything that is wrong with it.
    """
    return _check_document(path, parse_yaml(path, text))


def round_trip() -> YAML:
    """Make a parser and writer that keep comments, order and quotes."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    return yaml


def parse_yaml(path: Path, text: str) -> object:
    """Parse text to what `round_trip` can write again.

    Raises:
        ConfigError: it isn't YAML, or far too much; the message has not a word of it, since it may
            hold a key.
    """
    try:
        if (found := find_event_fault(_events(text))) is not None:
            fault = file_error(path, found.message, found.line)
        else:
            document = _load(path, text)
            if _count_values(document, {}) <= MAX_VALUES:
                return document
            message = f"it has more than {MAX_VALUES:,} values; is it the right file?"
            fault = file_error(path, message)
    except MarkedYAMLError as error:
        line, problem = _line_and_problem(error)
        fault = file_error(path, _syntax_message(problem, text, line), line)
    except ReaderError as error:
        line = text.count("\n", 0, int(cast("Any", error).position)) + 1
        fault = file_error(path, "this line has a character that YAML doesn't allow", line)
    except Exception as error:  # noqa: BLE001 - the parser lets through what a value's type raises
        fault = file_error(path, f"it is not YAML ({type(error).__name__})")
    raise fault  # without its cause, whose text quotes the file, and so perhaps a key


def _events(text: str) -> Iterator[Any]:
    return cast("Any", round_trip()).parse(text)


def _load(path: Path, text: str) -> object:
    """Parse, and warn once about anchors of the same name, where the parser would of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReusedAnchorWarning)
        document: object = cast("Any", round_trip()).load(text)
    if "&" in text and (line := reused_anchor(_events(text))) is not None:
        message = f"{path}:{line}: an earlier anchor (&) has the same name; the later one is used"
        warnings.warn(message, stacklevel=2)
    return document


def _line_and_problem(error: Any) -> tuple[int | None, str]:
    mark = error.problem_mark or error.context_mark
    return None if mark is None else mark.line + 1, str(error.problem or error.context or "")


def _syntax_message(problem: str, text: str, line: int | None) -> str:
    """Say what is wrong without a word of the file, which may hold a key in clear."""
    shown = "".join(text.split("\n")[line - 1 : line]) if line else ""
    if problem.startswith("found duplicate key"):
        return "this key appears twice; keep one"
    if "${" in shown and "{" in shown.partition("${")[0]:
        return 'within { } a reference needs quotes: "${NAME}"'
    if "\t" in shown[: len(shown) - len(shown.lstrip())]:
        return "indent with spaces, not tabs"
    words = problem.split("'")
    if any(len(word) > 1 and not word.startswith("<") for word in words[1::2]):
        problem = words[0].strip()
    return f"not YAML: {problem or 'unreadable'}"


def _check_document(path: Path, document: object) -> Config:
    if document is None:
        return Config()
    if not isinstance(document, CommentedMap):
        raise file_error(path, "it should hold keys such as `providers:` and `models:`", 1)
    misfits = dict(_unsupported_values(document))
    result = check_config(to_plain_data(document))
    if isinstance(result, Config):
        if not misfits:
            return result
    else:
        misfits = {**dict(result), **misfits}
    found = [
        ConfigFault(path, _line(document, place), shown_place(place), message)
        for place, message in misfits.items()
    ]
    raise ConfigError(sorted(found, key=lambda fault: (fault.line or 0, fault.key)))


def _children(node: object) -> list[tuple[object, object]] | None:
    """The keys and values of a mapping or a list, or `None` for a single value."""
    if isinstance(node, CommentedMap):
        return list(cast("dict[object, object]", node).items())
    if isinstance(node, CommentedSeq):
        return list(enumerate(cast("list[object]", node)))
    return None


def _count_values(node: object, known: dict[int, int]) -> int:
    """How many values there are when aliases are followed, counted without following them twice."""
    children = _children(node)
    if children is None:
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_VALUES + 1
        known[id(node)] = 1 + sum(_count_values(child, known) for _, child in children)
    return known[id(node)]


def _unsupported_values(node: object, place: Place = ()) -> Iterator[Misfit]:
    """What YAML can say and a configuration can't: dates, tags, keys that aren't text."""
    children = _children(node)
    if children is None:
        if not isinstance(node, str | int | float | bool | None):
            yield Misfit(place, "should be text, a number, true or false; put it in quotes")
        elif isinstance(node, float) and not math.isfinite(node):
            yield Misfit(place, "should be a finite number")
        return
    for key, value in children:
        if isinstance(node, CommentedMap) and not isinstance(key, str):
            yield Misfit((*place, str(key)), "a key should be text; put it in quotes")
        yield from _unsupported_values(value, (*place, key if isinstance(key, int) else str(key)))


def to_plain_data(node: object) -> Any:
    """What a document says, without how it is written."""
    children = _children(node)
    if isinstance(node, CommentedMap):
        return {str(key): to_plain_data(value) for key, value in children or ()}
    if children is not None:
        return [to_plain_data(value) for _, value in children]
    if isinstance(node, ScalarBoolean):  # an int to Python
        return bool(node)
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return None


def _line(document: object, place: Place) -> int | None:
    """The line of a place, or of the nearest thing around it that is in the file."""
    line: int | None = None
    node = document
    for step in place:
        found = [each for each in _children(node) or () if str(each[0]) == str(step)]
        if not found:
            break
        key, below = found[0]
        with suppress(KeyError, TypeError):  # a merged key has no line here
            lines = cast("Any", node).lc
            line = int((lines.key if isinstance(node, CommentedMap) else lines.item)(key)[0]) + 1
        node = below
    return line
