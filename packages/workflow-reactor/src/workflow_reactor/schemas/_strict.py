"""JSON Schemas in the subset that strict structured outputs hold a model to.

The rules are those of OpenAI's guide "Structured model outputs", section "Supported schemas"
(https://platform.openai.com/docs/guides/structured-outputs#supported-schemas; its subset and limits
as of 2026-02 are also at https://jsonschemaprofiles.unitvectorylabs.com/schemas/openai):

- the root is an object and no `anyOf`; types are string, number, boolean, integer, object, array,
  enum and anyOf; definitions and recursion are fine;
- every object lists all its keys as required and has `additionalProperties: false`; an optional
  key becomes a nullable one;
- of the other keywords there are `pattern` and `format` (nine of them), the five of numbers,
  `minItems` and `maxItems`;
- 5,000 properties, 10 levels of objects, 1,000 enum values, 120,000 characters of names and
  values, 15,000 in an enum of more than 250.

What only narrows (`minLength`, `not` …) is dropped, since the value is validated here afterwards.
What would forbid a valid value (open objects, tuples, "anything") can't be said: `NotExpressible`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import (
    all_of,
    constants,
    find_schema,
    map_schemas,
    members,
    properties_of,
    required_of,
    type_of,
    types_of,
    walk,
)

MAX_PROPERTIES, MAX_LEVELS, MAX_ENUM_VALUES = 5_000, 10, 1_000
MAX_CHARS, LONG_ENUM, MAX_LONG_ENUM_CHARS = 120_000, 250, 15_000

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_NUMBERS = ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_LOOKAROUND = re.compile(r"\(\?[^:]|\\[1-9]")  # no automaton can do these, so no grammar has them
_WIDENING = ("if", "then", "else", "dependentSchemas", "patternProperties", "prefixItems")
_ANNOTATIONS = ("title", "description")


class NotExpressible(ValueError):
    """A schema that has no strict form; the message says what in it."""


def to_strict(schema: JsonObject) -> JsonObject:
    """The strict form of a tool's or reply's schema.

    Each value that fits `schema` also fits the strict form, once its absent keys are given as null.

    Raises:
        NotExpressible: there is none.
    """
    try:
        strict = _Strict(_with_defs(schema)).whole()
        _check_limits(strict)
    except RecursionError:
        raise NotExpressible("its definitions lead too far from one to the next") from None
    return strict


def _with_defs(schema: JsonObject) -> JsonObject:
    """Older drafts say `definitions`, which strict mode doesn't know."""
    if not isinstance(schema.get("definitions"), dict) or "$defs" in schema:
        return schema

    def renamed(node: JsonObject) -> JsonObject:
        node = map_schemas(node, renamed)
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/definitions/"):
            node["$ref"] = "#/$defs/" + ref.removeprefix("#/definitions/")
        return node

    whole = renamed(schema)
    whole["$defs"] = whole.pop("definitions")
    return whole


class _Strict:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._wanted: list[str] = []

    def whole(self) -> JsonObject:
        if "$ref" in self._root:
            raise NotExpressible("the root is a reference")
        strict = self.node({key: each for key, each in self._root.items() if key != "$defs"})
        if strict.get("type") != "object":
            raise NotExpressible("the root is not one object")
        definitions: JsonObject = {}
        for ref in self._wanted:  # grows while it is read
            name = ref.removeprefix("#/$defs/")
            if ref != "#" and name not in definitions:
                target = find_schema(self._root, ref)
                if target is None:
                    raise NotExpressible(f"{ref!r} leads nowhere")
                definitions[name] = self.node(target)
        return {**strict, "$defs": definitions} if definitions else strict

    def node(self, node: JsonObject) -> JsonObject:
        """One schema and all below it."""
        notes = {key: node[key] for key in _ANNOTATIONS if isinstance(node.get(key), str)}
        if "$ref" in node:
            return self._reference(node)
        if "allOf" in node:
            return self._merged(node)
        for keyword in _WIDENING:
            if keyword in node:
                raise NotExpressible(f"{keyword!r} has no strict form")
        values = constants(node)
        if values is not None:
            return {**notes, **_constants(values)}
        if options := members(node):
            return {**notes, **self._union(node, options)}
        types = types_of(node)
        nullable = "null" in types
        rest = [each for each in types if each != "null"]
        if len(rest) > 1:
            each_type = [{**_without_annotations(node), "type": each} for each in types]
            return {**notes, "anyOf": [self.node(each) for each in each_type]}
        if not types:
            if "properties" not in node:
                raise NotExpressible("a value of any type has no strict form")
            rest = ["object"]
        if not rest:
            return {**notes, "type": "null"}
        typed = {**notes, **self._typed(rest[0], node)}
        return _nullable(typed) if nullable else typed

    def _reference(self, node: JsonObject) -> JsonObject:
        """A reference stands alone; a description beside it would be refused."""
        ref = str(node["$ref"])
        if ref != "#" and not re.fullmatch(r"#/\$defs/[^/]+", ref):
            raise NotExpressible(f"the reference {ref!r} is none to a definition")
        if set(node) - {"$ref", "default", "deprecated", "examples", *_ANNOTATIONS}:
            raise NotExpressible("a reference with more rules beside it has no strict form")
        self._wanted.append(ref)
        return {"$ref": ref}

    def _merged(self, node: JsonObject) -> JsonObject:
        parts = all_of(node)
        beside = {key: value for key, value in node.items() if key != "allOf"}
        if len(parts) == 1 and len(cast("list[Any]", node["allOf"])) == 1:
            (part,) = parts
            if not set(part) & set(beside) - {"default", *_ANNOTATIONS}:
                return self.node({**part, **beside})
        raise NotExpressible("'allOf' has no strict form")

    def _union(self, node: JsonObject, options: Sequence[JsonObject]) -> JsonObject:
        if "properties" in node or len(options) != len(node.get("anyOf") or node["oneOf"]):
            raise NotExpressible("a union with more rules beside it has no strict form")
        return {"anyOf": [self.node(option) for option in options]}

    def _typed(self, type_: str, node: JsonObject) -> JsonObject:
        match type_:
            case "object":
                return self._object(node)
            case "array":
                items = node.get("items")
                if not isinstance(items, dict) or not items:
                    raise NotExpressible("an array of anything has no strict form")
                kept = {key: node[key] for key in ("minItems", "maxItems") if key in node}
                return {"type": "array", "items": self.node(cast("JsonObject", items)), **kept}
            case "string":
                return {"type": "string", **_string_keywords(node)}
            case "number" | "integer":
                kept = {key: node[key] for key in _NUMBERS if type_of(node.get(key)) in _NUMERIC}
                return {"type": type_, **kept}
            case "boolean":
                return {"type": "boolean"}
            case _:
                raise NotExpressible(f"there is no type {type_!r}")

    def _object(self, node: JsonObject) -> JsonObject:
        extra = node.get("additionalProperties", node.get("unevaluatedProperties", False))
        if "properties" not in node or extra is not False:
            raise NotExpressible("an object with any keys has no strict form")
        properties = properties_of(node)
        required = required_of(node)
        if set(required) - set(properties):
            raise NotExpressible("a required key that isn't described has no strict form")
        strict: JsonObject = {}
        for name, below in properties.items():
            if not isinstance(below, dict):
                raise NotExpressible("a value of any type has no strict form")
            each = self.node(cast("JsonObject", below))
            strict[name] = each if name in required else _nullable(each)
        return {
            "type": "object",
            "properties": strict,
            "required": list(properties),
            "additionalProperties": False,
        }


