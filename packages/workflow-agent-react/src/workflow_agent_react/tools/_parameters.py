"""A function's parameters as JSON Schema, and a model's arguments as the function's.

Each parameter is validated by itself, so that every fault of a call is told at once. A value of
the wrong JSON type is read once more where it is unambiguous: objects and arrays that are written
as strings are read at any depth, as in all tools (`unfold_json`), and of a parameter itself `"10"`
and `10.0` are read as 10.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import msgspec

from workflow_agent_react._errors import BadArguments, ToolDefinitionError
from workflow_agent_react._lossless_json import LossyEncoding, encode_lossless
from workflow_protocol import (
    JsonObject,
    Schema,
    SchemaMismatch,
    SchemaTypeError,
    schema_of,
)
from workflow_reactor import map_schemas, unfold_json

_DEFINITION = "#/$defs/"


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter that the model may give."""

    name: str
    schema: Schema[Any]
    json_schema: JsonObject
    """Without titles, with the definitions that it refers to."""
    required: bool
    default: object
    """What the function gets where the model gives nothing; of no meaning where it must."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes: from the model, and from the loop."""

    offered: Mapping[str, Parameter]
    given: Mapping[str, type]
    """The parameters that get the thread, or the history of the turn, by its type."""

    @property
    def json_schema(self) -> JsonObject:
        """The JSON Schema of the arguments, without titles; definitions are at its root."""
        definitions: JsonObject = {}
        schema: JsonObject = {
            "type": "object",
            "properties": {
                item.name: _with_shared_definitions(item.json_schema, definitions)
                for item in self.offered.values()
            },
        }
        required = [item.name for item in self.offered.values() if item.required]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return {**schema, "$defs": definitions} if definitions else schema

    def read(self, arguments: str, *, strict: bool = False) -> dict[str, Any]:
        """Turn a call's arguments into keyword arguments.

        Args:
            strict: the schema went out in its strict form, see `ToolCall.strict`.

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
                values[item.name] = _validate(item, bytes(data).decode(), strict)
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


def parameters_of(
    fn: Callable[..., object], descriptions: Mapping[str, str], given: Collection[type] = ()
) -> Parameters:
    """Read a function's signature.

    Args:
        given: types of parameters that aren't offered, because the loop gives them.

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
    from_loop: dict[str, type] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise ToolDefinitionError(fn, f"a model gives arguments by name, not as {parameter}")
        if name not in hints:
            raise ToolDefinitionError(fn, f"the parameter {name!r} needs a type annotation")
        hint = hints[name]
        plain = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
        if plain in given:
            from_loop[name] = plain
        else:
            offered[name] = _parameter(fn, parameter, hint, descriptions.get(name, ""))
    return Parameters(offered=offered, given=from_loop)


def _parameter(
    fn: Callable[..., object], parameter: inspect.Parameter, type_: Any, description: str
) -> Parameter:
    try:
        schema = schema_of(type_)
        json_schema = untitled(schema.json_schema())
    except SchemaTypeError as error:
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


def untitled(schema: JsonObject) -> JsonObject:
    """The same schema without titles, which say what the names say."""
    return map_schemas({key: each for key, each in schema.items() if key != "title"}, untitled)


def _with_shared_definitions(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """A parameter's schema beside others, its definitions with theirs.

    Args:
        definitions: gets them. Where it has another one of the same name, the name gets a number.
    """
    own: JsonObject = schema.get("$defs", {})
    names = {name: name for name in own}
    if any(definitions.get(name, each) != each for name, each in own.items()):
        names = {name: _free_name(name, {*definitions, *own}) for name in own}

    def renamed(node: JsonObject) -> JsonObject:
        node = map_schemas(node, renamed)
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith(_DEFINITION):
            node["$ref"] = _DEFINITION + names[ref.removeprefix(_DEFINITION)]
        return node

    definitions |= {names[name]: renamed(each) for name, each in own.items()}
    return renamed({key: each for key, each in schema.items() if key != "$defs"})


def _free_name(wanted: str, taken: Collection[str]) -> str:
    numbered = (f"{wanted}_{number}" for number in itertools.count(2))
    return next(name for name in numbered if name not in taken)


def _validate(item: Parameter, text: str, strict: bool) -> Any:
    try:
        return item.schema.validate_json(text)
    except SchemaMismatch as misfit:
        fault = misfit
    unfolded = unfold_json(item.json_schema, text, strict=strict)
    if unfolded is not None:
        return item.schema.validate_json(unfolded)
    other = _other_reading(text)
    if other is not None:
        with contextlib.suppress(SchemaMismatch):
            return item.schema.validate_json(other)
    raise fault


def _other_reading(text: str) -> str | None:
    """What a scalar may mean: `10` for `10.0` or `"10"`."""
    if re.fullmatch(r"-?\d+\.0+", text):
        return text.partition(".")[0]
    if not text.startswith('"'):
        return None
    string = msgspec.json.decode(text, type=str)
    return None if string.lstrip().startswith(("{", "[")) else string


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
