"""How much work pydantic has with a value, where its type is a union that contains itself.

It tries each member of a union on the value, and in each of them each member on what is inside: of
4 members and 12 levels that is 16 million, for 200 bytes. So the tries are counted before, each
value and schema once, and what is too much is refused. With a tag only one member is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from workflow_protocol.schemas._json_schema import JsonObject

MAX_TRIES = 200_000
"""Half a second (AMD EPYC, pydantic 2.14)."""


def has_nested_unions(schema: JsonObject) -> bool:
    """Whether a union without a tag has two members or more that refer to definitions."""
    return any(
        sum("$ref" in each for each in _members(node)) > 1 and "discriminator" not in node
        for node in _all_schemas(schema)
    )


def count_tries(schema: JsonObject, value: object) -> int:
    """How often a value, or anything in it, is tried as some schema."""
    return _Tries(schema).of(schema, value)


class _Tries:
    def __init__(self, root: JsonObject) -> None:
        self._definitions = cast("Mapping[str, Any]", root.get("$defs", {}))
        self._counts: dict[tuple[int, int], int] = {}

    def of(self, node: object, value: object) -> int:
        """Tries of one value. Schemas and values are known by identity: both stay alive."""
        if not isinstance(node, dict) or not isinstance(value, dict | list):
            return 1
        key = (id(cast("object", node)), id(cast("object", value)))
        if key not in self._counts:
            self._counts[key] = 1  # what leads back to itself
            self._counts[key] = self._count(cast("JsonObject", node), cast("object", value))
        return self._counts[key]

    def _count(self, node: JsonObject, value: object) -> int:
        ref = node.get("$ref")
        if isinstance(ref, str):
            return self.of(self._definitions.get(ref.rpartition("/")[2]), value)
        count = 1
        tries = [self.of(member, value) for member in _members(node)]
        if tries:
            count += max(tries) if "discriminator" in node else sum(tries)
        if isinstance(value, list):
            for item in cast("list[object]", value):
                count += self.of(node.get("items"), item)
        else:
            properties = cast("Mapping[str, Any]", node.get("properties", {}))
            for name, item in cast("dict[str, object]", value).items():
                count += self.of(properties.get(name, node.get("additionalProperties")), item)
        return count


def _members(node: JsonObject) -> Sequence[JsonObject]:
    return node.get("anyOf") or node.get("oneOf") or ()


def _all_schemas(node: object) -> Iterator[JsonObject]:
    """Each object of a schema; that some are no schemas does no harm here."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            fields = cast("JsonObject", each)
            yield fields
            waiting += fields.values()
        elif isinstance(each, list):
            waiting += cast("list[object]", each)
