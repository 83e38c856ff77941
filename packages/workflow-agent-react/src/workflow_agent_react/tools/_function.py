"""A typed function as a tool: its definition, and the handler that calls it."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, time, timedelta
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from anyio import to_thread

from workflow_agent_react._errors import ToolDefinitionError
from workflow_agent_react._history import CallHistory, history_of_turn
from workflow_agent_react._read_call import ReadCall
from workflow_agent_react.tools._names import pick
from workflow_agent_react.tools._parameters import Parameters, parameters_of
from workflow_protocol import Effect, SchemaTypeError, ThreadContext, schema_of
from workflow_reactor import ToolCall, ToolDefinition, ToolHandler

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class _Function(msgspec.Struct, frozen=True):
    name: str
    fn: Callable[..., object]
    parameters: Parameters
    effect: Effect

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        pick({self.name: self}, call)
        if isinstance(call, ReadCall) and call.is_read:
            arguments = dict(cast("Mapping[str, Any]", call.value))
        else:
            arguments = self.parameters.read(call.arguments, strict=call.strict)
        for name, wanted in self.parameters.given.items():
            arguments[name] = ctx if wanted is ThreadContext else history_of_turn.get()()
        if inspect.iscoroutinefunction(self.fn):
            return _text_of(await cast("Callable[..., Awaitable[object]]", self.fn)(**arguments))
        # A thread can't be stopped. One that only reads is left behind when the call is
        # cancelled; one that changes things is waited for, so that nothing changes afterwards.
        value = await to_thread.run_sync(
            functools.partial(self.fn, **arguments), abandon_on_cancel=self.effect is Effect.READ
        )
        # An async function behind a plain decorator.
        return _text_of(await value if inspect.isawaitable(value) else value)

    def read(self, call: ToolCall) -> ToolCall:
        """Read the arguments ahead: see `ToolDefinition.reader`."""
        values = self.parameters.read(call.arguments, strict=call.strict)
        return ReadCall.of(call, values, self.parameters.encode(values))


def function_tool(
    fn: Callable[..., object],
    *,
    effect: Effect | None = None,
    unsafe_if: str = "",
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> tuple[ToolDefinition, ToolHandler]:
    """A function as the definition that a model sees and the handler that runs it. See `tool`.

    Raises:
        ToolDefinitionError: the function can't be offered to a model.
    """
    tool_name = name or getattr(fn, "__name__", "")
    if not _NAME.fullmatch(tool_name):
        raise ToolDefinitionError(fn, f"{tool_name!r} is no name for a tool; pass name='…'")
    description, arguments = read_docstring(inspect.getdoc(fn) or "")
    parameters = parameters_of(fn, arguments, given=(ThreadContext, CallHistory))
    function = _Function(tool_name, fn, parameters, effect or Effect.UNSAFE)

    def read(call: ToolCall) -> ToolCall:  # not a method, which `copy` would go into
        return function.read(call)

    definition = ToolDefinition(
        name=tool_name,
        description=description,
        parameters=parameters.json_schema,
        effect=effect or Effect.UNSAFE,
        effect_is_declared=effect is not None,
        unsafe_if=unsafe_if,
        ask_if_unknown=ask_if_unknown,
        timeout_s=timeout_s,
        pollable=pollable,
        max_result_chars=_result_chars(fn) if max_result_chars is None else max_result_chars,
        validated=True,
        reader=read,
    )
    return definition, function


_SHORT_CHARS = 500
"""More than a value of these types has: `read_result` isn't offered for their sake."""
_SHORT_TYPES = (bool, int, float, type(None), Enum, date, time, timedelta)


def _result_chars(fn: Callable[..., object]) -> int | None:
    """The most that its results have by the type that it returns; `None` if that says nothing."""
    returned: object = get_type_hints(fn).get("return")
    return _SHORT_CHARS if _is_short(returned) else None


def _is_short(type_: object) -> bool:
    if get_origin(type_) in {Union, UnionType}:
        return all(map(_is_short, get_args(type_)))
    if get_origin(type_) is Literal:
        return max(len(str(each)) for each in get_args(type_)) < _SHORT_CHARS
    return isinstance(type_, type) and issubclass(type_, _SHORT_TYPES)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph on one line, and the parameter descriptions of a Google docstring."""
    paragraph, _, rest = text.partition("\n\n")
    section = re.search(r"^Args:\n((?:[ \t]+\S.*(?:\n|\Z)|\n(?=[ \t]))*)", rest, re.MULTILINE)
    arguments: dict[str, str] = {}
    current = ""
    for line in inspect.cleandoc(section[1]).splitlines() if section else ():
        start = re.match(r"(\w+)(?: \([^)]*\))?: *(.*)", line)
        if start:
            current = start[1]
            arguments[current] = start[2]
        elif current:
            arguments[current] = f"{arguments[current]} {line.strip()}".strip()
    return " ".join(paragraph.split()), arguments


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "done"
    try:
        return msgspec.json.encode(value).decode()
    except TypeError:
        pass
    try:
        return schema_of(type(value)).encode(value).decode()
    except SchemaTypeError:
        return str(value)
