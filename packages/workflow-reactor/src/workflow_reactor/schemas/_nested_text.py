"""JSON that a model wrote as a string where an object or array is due: `{"items": "[{…}]"}`.

Some models do it in up to four of ten calls, at any depth, and inside what they wrote as a string
as well. A string is read where its schema allows no string; where one may stand, it stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor.schemas._check import matches
from workflow_reactor.schemas._edit_json import Edits, decode_value, edit_json
from workflow_reactor.schemas._optional_nulls import drop_optional_nulls
from workflow_reactor.schemas._walk import (
    all_of,
    constants,
    find_schema,
    followed,
    item_schema,
    members,
    properties_of,
    required_of,
    type_of,
    types_of,
)

MAX_LEVELS = 8
"""So often may a string stand inside what was itself written as a string."""
_MAX_JOINED = 8
"""So deep are schemas joined. What is under more unions at once than that isn't looked into."""

_ANYTHING: JsonObject = {}
_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def unfold_json(schema: JsonObject, text: str, *, strict: bool = False) -> str | None:
    """Another reading of a JSON text that doesn't fit: strings as the JSON that they hold.

    A string is replaced where the schema wants an object or an array, allows no string, and the
    string is JSON of such; all else stays as it was written. Nulls that stand for absent keys in it
    are dropped. The caller validates it.

    Args:
        strict: as for `drop_optional_nulls`.

    Returns:
        The text, or `None` where there is no such string.
    """
    if '"' not in text:
        return None
    try:
        unfolded = _Unfolder(schema).unfold(schema, text, 0)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    return None if unfolded is text else drop_optional_nulls(schema, unfolded, strict=strict)


