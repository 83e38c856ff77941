"""A function's parameters as JSON Schema, and a model's arguments as the function's.

Each parameter is validated by itself, so that every fault of a call is told at once. A value of
the wrong JSON type is read once more where it is unambiguous: small models write `"10"` for 10,
`10.0` for 10 and a list as a string that holds one.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from workflow_agent_react._errors import BadArguments, ToolDefinitionError
from workflow_agent_react._lossless_json import LossyEncoding, encode_lossless
from workflow_protocol import (
    JsonObject,
    Schema,
    SchemaMismatch,
    SchemaTypeError,
    ThreadContext,
    schema_of,
)
from workflow_reactor import map_schemas


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter that the model may give."""

    name: str
    schema: Schema[Any]
    json_schema: JsonObject
    required: bool
    default: object
    """What the function gets where the model gives nothing; of no meaning where it must."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes: from the model, and from the loop."""

    offered: Mapping[str, Parameter]
    context_name: str | None
    """The parameter that gets the `ThreadContext`."""

    @property
    def json_schema(self) -> JsonObject:
        """The JSON Schema of the arguments, without titles and references."""
        schema: JsonObject = {
            "type": "object",
            "properties": {item.name: item.json_schema for item in self.offered.values()},
        }
        required = [item.name for item in self.offered.values() if item.required]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema

    def read(self, arguments: str) -> dict[str, Any]:
        """Turn a call's arguments into keyword arguments.

        Raises:
            BadArguments: with everything that is wrong and a list of the parameters.
        """
        try:
            raw = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeError):
            raise BadArguments(["the arguments must be one JSON object"], self.lines()) from None
        faults = [f"unknown parameter {name!r}" for name in raw if name not in self.offered]
        values: dict[str, Any] = {}
        for item in self.offered.values():
            data = raw.get(item.name)
            if data is None:
                if item.required:
                    faults.append(f"missing parameter {item.name!r}")
                continue
            try:
                values[item.name] = _validate(item.schema, bytes(data))
            except SchemaMismatch as misfit:
                if item.required or bytes(data) != b"null":  # which then means the default
                    faults += [_fault_text(item.name, str(fault)) for fault in misfit.faults]
        if faults:
            raise BadArguments(faults, self.lines())
        return values

    def encode(self, values: Mapping[str, object]) -> str:
        """What the function gets, defaults included, as arguments that say so.

        A default that JSON can't say is left out: it is the function's own, and no model's.

        Raises:
            LossyEncoding: JSON doesn't show all of a value.
        """
        told: dict[str, msgspec.Raw] = {}
        for name, item in self.offered.items():
            try:
                value = values.get(name, item.default)
                told[name] = msgspec.Raw(encode_lossless(item.schema, value))
            except LossyEncoding as error:
                if name in values:
                    raise LossyEncoding(f"parameter {name!r}: {error}") from error
        return msgspec.json.encode(told).decode()

    def lines(self) -> list[str]:
        """The parameters, one a line, in words for the model."""
        return [_describe(item) for item in self.offered.values()]


def parameters_of(fn: Callable[..., object], descriptions: Mapping[str, str]) -> Parameters:
    """Read a function's signature.

    Raises:
        ToolDefinitionError: a parameter can't be offered to a model.
    """
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolDefinitionError(
            fn, f"its annotations can't be resolved ({error}); annotate with module-level types"
        ) from error
    offered: dict[str, Parameter] = {}
    context_name: str | None = None
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise ToolDefinitionError(fn, f"a model gives arguments by name, not as {parameter}")
        if name not in hints:
            raise ToolDefinitionError(fn, f"the parameter {name!r} needs a type annotation")
        if hints[name] is ThreadContext:
            context_name = name
        else:
            offered[name] = _parameter(fn, parameter, hints[name], descriptions.get(name, ""))
    return Parameters(offered=offered, context_name=context_name)


def _parameter(
    fn: Callable[..., object], parameter: inspect.Parameter, type_: Any, description: str
) -> Parameter:
    try:
        schema = schema_of(type_)
        json_schema = plain_schema(schema.json_schema())
    except (SchemaTypeError, RecursionError) as error:
        raise ToolDefinitionError(fn, f"the parameter {parameter.name!r}: {error}") from error
    required = parameter.default is inspect.Parameter.empty
    if isinstance(parameter.default, bool | int | float | str) and parameter.default != "":
        json_schema.setdefault("default", parameter.default)
    if description:
        json_schema.setdefault("description", description)
    return Parameter(
        name=parameter.name,
        schema=schema,
        json_schema=json_schema,
        required=required,
        default=parameter.default,
    )


def plain_schema(schema: JsonObject) -> JsonObject:
    """The same schema with its definitions in place and without titles.

    Raises:
        RecursionError: a definition contains itself.
    """
    definitions = cast("JsonObject", schema.get("$defs", {}))

    def plain(node: JsonObject, open_refs: frozenset[str] = frozenset()) -> JsonObject:
        kept = {key: each for key, each in node.items() if key not in {"$defs", "$ref", "title"}}
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return map_schemas(kept, lambda below: plain(below, open_refs))
        if ref in open_refs:
            raise RecursionError(f"{ref!r} contains itself")
        target = cast("JsonObject", definitions[ref.rpartition("/")[2]])
        return plain(target | kept, open_refs | {ref})

    return plain(schema)


def _validate(schema: Schema[Any], data: bytes) -> Any:
    try:
        return schema.validate_json(data)
    except SchemaMismatch as misfit:
        for guess in _other_readings(data):
            try:
                return schema.validate_json(guess)
            except SchemaMismatch:
                continue
        raise misfit from None


def _other_readings(data: bytes) -> Iterable[bytes | str]:
    if re.fullmatch(rb"-?\d+\.0+", data):
        yield data.partition(b".")[0]
    if data.startswith(b'"'):
        yield msgspec.json.decode(data, type=str)


def _fault_text(name: str, fault: str) -> str:
    place, found, message = fault.partition(": ")
    if found and place.startswith("$"):
        return f"parameter {name!r} at {name}{place[1:]}: {message}"
    return f"parameter {name!r}: {fault}"


def _describe(item: Parameter) -> str:
    kind = item.json_schema.get("type", "value")
    need = "required" if item.required else "optional"
    description = item.json_schema.get("description", "")
    return f"{item.name} ({kind}, {need}){': ' if description else ''}{description}"
