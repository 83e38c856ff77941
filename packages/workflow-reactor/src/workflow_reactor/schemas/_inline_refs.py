"""Writes references out, for endpoints that know no `$ref`.

Breadth first: what stands near the root is written out before anything that is deeper. So the keys
of an object all have their schemas, and it is the inside of the inside that is cut.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import find_schema, map_schemas, types_of, walk

MAX_RECURSION = 3
"""So often may a definition stand inside itself; below that it is cut."""
MAX_SCHEMAS = 2_000
"""Where so many are written out, definitions inside of definitions are cut from there on."""
MAX_FIRST_SCHEMAS = 20_000
"""… and what the schema itself refers to, too."""
MAX_LEVELS = 30
"""So many definitions may be open; deeper than that they are cut."""

_DEFINITIONS = ("$defs", "definitions")
_NOTES = frozenset({"title", "description", "default", "examples", "deprecated"})
_LEADING = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor"}
)
"""Keywords that mean nothing once the definitions are gone."""
_OF_A_ROOT = frozenset({"$schema", "$id", "id"})
_ALONE = frozenset(
    {"$ref", "if", "then", "else", "contains", "minContains", "maxContains", "items"}
    | {"additionalProperties", "unevaluatedProperties", "properties", "patternProperties"}
    | {"prefixItems", "additionalItems", "unevaluatedItems"}
)
"""Keywords whose meaning depends on others beside them."""
_NARROWER_IF_WIDENED = (
    *("not", "if", "then", "else", "maxContains"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
"""There, nothing beside a reference counts."""


def inline_refs(schema: JsonObject) -> JsonObject:
    """The same schema with every definition in the place where it is referred to.

    A recursive definition is written out `MAX_RECURSION` times. Where it would come once more
    stands its type alone, with a description that says what belongs there:
    `{"type": "object", "description": "another Tree"}`; so it is where a schema grows too large.
    What is valid stays valid: where something was cut inside a `oneOf`, several members may fit, so
    that it becomes an `anyOf`; a `not` or `if` with something cut in it goes. A reference that
    can't be followed becomes a schema that allows anything.
    """
    return _Inliner(schema).inline()


class _Task(msgspec.Struct, frozen=True):
    """A schema to write out."""

    source: JsonObject
    written: JsonObject
    """Gets it."""
    open_refs: tuple[str, ...] = ()
    """The definitions that it stands in."""
    parents: tuple[Any, ...] = ()
    """The schema that it stands in and its parents, as a linked list: `(written, (…, …))`."""


class _Inliner:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._beside_counts = not any(each in str(root.get("$schema")) for each in _OLD_DRAFTS)
        self._count = 0
        self._sizes: dict[int, int] = {}
        self._cut: dict[int, JsonObject] = {}
        self._waiting: deque[_Task] = deque()

    def inline(self) -> JsonObject:
        whole: JsonObject = {}
        self._waiting.append(_Task(self._root, whole))
        while self._waiting:
            self._write(self._waiting.popleft())
        for written in self._cut.values():
            _widen(written)
        return whole

    def _write(self, task: _Task) -> None:
        ref = task.source.get("$ref")
        if isinstance(ref, str):
            self._write_target(task, ref)
            return
        if "$dynamicRef" in task.source or "$recursiveRef" in task.source:
            self._note_cut(task)
        parents = (task.written, task.parents)

        def below(source: JsonObject) -> JsonObject:
            written: JsonObject = {}
            self._waiting.append(_Task(source, written, task.open_refs, parents))
            return written

        self._count += 1
        task.written.update(map_schemas(_kept(task.source), below))

    def _write_target(self, task: _Task, ref: str) -> None:
        beside = _kept(task.source)
        if not self._beside_counts:
            beside = {key: each for key, each in beside.items() if key in _NOTES}
        target = find_schema(self._root, ref)
        if target is None or self._is_too_much(task.open_refs, ref, target):
            self._note_cut(task)
            stub = {} if target is None else _stub(ref, target)
            self._go_on(task, stub | beside, task.open_refs)
        elif set(beside) - _NOTES and set(beside) & (set(target) | _ALONE) - _NOTES:
            both: JsonObject = {"allOf": [{"$ref": ref}, beside]}
            self._go_on(task, both, task.open_refs)
        else:
            inner = {key: each for key, each in target.items() if key not in _OF_A_ROOT}
            self._go_on(task, {**inner, **beside}, (*task.open_refs, ref))

    def _go_on(self, task: _Task, source: JsonObject, open_refs: tuple[str, ...]) -> None:
        """Write another schema in the same place, before its turn: it is no deeper."""
        self._write(_Task(source, task.written, open_refs, task.parents))

    def _is_too_much(self, open_refs: tuple[str, ...], ref: str, target: JsonObject) -> bool:
        if id(target) not in self._sizes:
            self._sizes[id(target)] = sum(1 for _ in walk(target))
        limit = MAX_SCHEMAS if open_refs else MAX_FIRST_SCHEMAS
        return (
            open_refs.count(ref) > MAX_RECURSION
            or len(open_refs) > MAX_LEVELS
            or self._count + self._sizes[id(target)] > limit
        )

    def _note_cut(self, task: _Task) -> None:
        """Note that this schema allows more than it should, and so do those that it stands in."""
        step: tuple[Any, ...] = (task.written, task.parents)
        while step and id(step[0]) not in self._cut:
            self._cut[id(step[0])] = step[0]
            step = step[1]


def _kept(source: JsonObject) -> JsonObject:
    gone = {*_DEFINITIONS, *_LEADING}
    kept = {key: each for key, each in source.items() if key not in gone}
    if isinstance(kept.get("discriminator"), dict):  # of OpenAPI: its mapping is of references
        del kept["discriminator"]
    return kept


def _widen(written: JsonObject) -> None:
    """Take out what forbids more where something inside allows more."""
    for keyword in _NARROWER_IF_WIDENED:
        written.pop(keyword, None)
    if "oneOf" in written:
        either = written.pop("oneOf")
        if "anyOf" in written:
            written["allOf"] = [*written.get("allOf", ()), {"anyOf": either}]
        else:
            written["anyOf"] = either


def _stub(ref: str, target: JsonObject) -> JsonObject:
    name = ref.rpartition("/")[2].lstrip("#")
    stub: JsonObject = {"description": f"another {name or 'of the same'}"}
    types: list[Any] = types_of(target)
    return {"type": target["type"], **stub} if types else stub
