"""Schemas as an endpoint takes them: by its profile, computed once for each schema."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor._provider import Profile
from workflow_reactor.schemas._inline_refs import inline_refs
from workflow_reactor.schemas._strict import NotExpressible, to_strict
from workflow_reactor.schemas._walk import constants, followed, members, properties_of, required_of
from workflow_reactor.schemas._widely_taken import widely_taken

_encode = msgspec.json.Encoder().encode


class SentSchema(NamedTuple):
    """A schema as it goes out."""

    schema: JsonObject
    strict: bool
    """The endpoint is asked to hold the model to it."""
    why_lax: str = ""
    """What in it has no strict form, where that was asked for."""


def schema_to_send(schema: JsonObject, profile: Profile, *, reply: bool = False) -> SentSchema:
    """Fit a schema to what an endpoint takes. Whatever is valid stays valid.

    Args:
        reply: it is for `response_format`, where some endpoints take a union as the root. Tool
            parameters are an object everywhere.
    """
    join = reply and not profile.union_at_root
    if not reply:
        schema = widely_taken(schema)
    if profile.refs and not profile.strict_schemas and not (join and members(schema)):
        return SentSchema(schema, strict=False)
    return _sent(_encode(schema), profile.strict_schemas, profile.refs, join)


@functools.lru_cache(maxsize=512)
def _sent(encoded: bytes, strict: bool, refs: bool, join: bool) -> SentSchema:
    schema: JsonObject = msgspec.json.decode(encoded)
    if join and members(schema):
        schema = join_members(schema)
    if not refs:
        schema = inline_refs(schema)
    if not strict:
        return SentSchema(schema, strict=False)
    try:
        return SentSchema(to_strict(schema), strict=True)
    except NotExpressible as error:
        return SentSchema(schema, strict=False, why_lax=str(error))


def join_members(schema: JsonObject) -> JsonObject:
    """One object in place of a union of objects: each key takes what any member lets it be.

    It allows more than the union does, which is validated afterwards. A union with a member that
    is no object stays as it is.
    """
    options = [followed(schema, option) for option in members(schema)]
    if not options or any(option.get("type") != "object" for option in options):
        return schema
    names = list(dict.fromkeys(name for option in options for name in properties_of(option)))
    required = [n for n in names if all(n in required_of(option) for option in options)]
    joined: JsonObject = {
        "type": "object",
        "properties": {name: _any_of(_distinct(options, name)) for name in names},
        "required": required,
    }
    if all(option.get("additionalProperties") is False for option in options):
        joined["additionalProperties"] = False
    kept = {key: value for key, value in schema.items() if key in {"$defs", "title", "description"}}
    return {**joined, **kept}


def _distinct(options: list[JsonObject], name: str) -> list[Any]:
    found = [properties_of(option)[name] for option in options if name in properties_of(option)]
    return list({_encode(each): each for each in found}.values())


def _any_of(schemas: list[Any]) -> Any:
    if len(schemas) == 1:
        return schemas[0]
    values = [constants(cast("JsonObject", e)) if isinstance(e, dict) else None for e in schemas]
    if all(each is not None for each in values):
        return {"enum": [value for each in values if each is not None for value in each]}
    return {"anyOf": schemas}
