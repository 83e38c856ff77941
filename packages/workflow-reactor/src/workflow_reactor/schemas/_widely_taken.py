"""Parameters of tools in the form that every endpoint takes.

OpenAI's and Anthropic's refuse the whole request for one tool whose root is a union (`anyOf`,
`oneOf`, `allOf`, `enum` or `not` at the top level). Folded into one object, a key takes the forms
that any alternative names for it; the local check keeps the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import followed, map_schemas, properties_of, types_of

MAX_FOLDED = 500
"""So many schemas are folded into one; what else a union names allows anything."""
MAX_OPEN = 40
"""So many may stand inside each other; what is deeper allows anything."""
_NOT_AT_THE_ROOT = frozenset(
    {"$ref", "allOf", "anyOf", "const", "else", "enum", "if", "not", "oneOf", "then"}
)


def widely_taken(schema: JsonObject) -> JsonObject:
    """Parameters whose root is a plain object, without lists of `items`."""
    whole = schema if _NOT_AT_THE_ROOT.isdisjoint(schema) else _Folder(schema).folded(schema)
    return _without_tuples(whole)


class _Folder:
    """Makes one object of unions: what must hold together is merged, alternatives are joined."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._open: list[JsonObject] = []
        self._left = MAX_FOLDED

    def folded(self, node: JsonObject) -> JsonObject:
        """The object; one that takes anything for a union that contains itself."""
        target = followed(self._root, node)
        is_deep = not self._left or len(self._open) >= MAX_OPEN
        if is_deep or any(each is target for each in self._open):
            return {"type": "object", "properties": {}, "required": []}
        self._left -= 1
        self._open.append(target)
        node = {**target, **{key: each for key, each in node.items() if key != "$ref"}}
        properties = properties_of(node).copy()
        required = dict.fromkeys(_names(node.get("required")))
        for part in self._members(node, "allOf"):
            properties = {**properties, **_without(properties_of(part), properties)}
            required |= dict.fromkeys(part["required"])
        for key in ("anyOf", "oneOf"):
            options = self._members(node, key)
            named = dict.fromkeys(name for each in options for name in properties_of(each))
            for name in _without(named, properties):
                properties[name] = _any_of(
                    [each for each in options if name in properties_of(each)], name
                )
            first, *others = [each["required"] for each in options] or [[]]
            required |= {name: None for name in first if all(name in each for each in others)}
        self._open.pop()
        kept = {key: value for key, value in node.items() if key not in _NOT_AT_THE_ROOT}
        return {**kept, "type": "object", "properties": properties, "required": list(required)}

    def _members(self, node: JsonObject, key: str) -> list[JsonObject]:
        """The members of a union that can be an object, folded themselves."""
        found: Any = node.get(key)
        listed = cast("list[Any]", found) if isinstance(found, list) else []
        schemas = [cast("JsonObject", each) for each in listed if isinstance(each, dict)]
        can_be = [each for each in schemas if "object" in self._types(each)]
        return [self.folded(each) for each in can_be]

    def _types(self, node: JsonObject) -> Sequence[str]:
        return types_of(followed(self._root, node)) or ["object"]


def _without(names: dict[str, Any], known: JsonObject) -> dict[str, Any]:
    return {name: each for name, each in names.items() if name not in known}


def _any_of(options: Sequence[JsonObject], name: str) -> Any:
    schemas = [properties_of(each)[name] for each in options]
    distinct = [each for index, each in enumerate(schemas) if each not in schemas[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _names(value: object) -> list[str]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str)]


def _without_tuples(node: JsonObject) -> JsonObject:
    """A schema whose `items` are one schema: drafts before 2020-12 have a list of them there."""
    node = map_schemas(node, _without_tuples)
    items: Any = node.get("items")
    if isinstance(items, list):
        node["items"] = {"anyOf": cast("list[Any]", items)} if items else {}
    return node
