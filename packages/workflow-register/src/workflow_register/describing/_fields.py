"""A JSON Schema in words: its fields, their types and what they may hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

import msgspec

from workflow_protocol import JsonObject

MAX_FIELDS = 200
MAX_DEPTH = 6
MAX_CHOICES = 12
MAX_VISITS = 20_000
"""Schemas that are looked at: unions of unions could multiply."""


class SchemaField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a value, for people."""

    path: str
    """Such as `phases[].title`; empty for a value that has no fields."""
    type: str
    """In words: `list of string`, `string or null`, `"yes" or "no"`."""
    required: bool
    """Whether it must be there."""
    rules: str = ""
    """What it may hold: `1 to 300 characters; default ""`."""
    description: str = ""
    """What its author says of it."""


def schema_fields(schema: JsonObject) -> list[SchemaField]:
    """The fields of a schema's values in their order, those of nested objects below their own.

    A schema that contains itself is followed once, and at most 200 fields are given, 6 levels deep.
    What JSON Schema has beyond types, fields and bounds, such as `if`, is left out.
    """
    return list(islice(_Reader(schema).fields(schema, "", required=True, above=()), MAX_FIELDS))


Schema = Mapping[str, object]
Refs = tuple[str, ...]
"""The references that led to a place. One that comes again closes a circle."""


class _Reader:
    """Reads the schemas of one document, whose references it follows."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._visits = 0

    def fields(
        self, schema: object, path: str, *, required: bool, above: Refs
    ) -> Iterator[SchemaField]:
        found, _ = self._resolve(schema)
        if path or not _properties(found):
            yield SchemaField(
                path=path,
                type=self.words(schema),
                required=required,
                rules="; ".join(_rules(found)),
                description=_text(_mapping(schema).get("description") or found.get("description")),
            )
        if path.count(".") >= MAX_DEPTH:
            return
        for part, suffix, refs in self._objects(schema, "", above):
            needed = _list(part.get("required"))
            for name, each in _properties(part).items():
                below = f"{path}{suffix}.{name}".removeprefix(".")
                yield from self.fields(each, below, required=name in needed, above=refs)

    def _objects(
        self, schema: object, suffix: str, above: Refs
    ) -> Iterator[tuple[Schema, str, Refs]]:
        """The objects with fields that a value is, holds as items, or may be as one of several."""
        found, refs = self._resolve(schema)
        self._visits += 1
        too_much = self._visits > MAX_VISITS or len(above) > 4 * MAX_DEPTH
        if too_much or set(refs) & set(above):
            return
        above = (*above, *refs, "")  # the empty one counts the levels
        if _properties(found):
            yield found, suffix, above
        yield from self._objects(found.get("items"), f"{suffix}[]", above)
        if isinstance(found.get("additionalProperties"), Mapping):
            yield from self._objects(found["additionalProperties"], f"{suffix}.*", above)
        for member in _members(found):
            yield from self._objects(member, suffix, above)

    def words(self, schema: object, depth: int = 0) -> str:
        """The type in words."""
        found, _ = self._resolve(schema)
        if schema is False:
            return "nothing"
        self._visits += 1
        if depth > MAX_DEPTH or self._visits > MAX_VISITS:
            return _text(found.get("title")) or "…"
        if "const" in found:
            return _json(found["const"])
        if choices := _list(found.get("enum")):
            return _either([_json(each) for each in choices])
        if members := _members(found):
            return _either([self.words(each, depth + 1) for each in members])
        kinds = found.get("type")
        names = _list(cast("object", kinds)) if isinstance(kinds, list) else [kinds]
        return _either([self._kind(name, found, depth) for name in names])

    def _kind(self, name: object, schema: Schema, depth: int) -> str:
        items, values = schema.get("items"), schema.get("additionalProperties")
        match name:
            case "array" if items is not None:
                return f"list of {self.words(items, depth + 1)}"
            case "array":
                parts = [self.words(each, depth + 1) for each in _list(schema.get("prefixItems"))]
                return f"[{', '.join(parts)}]" if parts else "list"
            case "object" if isinstance(values, Mapping) and not _properties(schema):
                return f"object of {self.words(cast('object', values), depth + 1)}"
            case "object":
                return _text(schema.get("title")) or "object"
            case None:
                return "object" if _properties(schema) else "anything"
            case _:
                return _text(name)

    def _resolve(self, schema: object) -> tuple[Schema, Refs]:
        """A schema without references in front; an empty one where they lead nowhere."""
        found, refs = _mapping(schema), list[str]()
        for _ in range(MAX_DEPTH):
            whole = _list(found.get("allOf"))
            if isinstance(ref := found.get("$ref"), str):
                refs.append(ref)
                found = _mapping(_at(self._document, ref))
            elif len(whole) == 1 and not _properties(found):
                found = {**_mapping(whole[0]), **{k: v for k, v in found.items() if k != "allOf"}}
            else:
                return found, tuple(refs)
        return {}, tuple(refs)


_RULES = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "entries"),
)


def _rules(schema: Schema) -> Iterator[str]:
    for low, high, unit in _RULES:
        if low in schema or high in schema:
            yield f"{_range(schema.get(low), schema.get(high))} {unit}"
    for key, sign in (
        ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"),
    ):  # fmt: skip
        if key in schema:
            yield f"{sign} {_json(schema[key])}"
    if "multipleOf" in schema:
        yield f"a multiple of {_json(schema['multipleOf'])}"
    if schema.get("uniqueItems") is True:
        yield "no item twice"
    for key in ("pattern", "format"):
        if key in schema:
            yield f"{key} {_text(schema[key])}"
    if "default" in schema:
        yield f"default {_json(schema['default'])}"


def _range(low: object, high: object) -> str:
    if low == high:
        return f"exactly {_json(low)}"
    if high is None:
        return f"at least {_json(low)}"
    return f"at most {_json(high)}" if low in {None, 0} else f"{_json(low)} to {_json(high)}"


def _members(schema: Schema) -> list[object]:
    return _list(schema.get("anyOf")) or _list(schema.get("oneOf"))


def _either(words: Sequence[str]) -> str:
    unique = list(dict.fromkeys(words))
    more = [f"{len(unique) - MAX_CHOICES} others"] if len(unique) > MAX_CHOICES else []
    return " or ".join([*unique[:MAX_CHOICES], *more])


def _properties(schema: Schema) -> Mapping[str, object]:
    return _mapping(schema.get("properties"))


def _at(document: JsonObject, ref: str) -> object:
    """What a reference inside the document leads to; `None` where that is nothing."""
    place: object = document
    if not ref.startswith("#"):
        return None
    for part in ref.removeprefix("#").strip("/").split("/") if ref != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        place = _mapping(place).get(key)
    return place


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
