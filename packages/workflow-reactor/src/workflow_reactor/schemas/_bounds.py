"""Which schemas are too much work: refused when a tool is made, since many come from servers.

A schema may be small and still mean an endless check: `A0` all of `A1` and `A1`, `A1` all of `A2`
and `A2` … forty times is a trillion schemas for one value. So the ways through a schema are
counted, each definition once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from workflow_protocol import JsonObject
from workflow_reactor._json import is_deep
from workflow_reactor.schemas._walk import find_schema, walk

MAX_SCHEMA_BYTES = 1 << 20
"""The largest that tools in use bring have some 100 kB."""
MAX_SCHEMA_DEPTH = 100
MAX_SCHEMA_PATHS = 100_000
"""So often may a schema be applied to one value and what is in it, along any one path."""
MAX_REF_CHAIN = 1_000
"""So many definitions may lead from one to the next."""

_SAME_VALUE = (
    *("allOf", "anyOf", "oneOf", "if", "then", "else", "not"),
    *("dependentSchemas", "dependencies"),
)
_ONE_OF_MANY = ("properties", "prefixItems")
_EACH = (
    *("items", "additionalItems", "contains", "unevaluatedItems"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_NAMED = frozenset({"dependentSchemas", "dependencies", "properties", "patternProperties"})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAX_SAME_NAMES = 16  # there should be one


class BadJsonSchema(ValueError):
    """This is no JSON Schema that can be used; the message says where and why."""


def is_plainly_bounded(encoded: bytes) -> bool:
    """Whether a schema as JSON is so plain that `refuse_unbounded` need not look at it."""
    if encoded.count(b"{") + encoded.count(b"[") > MAX_SCHEMA_DEPTH:
        return False
    return not any(word in encoded for word in (b"ref", b"Ref", b"unevaluated"))


def refuse_unbounded(schema: JsonObject, size_bytes: int) -> None:
    """Refuse a schema that takes too long to walk through, or whose check would never end.

    Args:
        size_bytes: how large it is as JSON.

    Raises:
        BadJsonSchema: it does.
    """
    if size_bytes > MAX_SCHEMA_BYTES:
        raise BadJsonSchema(f"it has {size_bytes} bytes; {MAX_SCHEMA_BYTES} are allowed")
    if is_deep(schema, MAX_SCHEMA_DEPTH):
        raise BadJsonSchema(f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels")
    _PathCount(schema).refuse_too_many()


class _PathCount:
    """Counts the ways through a schema, from the definitions that lead nowhere upwards."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._counts: dict[int, int] = {}
        self._named: dict[str, list[JsonObject]] = {}
        for node in walk(root):
            for key in ("$id", "id", "$anchor", "$dynamicAnchor"):
                name = node.get(key)
                if isinstance(name, str):
                    same = self._named.setdefault(_last(name), [])
                    same += [node] * (len(same) < _MAX_SAME_NAMES)

    def refuse_too_many(self) -> None:
        """Count depth first, without the interpreter's stack: definitions may lead far."""
        begun = {id(self._root)}
        path = [(self._root, iter(self._below(self._root)))]
        while path:
            node, below = path[-1]
            inner = next((each for each in below if id(each) not in begun), None)
            if inner is not None:
                begun.add(id(inner))
                path.append((inner, iter(self._below(inner))))
                if len(path) > MAX_REF_CHAIN:
                    raise BadJsonSchema(
                        f"more than {MAX_REF_CHAIN} of its schemas lead from one to the next"
                    )
                continue
            path.pop()
            count = self._counts[id(node)] = self._count(node)
            if count > MAX_SCHEMA_PATHS:
                raise BadJsonSchema(
                    f"its references multiply to more than {MAX_SCHEMA_PATHS} schemas for a value"
                )

    def _below(self, node: JsonObject) -> list[JsonObject]:
        return [*self._for_the_same_value(node), *_in(node, *_ONE_OF_MANY, *_EACH)]

    def _count(self, node: JsonObject) -> int:
        """All that hold for the value itself, and for the part of it that the most hold for."""
        same = sum(map(self._counted, self._for_the_same_value(node)))
        looks_twice = "unevaluatedProperties" in node or "unevaluatedItems" in node
        one = max(map(self._counted, _in(node, *_ONE_OF_MANY)), default=0)
        each = sum(map(self._counted, _in(node, *_EACH)))
        return 1 + same * (1 + looks_twice) + one + each

    def _counted(self, node: JsonObject) -> int:
        """The ways through a schema. One that contains itself adds nothing by that: the validator
        keeps what it found out about a value and a definition that recurs."""
        return self._counts.get(id(node), 0)

    def _for_the_same_value(self, node: JsonObject) -> list[JsonObject]:
        refs = [ref for key in _REFERENCES if isinstance(ref := node.get(key), str)]
        targets = [each for ref in refs for each in self._targets(ref)]
        return [*_in(node, *_SAME_VALUE), *targets]

    def _targets(self, ref: str) -> list[JsonObject]:
        """Where a reference may lead: a name counts wherever it stands in the schema."""
        document, _, place = ref.partition("#")
        bases = [self._root] if not document else self._named.get(_last(document), [])
        if place and not place.startswith("/"):
            return self._named.get(place, [])
        found = (find_schema(base, f"#{place}") for base in bases)
        return [each for each in found if each is not None]


def _last(name: str) -> str:
    """The last part of an address, by which it is referred to from beside it."""
    return name.rstrip("#/").rpartition("/")[2].removeprefix("#")


def _in(node: JsonObject, *keywords: str) -> Iterator[JsonObject]:
    """The schemas right below some keywords, whether these hold one, a list or names."""
    for keyword in keywords:
        value: Any = node.get(keyword)
        if keyword in _NAMED and isinstance(value, dict):
            value = list(cast("JsonObject", value).values())
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield cast("JsonObject", each)
