"""The way back from strict mode: a null that stands for a key that isn't there.

In strict mode a model must write every key, and null for one that it would leave out: such a key
is dropped before anybody validates the value. Where the schema went out as it is, models write
`"limit": null` all the same; there a null is dropped only where the schema doesn't take it.

Which member of a union a value belongs to decides what is dropped. What can be seen at a glance
(types, constants, required keys) comes first, and no value is fitted to the same schema twice: so
the time is bounded by the size of the value times that of the schema, also for unions that contain
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor.schemas._edit_json import Edits, decode_value, edit_json
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

Look = Literal["outside", "as it is", "without nulls"]
"""How a value is fitted to a schema: by what shows without going into its objects and arrays; the
whole of it; the whole of it once the nulls that stand for absent keys are dropped."""


def drop_optional_nulls(schema: JsonObject, text: str, *, strict: bool = False) -> str:
    """The JSON text without the nulls that stand for absent keys; all else is kept as it is.

    A text without such nulls comes back as it is, and so does one that isn't JSON.

    Args:
        strict: the schema went out in its strict form. Each null of an optional key then means
            that it is absent, also where the key may be null.
    """
    if "null" not in text:
        return text
    try:
        value = decode_value(text)
        dropper = _NullDropper(schema, strict=strict)
        dropper.look_for_nulls(schema, value)
        return edit_json(text, value, dropper.found) if dropper.found else text
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return text


class _NullDropper:
    """Finds the nulls of one value. Schemas and values are known by identity: both stay alive."""

    def __init__(self, root: JsonObject, *, strict: bool) -> None:
        self._root = root
        self._strict = strict
        self.found: Edits = {}
        self._visited: set[tuple[int, int]] = set()
        self._fitted: dict[tuple[int, int, Look], bool] = {}
        self._nullable: dict[int, bool] = {}

    def look_for_nulls(self, node: JsonObject, value: Any) -> None:
        """Note the nulls to drop, in this value and in all below it."""
        key = (id(node), id(value))
        if key in self._visited or not isinstance(value, dict | list):
            return
        self._visited.add(key)
        for part in self._same_place(node):
            self.look_for_nulls(part, value)
        member = self._member_of(node, value)
        if member is not None:
            self.look_for_nulls(member, value)
        for below, item in self._below(node, value):
            self.look_for_nulls(below, item)

    def _same_place(self, node: JsonObject) -> list[JsonObject]:
        """The schemas that hold for the same value: what is referred to, and all of `allOf`."""
        parts = all_of(node)
        ref = node.get("$ref")
        target = find_schema(self._root, ref) if isinstance(ref, str) else None
        return parts if target is None else [*parts, target]

    def _member_of(self, node: JsonObject, value: Any) -> JsonObject | None:
        """The member of a union that the value belongs to, if it fits any."""
        options = members(node)
        likely = [each for each in options if self._fits(each, value, "outside")]
        if self._strict and isinstance(value, dict):  # then all keys are there, and no others
            written = cast("dict[str, Any]", value).keys()
            likely = [each for each in likely if self._keys_of(each) == written] or likely
        if len(likely) == 1:
            return likely[0]
        looks: tuple[Look, ...] = ("as it is", "without nulls")
        fitting = (each for look in looks for each in likely if self._fits(each, value, look))
        return next(fitting, None)

    def _keys_of(self, option: JsonObject) -> set[str]:
        option = followed(self._root, option)
        return {name for each in (option, *all_of(option)) for name in properties_of(each)}

    def _below(self, node: JsonObject, value: Any) -> Iterator[tuple[JsonObject, Any]]:
        """The values in an object or array with their schemas; notes what is to be dropped."""
        if isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)):
                yield item_schema(node, index), item
            return
        fields = cast("dict[str, Any]", value)
        for name, item in fields.items():
            if item is None and self._is_absent(node, name):
                self.found[id(fields), name] = None
            else:
                yield _property_schema(node, name), item

    def _is_absent(self, node: JsonObject, name: str) -> bool:
        """Whether a null under this name can only mean that the key isn't there."""
        return (
            name in properties_of(node)
            and name not in required_of(node)
            and (self._strict or not self._takes_null(_property_schema(node, name)))
        )

    def _takes_null(self, node: JsonObject) -> bool:
        """Whether null fits a schema, by what shows in its types, constants and unions."""
        known = self._nullable.get(id(node))
        if known is None:
            self._nullable[id(node)] = True  # a schema that contains itself adds nothing to it
            known = self._nullable[id(node)] = (
                _allows(node, None)
                and (not members(node) or any(map(self._takes_null, members(node))))
                and all(map(self._takes_null, self._same_place(node)))
            )
        return known

    def _fits(self, node: JsonObject, value: Any, look: Look) -> bool:
        """Whether a value has the shape of a schema, as far as it tells members of unions apart."""
        key = (id(node), id(value), look)
        known = self._fitted.get(key)
        if known is None:
            self._fitted[key] = False  # what only leads back to itself fits nothing
            known = self._fitted[key] = (
                _allows(node, value)
                and self._has_its_keys(node, value, look)
                and self._fits_parts(node, value, look)
                and (look == "outside" or self._fits_below(node, value, look))
            )
        return known

    def _fits_parts(self, node: JsonObject, value: Any, look: Look) -> bool:
        for part in self._same_place(node):
            if not self._fits(part, value, look):
                return False
        options = members(node)
        for option in options:
            if self._fits(option, value, look):
                return True
        return not options

    def _has_its_keys(self, node: JsonObject, value: Any, look: Look) -> bool:
        """The required keys are there, no unknown one is, and what is no container fits."""
        if not isinstance(value, dict):
            return True
        fields = cast("dict[str, Any]", value)
        if any(name not in fields for name in required_of(node)):
            return False
        if node.get("additionalProperties") is False and fields.keys() - properties_of(node).keys():
            return False
        for name, item in fields.items():
            if isinstance(item, dict | list) or (
                item is None and look != "as it is" and self._is_absent(node, name)
            ):
                continue
            if not self._fits(_property_schema(node, name), item, look):
                return False
        return True

    def _fits_below(self, node: JsonObject, value: Any, look: Look) -> bool:
        if isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)):
                if not self._fits(item_schema(node, index), item, look):
                    return False
        elif isinstance(value, dict):
            for name, item in cast("dict[str, Any]", value).items():
                if isinstance(item, dict | list) and not self._fits(
                    _property_schema(node, name), item, look
                ):
                    return False
        return True


_ANYTHING: JsonObject = {}


def _property_schema(node: JsonObject, name: str) -> JsonObject:
    found: Any = properties_of(node).get(name, node.get("additionalProperties"))
    return cast("JsonObject", found) if isinstance(found, dict) else _ANYTHING


def _allows(node: JsonObject, value: Any) -> bool:
    """Whether a schema's own types and constants let a value be."""
    values = constants(node)
    if values is not None and not _is_one_of(value, values):
        return False
    types, kind = types_of(node), type_of(value)
    return not types or kind in types or (kind == "integer" and "number" in types)


def _is_one_of(value: Any, values: Sequence[Any]) -> bool:
    return any(type(each) is type(value) and each == value for each in values)
