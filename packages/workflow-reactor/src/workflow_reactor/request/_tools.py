"""Tools as the model sees them and as the engine runs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import msgspec

from workflow_protocol import Effect, Fault, JsonObject, SchemaMismatch, ThreadContext
from workflow_reactor._errors import ToolNameError, ToolSchemaError
from workflow_reactor._messages import ToolCall, replace_surrogates
from workflow_reactor._provider import Profile
from workflow_reactor.request._tool_schema import schema_to_send
from workflow_reactor.schemas._bounds import BadJsonSchema, is_plainly_bounded, refuse_unbounded
from workflow_reactor.schemas._check import Check, compile_check
from workflow_reactor.schemas._nested_text import unfold_json
from workflow_reactor.schemas._optional_nulls import drop_optional_nulls

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool's name, what it does, its parameters, and what running it twice would mean.

    Raises:
        ToolNameError: providers take no such name.
        ToolSchemaError: the parameters are no JSON Schema of an object.
    """

    name: str
    """Letters, digits, `_` and `-`, at most 64: what both OpenAI and Anthropic take."""
    description: str
    """What it does and when to use it, for the model."""
    parameters: JsonObject
    """JSON Schema of the arguments, of any draft; the root is an object."""
    effect: Effect = Effect.UNSAFE
    """Unless it says otherwise, a tool must not run twice."""
    unsafe_if: str = ""
    """A parameter; a call that sets it to anything but false is unsafe, whatever `effect` says."""
    effect_is_declared: bool = True
    """False where nobody said what running it twice means, so that it counts as unsafe."""
    timeout_s: float | None = 300.0
    """Seconds that one call may take; `None` for no limit."""
    ask_if_unknown: bool = False
    """Where a crash leaves the outcome of a call unknown, a person says whether it runs again;
    otherwise the model is told to check."""
    pollable: bool = False
    """The same call with the same result is normal: no sign of going in circles."""
    max_result_chars: int | None = None
    """The most that a result has; `None` where it may be of any length."""
    validated: bool = False
    """The handler checks the arguments itself, so they aren't checked before it."""
    reader: Callable[[ToolCall], ToolCall] | None = None
    """Reads the arguments as the handler does, for who judges them before it runs: gives the call
    with what was read as its `arguments`, which the handler then takes as it is."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ToolNameError(self.name)
        if self.parameters.get("type") != "object":
            raise ToolSchemaError(self.name, 'its root must have `"type": "object"`')
        _refuse_unbounded(self.name, self._encoded)
        if not self.validated:
            _ = self._check

    @cached_property
    def json(self) -> bytes:
        """The tool as a request carries it to an endpoint that takes any schema."""
        return self.sent(Profile())

    def sent(self, profile: Profile) -> bytes:
        """The tool as a request carries it to an endpoint of this kind, encoded once."""
        return self._as_sent(profile)[0]

    def is_strict(self, profile: Profile) -> bool:
        """Whether an endpoint of this kind gets the parameters in their strict form."""
        return profile.strict_schemas and self._as_sent(profile)[1]

    def _as_sent(self, profile: Profile) -> tuple[bytes, bool]:
        kind = profile.strict_schemas, profile.refs
        if kind not in self._sent:
            schema, strict, _ = schema_to_send(self.parameters, profile)
            function: JsonObject = {
                "name": self.name,
                "description": replace_surrogates(self.description),
                "parameters": schema,
            }
            if strict:
                function["strict"] = True
            self._sent[kind] = _encode({"type": "function", "function": function}), strict
        return self._sent[kind]

    def effect_of(self, call: ToolCall) -> Effect:
        """What running this call twice would mean."""
        if not self.unsafe_if:
            return self.effect
        try:
            arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeEncodeError):
            return Effect.UNSAFE
        return Effect.UNSAFE if arguments.get(self.unsafe_if) else self.effect

    def receive(self, call: ToolCall) -> ToolCall:
        """A call of this tool as its handler gets it: without nulls for absent keys, and checked.

        Arguments that don't fit are read once more with strings as the JSON that they hold, where
        the parameters want an object or an array and no string. If that doesn't fit either, the
        call's `fault` has a line for each misfit; such a call is never executed.
        """
        if call.fault:
            return call
        arguments = drop_optional_nulls(self.parameters, call.arguments, strict=call.strict)
        if arguments is not call.arguments:
            call = replace(call, arguments=arguments)
        if self.validated:
            return call
        return self._checked(call)

    def receive_strictly(self, call: ToolCall) -> ToolCall:
        """As `receive`, but checked by the schema where the handler checks as well.

        For who judges the arguments before the handler, which may read them less strictly.
        """
        received = self.receive(call)
        if received.fault or not self.validated:
            return received
        try:
            return self._checked(received)
        except ToolSchemaError as error:  # nobody looked at it when the tool was made
            return replace(received, fault=str(error))

    def _checked(self, call: ToolCall) -> ToolCall:
        try:
            faults = self._check(msgspec.json.decode(call.arguments))
            if not faults:
                return call
            unfolded = unfold_json(self.parameters, call.arguments, strict=call.strict)
            if unfolded is not None:
                faults = self._check(msgspec.json.decode(unfolded))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return replace(call, fault=f"the arguments are not one JSON object: {error}")
        if unfolded is not None and not faults:
            return replace(call, arguments=unfolded)
        return replace(call, fault=_words(faults))

    @cached_property
    def _sent(self) -> dict[tuple[bool, bool], tuple[bytes, bool]]:
        return {}

    @cached_property
    def _encoded(self) -> bytes:
        try:
            return _encode(self.parameters)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise ToolSchemaError(
                self.name, f"it has a value that JSON has no form for: {error}"
            ) from error
        except RecursionError:
            raise ToolSchemaError(self.name, "it is nested too deeply") from None

    @cached_property
    def _check(self) -> Check:
        try:
            return _compiled(self._encoded)
        except BadJsonSchema as error:
            raise ToolSchemaError(self.name, str(error)) from error


@lru_cache(maxsize=512)
def _compiled(parameters: bytes) -> Check:
    return compile_check(msgspec.json.decode(parameters))


def _refuse_unbounded(name: str, parameters: bytes) -> None:
    reason = _why_unbounded(parameters)
    if reason:
        raise ToolSchemaError(name, reason)


@lru_cache(maxsize=512)
def _why_unbounded(parameters: bytes) -> str:
    if is_plainly_bounded(parameters):
        return ""
    try:
        refuse_unbounded(msgspec.json.decode(parameters), len(parameters))
    except (BadJsonSchema, msgspec.DecodeError) as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def _words(faults: list[Fault]) -> str:
    return f"the arguments don't fit the tool's parameters:\n{SchemaMismatch(faults)}"


class ToolHandler(Protocol):
    """Runs a call of any of the tools it was given with."""

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        """Return the result for the model.

        An exception is told to the model as this call's result, and the loop goes on.
        """
        ...
