"""Writes references out, for endpoints that know no `$ref`."""

from __future__ import annotations

from typing import Any

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import find_schema, map_schemas, types_of

MAX_RECURSION = 3
"""So often may a definition stand inside itself; below that it is cut."""
MAX_SCHEMAS = 2_000
"""A schema that grows beyond this is cut everywhere from there on."""
MAX_LEVELS = 30
"""Deeper than so many schemas no definition is written out."""

_DEFINITIONS = ("$defs", "definitions")


def inline_refs(schema: JsonObject) -> JsonObject:
    """The same schema with every definition in the place where it is referred to.

    A recursive definition is written out `MAX_RECURSION` times. Where it would come once more
    stands its type alone, with a description that says what belongs there:
    `{"type": "object", "description": "another Tree"}`. So nothing that is valid becomes invalid.
    A reference that can't be followed becomes a schema that allows anything.
    """
    return _Inliner(schema).inline(schema, (), 0)


class _Inliner:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._count = 0

    def inline(self, node: JsonObject, open_refs: tuple[str, ...], level: int) -> JsonObject:
        self._count += 1
        ref = node.get("$ref")
        if isinstance(ref, str):
            return self._target(ref, node, open_refs, level)
        kept = {key: value for key, value in node.items() if key not in _DEFINITIONS}
        return map_schemas(kept, lambda below: self.inline(below, open_refs, level + 1))

    def _target(
        self, ref: str, node: JsonObject, open_refs: tuple[str, ...], level: int
    ) -> JsonObject:
        beside = {key: value for key, value in node.items() if key not in {"$ref", *_DEFINITIONS}}
        target = find_schema(self._root, ref)
        if target is None:
            return beside
        recurs = open_refs.count(ref) > MAX_RECURSION
        if recurs or level > MAX_LEVELS or self._count > MAX_SCHEMAS:
            return _stub(ref, target) | beside
        if set(beside) & set(target) - {"title", "description", "default", "examples"}:
            # Both must hold, and a plain merge would drop one.
            both = [self.inline(each, (*open_refs, ref), level + 1) for each in (target, beside)]
            return {"allOf": both}
        return self.inline({**target, **beside}, (*open_refs, ref), level + 1)


def _stub(ref: str, target: JsonObject) -> JsonObject:
    stub: JsonObject = {"description": f"another {ref.rpartition('/')[2] or 'of the same'}"}
    types: list[Any] = types_of(target)
    return {"type": target["type"], **stub} if types else stub