class _Unfolder:
    """Reads one text. Schemas and values are known by identity: all stay alive.

    Each value is held against each schema at most once, so the work is bounded by the size of the
    value times that of the schema.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._values: list[object] = []
        self._types: dict[int, frozenset[str]] = {}
        self._parts: dict[tuple[int, int, str | int], JsonObject] = {}
        self._meant: dict[tuple[int, int], Sequence[JsonObject]] = {}
        self._joined: dict[tuple[str, tuple[int, ...]], JsonObject] = {}
        self._joined_depth: dict[int, int] = {}

    def unfold(self, node: JsonObject, text: str, level: int) -> str:
        """The text with what is to be replaced in it; the same object where there is nothing."""
        whole = decode_value(text)
        self._values.append(whole)
        if isinstance(whole, str):
            return self._held(node, whole, level) or text
        edits: Edits = {}
        waiting: list[tuple[JsonObject, object]] = [(node, whole)]
        while waiting:
            node, value = waiting.pop()
            for key, item in _items(value):
                below = self._part(node, value, key)
                if isinstance(item, str):
                    if (held := self._held(below, item, level)) is not None:
                        edits[id(value), key] = held
                elif isinstance(item, dict | list) and below is not _ANYTHING:
                    waiting.append((below, cast("object", item)))
        return edit_json(text, whole, edits) if edits else text

    def _held(self, node: JsonObject, string: str, level: int) -> str | None:
        """The JSON that a string holds, where such is due and no string."""
        text = string.strip()
        types = self._allowed(node)
        if level >= MAX_LEVELS or "string" in types or not text.startswith(("{", "[", '"')):
            return None
        try:
            value = decode_value(text)
            if type_of(value) not in types & {"object", "array"} and not isinstance(value, str):
                return None
            held = self.unfold(node, text, level + 1)
        except (msgspec.MsgspecError, ValueError, OverflowError):
            return None
        return None if held is text and isinstance(value, str) else held

    def _same_place(self, node: JsonObject) -> list[JsonObject]:
        parts = all_of(node)
        ref = node.get("$ref")
        target = find_schema(self._root, ref) if isinstance(ref, str) else None
        return parts if target is None else [*parts, target]

    def _allowed(self, node: JsonObject) -> frozenset[str]:
        """The JSON types that a schema allows."""
        known = self._types.get(id(node))
        if known is not None:
            return known
        self._types[id(node)] = _TYPES  # a schema that contains itself adds nothing to it
        allowed = _TYPES
        if types := types_of(node):
            allowed &= {*types, *(("integer",) if "number" in types else ())}
        values = constants(node)
        if values is not None:
            allowed &= {type_of(each) for each in values}
        for part in self._same_place(node):
            allowed &= self._allowed(part)
        if options := members(node):
            allowed &= frozenset[str]().union(*map(self._allowed, options))
        self._types[id(node)] = allowed
        return allowed

    def _part(self, node: JsonObject, value: object, key: str | int) -> JsonObject:
        """The schema of what stands under a key or index of a value."""
        place = (id(node), id(value), key)
        known = self._parts.get(place)
        if known is not None:
            return known
        self._parts[place] = _ANYTHING  # as above
        every = _own_parts(node, key)
        every += [self._part(part, value, key) for part in self._same_place(node)]
        if options := self._likely(node, value):
            every.append(self._join("anyOf", [self._part(each, value, key) for each in options]))
        found = self._join("allOf", [each for each in every if each is not _ANYTHING])
        self._parts[place] = found
        return found

    def _join(self, keyword: str, schemas: Sequence[JsonObject]) -> JsonObject:
        """One schema in place of several: of `anyOf` anything, where one of them is that.

        The same schemas give the same one, so that a value is not held against it again.
        """
        flat: dict[int, JsonObject] = {}
        for each in schemas:
            inner = each[keyword] if id(each) in self._joined_depth and keyword in each else [each]
            flat.update((id(one), one) for one in inner)
        distinct = list(flat.values())
        depth = 1 + max((self._joined_depth.get(one, 0) for one in flat), default=0)
        anything = keyword == "anyOf" and id(_ANYTHING) in flat
        if not distinct or anything or depth > _MAX_JOINED:
            return _ANYTHING
        if len(distinct) == 1:
            return distinct[0]
        key = (keyword, tuple(sorted(flat)))
        if key not in self._joined:
            self._joined[key] = {keyword: distinct}
            self._joined_depth[id(self._joined[key])] = depth
        return self._joined[key]

    def _likely(self, node: JsonObject, value: object) -> Sequence[JsonObject]:
        """The members of a union that a value may be meant as, by its type, keys and tags."""
        key = (id(node), id(value))
        if key not in self._meant:
            self._meant[key] = self._likely_of(node, value)
        return self._meant[key]

    def _likely_of(self, node: JsonObject, value: object) -> Sequence[JsonObject]:
        options = [each for each in members(node) if type_of(value) in self._allowed(each)]
        if not isinstance(value, dict):
            return options
        fields = cast("dict[str, Any]", value)
        return [each for each in options if self._has_its_tags(each, fields)] or options

    def _has_its_tags(self, option: JsonObject, fields: dict[str, Any]) -> bool:
        option = followed(self._root, option)
        if any(name not in fields for name in required_of(option)):
            return False
        named = properties_of(option)
        if option.get("additionalProperties") is False and fields.keys() - named.keys():
            return False
        for name, schema in named.items():
            values = constants(cast("JsonObject", schema)) if isinstance(schema, dict) else None
            if values is not None and name in fields and fields[name] not in values:
                return False
        return True


def _items(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, dict):
        yield from cast("dict[str, object]", value).items()
    elif isinstance(value, list):
        yield from enumerate(cast("list[object]", value))


def _own_parts(node: JsonObject, key: str | int) -> list[JsonObject]:
    """What a schema itself says of a part; nothing where that may be anything."""
    if isinstance(key, int):
        found: list[Any] = [item_schema(node, key)]
    else:
        patterns: Any = node.get("patternProperties")
        by_pattern = cast("dict[str, Any]", patterns) if isinstance(patterns, dict) else {}
        found = [each for pattern, each in by_pattern.items() if matches(pattern, key)]
        named = properties_of(node)
        found += [named[key]] if key in named else []
        found = found or [node.get("additionalProperties")]
    return [cast("JsonObject", each) for each in found if isinstance(each, dict) and each]
