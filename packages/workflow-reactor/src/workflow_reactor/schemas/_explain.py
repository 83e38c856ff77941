"""Says what is wrong with a value that doesn't fit a schema, level by level.

For each schema there is an outline: what it demands of a value itself, with nothing of what it
demands of the parts of it. The validator tells what breaks an outline; then it is the turn of the
parts. No value is held against the same schema twice, so the work is bounded by the size of the
value times that of the schema, also for unions that contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from workflow_protocol import Fault, JsonObject
from workflow_reactor.schemas._misfits import SEVERAL, faults_of
from workflow_reactor.schemas._walk import (
    all_of,
    find_schema,
    item_schema,
    members,
    properties_of,
)

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_FAULTS = 100
"""More than a model is told at once."""
_MAX_OUTLINE = 1_000

_PARTS = (
    *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"),
    *("items", "prefixItems", "additionalItems", "unevaluatedItems"),
)
_TELLING = ("const", "enum", "type")
"""Of a property's schema these are in the outline: they tell the members of a union apart."""
_WHOLE = ("not", "if", "then", "else", "contains", "propertyNames", "dependentSchemas")
"""These can't be outlined: they stay as they are, and go where they refer to something."""
_NOT_HERE = ("$defs", "definitions", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")


class Explainer:
    """Explains misfits of one schema.

    Args:
        schema: what values are held against.
        compile: makes a validator of an outline.
    """

    def __init__(self, schema: JsonObject, compile: Callable[[JsonObject], Validator]) -> None:
        self.root = schema
        self._compile = compile
        self._validators: dict[int, Validator | None] = {}

    def faults(self, value: object) -> list[Fault]:
        """What is wrong with a value that doesn't fit: one fault or more."""
        found = dict.fromkeys(_Explanation(self).of_value(self.root, value))
        return list(found)[:MAX_FAULTS] or [Fault("$", "does not fit")]

    def faults_here(self, node: JsonObject, value: object) -> list[Fault]:
        """What is wrong with the value itself."""
        if id(node) not in self._validators:
            try:
                self._validators[id(node)] = self._compile(self._outline_of(node))
            except Exception:  # noqa: BLE001 - any of the library's: then this level is not explained
                self._validators[id(node)] = None
        validator = self._validators[id(node)]
        if validator is None or validator.is_valid(value):
            return []
        errors = validator.iter_errors(value)
        return list(dict.fromkeys(fault for error in errors for fault in faults_of(error)))

    def _outline_of(self, node: JsonObject) -> JsonObject:
        outline = _Outline(self.root).of(node)
        draft = self.root.get("$schema")
        return {"$schema": draft, **outline} if isinstance(draft, str) else outline


class _Outline:
    """Makes the outline of a schema: references to the same value are written out."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._open: list[str] = []
        self._count = 0

    def of(self, node: object) -> JsonObject:
        """The outline of one schema. `true` is the empty one, which all drafts know."""
        self._count += 1
        if node is False:
            return {"not": {}}
        if not isinstance(node, dict) or self._count > _MAX_OUTLINE:
            return {}
        fields = cast("JsonObject", node)
        outline = {key: self._kept(key, fields[key]) for key in fields if key not in _NOT_HERE}
        outline = {key: value for key, value in outline.items() if value is not None}
        if "if" not in outline:
            outline.pop("then", None)
            outline.pop("else", None)
        if "oneOf" in outline:  # two outlines may both fit where the whole schemas don't
            either: JsonObject = {"anyOf": outline.pop("oneOf")}
            outline["allOf"] = [*outline.get("allOf", ()), either]
        if len(outline) < len(
            fields.keys() - set(_NOT_HERE)
        ):  # what counts as evaluated is unclear
            outline.pop("unevaluatedProperties", None)
            outline.pop("unevaluatedItems", None)
        ref = fields.get("$ref")
        return self._with_target(ref, outline) if isinstance(ref, str) else outline

    def _kept(self, key: str, value: Any) -> Any:
        if key in ("$ref", "$dynamicRef", "$recursiveRef", "$schema", "dependencies"):
            return None
        if key in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
            return [self.of(each) for each in cast("list[Any]", value)]
        if key in ("properties", "patternProperties") and isinstance(value, dict):
            return {name: _property(each) for name, each in cast("JsonObject", value).items()}
        if key in _PARTS:
            listed = cast("list[Any]", value) if isinstance(value, list) else None
            return _part(value) if listed is None else [_part(each) for each in listed]
        return None if key in _WHOLE and _refers(value) else value

    def _with_target(self, ref: str, outline: JsonObject) -> JsonObject:
        target = find_schema(self._root, ref)
        if target is None or ref in self._open:
            return outline
        self._open.append(ref)
        both = [self.of(target), outline]
        self._open.pop()
        return {"allOf": both} if outline else both[0]


def _part(schema: Any) -> Any:
    """What stands for the schema of a part: nothing is demanded, unless nothing is allowed."""
    return False if schema is False else {}


def _property(schema: Any) -> Any:
    if not isinstance(schema, dict) or "$ref" in schema:
        return _part(schema)
    fields = cast("JsonObject", schema)
    return {key: fields[key] for key in _TELLING if key in fields}


def _refers(value: object) -> bool:
    if isinstance(value, dict):
        fields = cast("JsonObject", value)
        return any("ref" in key.lower() or _refers(each) for key, each in fields.items())
    return isinstance(value, list) and any(map(_refers, cast("list[object]", value)))


class _Explanation:
    """One value's faults. Values and schemas are known by identity: both stay alive."""

    def __init__(self, explainer: Explainer) -> None:
        self._explainer = explainer
        self._here: dict[tuple[int, int], list[Fault]] = {}
        self._inside: dict[tuple[int, int], list[Fault]] = {}

    def of_value(self, node: JsonObject, value: object) -> list[Fault]:
        """What is wrong with a value and with what is in it; places count from the value."""
        return [*self._of_itself(node, value), *self._of_parts(node, value)]

    def _of_itself(self, node: JsonObject, value: object) -> list[Fault]:
        key = (id(node), id(value))
        if key not in self._here:
            self._here[key] = self._explainer.faults_here(node, value)
        return self._here[key]

    def _of_parts(self, node: JsonObject, value: object) -> list[Fault]:
        key = (id(node), id(value))
        known = self._inside.get(key)
        if known is not None:
            return known
        self._inside[key] = []  # what leads back to itself adds nothing
        found: list[Fault] = []
        ref = node.get("$ref")
        target = find_schema(self._explainer.root, ref) if isinstance(ref, str) else None
        for part in [*all_of(node), *([] if target is None else [target])]:
            found += self._of_parts(part, value)
        found += self._of_union(node, value)
        for step, below, item in _parts(node, value):
            if len(found) >= MAX_FAULTS:
                break
            inner = self.of_value(below, item)
            found += [Fault(f"${step}{each.place[1:]}", each.message) for each in inner]
        self._inside[key] = list(dict.fromkeys(found))[:MAX_FAULTS]
        return self._inside[key]

    def _of_union(self, node: JsonObject, value: object) -> list[Fault]:
        """The faults of the member that comes nearest. Where none is outlined, that was said."""
        near = [each for each in members(node) if not self._of_itself(each, value)]
        inside = [self._of_parts(each, value) for each in near]
        fitting = sum(not faults for faults in inside)
        if fitting > 1 and "anyOf" not in node:
            return [Fault("$", SEVERAL)]
        return [] if fitting or not inside else min(inside, key=len)


def _parts(node: JsonObject, value: object) -> Iterator[tuple[str, JsonObject, object]]:
    """What is in an object or array: its step in a path, its schema, itself."""
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield f"[{index}]", item_schema(node, index), item
    elif isinstance(value, dict):
        named, others = properties_of(node), node.get("additionalProperties")
        for name, item in cast("dict[str, object]", value).items():
            schema: Any = named.get(name, None if "patternProperties" in node else others)
            if isinstance(schema, dict):
                yield f".{name}", cast("JsonObject", schema), item
