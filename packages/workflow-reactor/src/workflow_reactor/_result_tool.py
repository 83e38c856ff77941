"""A role's schema as the `resolve` tool: always an object on the wire, the bare value outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec
from typing_extensions import TypeForm

from workflow_protocol import Effect, Fault, JsonObject, Resolved, Schema, SchemaMismatch, schema_of
from workflow_reactor._messages import ToolCall
from workflow_reactor.reply._calls import CUT
from workflow_reactor.reply._json_text import NotOneValue, find_json, parse_strict
from workflow_reactor.request._tools import ToolDefinition
from workflow_reactor.schemas._nested_text import unfold_json
from workflow_reactor.schemas._optional_nulls import drop_optional_nulls

T = TypeVar("T")

RESOLVE = "resolve"
WRAP_KEY = "value"


class ResultSchema(Generic[T]):
    """Offers a schema to a model and reads what comes back.

    Tool parameters must be a JSON object without a union at the root, so any other type is
    wrapped under the key `value` and unwrapped on the way out.
    """

    def __init__(self, type_: TypeForm[T]) -> None:
        self.schema: Schema[T] = schema_of(type_)
        inner = self.schema.json_schema()
        self.wrapped = inner.get("type") != "object" or "anyOf" in inner or "oneOf" in inner
        self._bare = inner
        self.json_schema: JsonObject = _wrap(inner) if self.wrapped else inner

    def tool(self) -> ToolDefinition:
        """The `resolve` tool."""
        return ToolDefinition(
            name=RESOLVE,
            description=(
                "Submit the final structured output for this role. "
                "Call this when the task is complete."
            ),
            parameters=self.json_schema,
            effect=Effect.READ,
            timeout_s=None,
            validated=True,
        )

    def read_call(self, call: ToolCall) -> Resolved[T]:
        """Validate the arguments of a `resolve` call; a role notes in its journal what it takes.

        A wrapped value is accepted bare as well, where that is what the model wrote.

        Raises:
            SchemaMismatch: with a fault a line, each with its path.
        """
        if not call.fault:
            only_null = self._bare.get("type") == "null"
            # No arguments can then mean nothing but the one value that there is.
            text = "null" if only_null and call.arguments == "{}" else call.arguments
            return self.read_json(text, strict=call.strict)
        for text in _bare_forms(call) if self.wrapped else ():
            try:
                return self._read_bare(text, call.strict)
            except SchemaMismatch:
                continue
        raise SchemaMismatch([Fault("", call.fault)])

    def read_text(self, text: str, *, strict: bool = False) -> Resolved[T]:
        """Find the value in a model's text and validate it.

        Args:
            strict: the schema went out in its strict form, see `ToolCall.strict`.

        Raises:
            SchemaMismatch: there is not exactly one JSON value, or it does not fit.
        """
        try:
            return self.read_json(find_json(text), strict=strict)
        except NotOneValue as error:
            raise SchemaMismatch([Fault("", f"the reply is not one JSON value: {error}")]) from None

    def read_json(self, text: str, *, strict: bool = False) -> Resolved[T]:
        """Validate JSON text, wrapped or (where the type is wrapped) bare.

        A text that doesn't fit is read once more with strings as the JSON that they hold, where the
        schema wants an object or an array and no string.

        Args:
            strict: the schema went out in its strict form, see `ToolCall.strict`.

        Raises:
            SchemaMismatch: it does not fit.
        """
        if not self.wrapped:
            return self._read_bare(text, strict)
        try:
            return self._read_inner(text, strict)
        except SchemaMismatch as misfit:
            try:
                return self._read_bare(text, strict)
            except SchemaMismatch:
                raise misfit from None

    def _read_bare(self, text: str, strict: bool) -> Resolved[T]:
        text = drop_optional_nulls(self._bare, text, strict=strict)
        try:
            return self._validated(text)
        except SchemaMismatch:
            unfolded = unfold_json(self._bare, text, strict=strict)
            if unfolded is None:
                raise
        return self._validated(unfolded)

    def _validated(self, text: str) -> Resolved[T]:
        json = text.encode()
        return Resolved(value=self.schema.validate_json(json), json=json)

    def _read_inner(self, text: str, strict: bool) -> Resolved[T]:
        inner = _unwrap(text)
        try:
            return self._read_bare(inner, strict)
        except SchemaMismatch as misfit:
            place = f"$.{WRAP_KEY}"
            faults = [
                Fault(place + each.place.removeprefix("$"), each.message) for each in misfit.faults
            ]
            raise SchemaMismatch(faults) from None


def _bare_forms(call: ToolCall) -> Iterator[str]:
    """The JSON that a model may have meant which wrote no object: a value, or a string's text."""
    try:
        parse_strict(call.raw_arguments)
        yield call.raw_arguments
    except NotOneValue:
        # What looks like JSON is broken JSON, or the beginning of it.
        looks_like_json = call.raw_arguments.lstrip().startswith(("{", "[", '"'))
        if call.fault != CUT and not looks_like_json:
            yield msgspec.json.encode(call.raw_arguments).decode()


def _wrap(inner: JsonObject) -> JsonObject:
    inner = dict(inner)
    definitions = inner.pop("$defs", None)
    outer: JsonObject = {
        "type": "object",
        "properties": {WRAP_KEY: inner},
        "required": [WRAP_KEY],
        "additionalProperties": False,
    }
    if definitions is not None:
        outer["$defs"] = definitions
    return outer


def _unwrap(text: str) -> str:
    try:
        wrapped = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError):
        wrapped = {}
    if set(wrapped) != {WRAP_KEY}:
        raise SchemaMismatch([Fault("$", f"expected an object with the one key {WRAP_KEY!r}")])
    return bytes(wrapped[WRAP_KEY]).decode()