_NUMERIC = frozenset({"integer", "number"})


def _without_annotations(node: JsonObject) -> JsonObject:
    return {key: value for key, value in node.items() if key not in _ANNOTATIONS}


def _constants(values: Sequence[Any]) -> JsonObject:
    by_type: dict[str, list[Any]] = {}
    for value in values:
        by_type.setdefault(type_of(value), []).append(value)
    if not by_type or by_type.keys() & {"object", "array"}:
        raise NotExpressible("constants that are no scalars have no strict form")
    forms: list[JsonObject] = [
        {"type": "null"} if each == "null" else {"type": each, "enum": same}
        for each, same in by_type.items()
    ]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _nullable(node: JsonObject) -> JsonObject:
    """The same schema or null; descriptions stay on top, where models look for them."""
    if node.get("type") == "null":
        return node
    if "anyOf" in node:
        if {"type": "null"} in node["anyOf"]:
            return node
        return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
    if isinstance(node.get("type"), str) and node["type"] != "object" and "enum" not in node:
        return {**node, "type": [node["type"], "null"]}
    if isinstance(node.get("type"), list):
        return node
    notes = {key: node[key] for key in _ANNOTATIONS if key in node}
    return {**notes, "anyOf": [_without_annotations(node), {"type": "null"}]}


def _string_keywords(node: JsonObject) -> JsonObject:
    kept: JsonObject = {}
    if isinstance(node.get("format"), str) and node["format"] in _FORMATS:
        kept["format"] = node["format"]
    pattern = node.get("pattern")
    if isinstance(pattern, str) and not _LOOKAROUND.search(pattern):
        kept["pattern"] = pattern
    return kept


def _check_limits(strict: JsonObject) -> None:
    schemas = list(walk(strict))
    names = [name for each in schemas for name in properties_of(each)]
    enums = [cast("list[Any]", each["enum"]) for each in schemas if "enum" in each]
    chars = sum(map(len, [*names, *strict.get("$defs", {})])) + sum(map(_chars, enums))
    if len(names) > MAX_PROPERTIES:
        raise NotExpressible(f"{len(names)} properties are too many for strict mode")
    if sum(map(len, enums)) > MAX_ENUM_VALUES:
        raise NotExpressible("there are too many enum values for strict mode")
    if chars > MAX_CHARS or any(
        len(each) > LONG_ENUM and _chars(each) > MAX_LONG_ENUM_CHARS for each in enums
    ):
        raise NotExpressible("its names and values are too long for strict mode")
    if _object_levels(strict, strict, {"#": 0}) > MAX_LEVELS:
        raise NotExpressible(f"objects nest deeper than {MAX_LEVELS} levels")


def _chars(values: Sequence[Any]) -> int:
    return sum(len(str(value)) for value in values)


def _object_levels(root: JsonObject, node: JsonObject, known: dict[str, int]) -> int:
    """How deep objects nest. A definition inside itself adds nothing: it may recur for ever."""
    ref = node.get("$ref")
    if isinstance(ref, str):
        if ref not in known:
            known[ref] = 0
            known[ref] = _object_levels(root, find_schema(root, ref) or {}, known)
        return known[ref]
    below = [0]

    def note(item: JsonObject) -> JsonObject:
        below.append(_object_levels(root, item, known))
        return item

    map_schemas({key: value for key, value in node.items() if key != "$defs"}, note)
    return max(below) + (node.get("type") == "object")
