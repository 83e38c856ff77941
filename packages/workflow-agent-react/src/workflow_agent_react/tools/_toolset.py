"""Tools as values: definitions together with the handler that runs them.

`@tool` turns one typed function into a `Toolset`; toolsets are combined, filtered and renamed
without a look inside.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Protocol, cast, overload, runtime_checkable

import msgspec
from anyio import to_thread

from workflow_agent_react._errors import ToolClash, ToolDefinitionError, ToolError
from workflow_agent_react._read_call import ReadCall
from workflow_agent_react.tools._names import nearest, nearest_names, prefixed
from workflow_agent_react.tools._parameters import Parameters, parameters_of
from workflow_protocol import Effect, SchemaTypeError, ThreadContext, schema_of
from workflow_reactor import ToolCall, ToolDefinition, ToolHandler

_log = logging.getLogger("workflow_agent_react")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Toolset(msgspec.Struct, frozen=True):
    """Definitions and the handler that runs a call of any of them."""

    tools: tuple[ToolDefinition, ...]
    handler: ToolHandler
    instructions: str = ""
    """What a model should know about the tools together; an adapter puts it behind the prompt."""
    prefix: str = ""
    """With it `combine` makes another name of one that is taken; without it that is an error."""

    def __post_init__(self) -> None:
        names = [item.name for item in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ToolClash(twice, "two tools have this name; rename one with Toolset.renamed")

    @staticmethod
    def combine(*toolsets: Toolset) -> Toolset:
        """All tools of these toolsets, in this order, and their instructions.

        Where two have a tool of the same name, it is renamed in one that has a `prefix`, the later
        one if both have; the log says so.

        Raises:
            ToolClash: two of them have a tool of the same name, and neither has a prefix.
        """
        apart = _told_apart(toolsets)
        handlers = {item.name: one.handler for one in apart for item in one.tools}
        tools = tuple(item for one in apart for item in one.tools)
        instructions = "\n\n".join(filter(None, (one.instructions for one in apart)))
        return Toolset(tools, _Dispatch(handlers), instructions)

    def only(self, *names: str) -> Toolset:
        """Just the named tools, in the order they have here.

        Raises:
            ToolClash: there is no tool of such a name.
        """
        self._must_have(names)
        return self._where(lambda name: name in names)

    def without(self, *names: str) -> Toolset:
        """All but the named tools.

        Raises:
            ToolClash: there is no tool of such a name.
        """
        self._must_have(names)
        return self._where(lambda name: name not in names)

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """The same tools, offered under other names (old to new).

        Raises:
            ToolClash: there is no tool of the old name, or the new one is taken.
            ToolNameError: the new one is none that providers take.
        """
        self._must_have(names)
        tools = tuple(replace(item, name=names.get(item.name, item.name)) for item in self.tools)
        old_names = {names.get(item.name, item.name): item.name for item in self.tools}
        handler = _Renamed(self.handler, old_names)
        return Toolset(tools, handler, self.instructions, self.prefix)

    def _where(self, keep: Callable[[str], bool]) -> Toolset:
        tools = tuple(item for item in self.tools if keep(item.name))
        handler = _Dispatch({item.name: self.handler for item in tools})
        return Toolset(tools, handler, self.instructions, self.prefix)

    def _must_have(self, names: Mapping[str, str] | tuple[str, ...]) -> None:
        have = [item.name for item in self.tools]
        missing = [name for name in names if name not in have]
        if missing:
            raise ToolClash(missing, f"there is no such tool; {nearest_names(missing[0], have)}")


@runtime_checkable
class ToolSource(Protocol):
    """Tools that are opened when a role needs them, such as `mcp_toolset("git")`."""

    def open(self, ctx: ThreadContext, key: str) -> AbstractAsyncContextManager[Toolset]:
        """Give the tools for one role's turn.

        Args:
            key: under it the turn's journal may keep what was found out, so that a turn that is
                taken up or replayed has the same tools.
        """
        ...


def _told_apart(toolsets: Sequence[Toolset]) -> list[Toolset]:
    """The toolsets with a prefix before each name that another one has."""
    taken = {item.name for one in toolsets if not one.prefix for item in one.tools}
    apart: list[Toolset] = []
    for one in toolsets:
        if one.prefix:
            new = {
                item.name: prefixed(one.prefix, item.name, taken)
                for item in one.tools
                if item.name in taken
            }
            if new:
                _log.warning("tools whose names are taken are offered under others: %s", new)
                one = one.renamed(new)
            taken.update(item.name for item in one.tools)
        apart.append(one)
    return apart


class _Dispatch(msgspec.Struct, frozen=True):
    handlers: Mapping[str, ToolHandler]

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        return await _pick(self.handlers, call)(call, ctx)


class _Renamed(msgspec.Struct, frozen=True):
    handler: ToolHandler
    old_names: Mapping[str, str]

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        return await self.handler(replace(call, name=_pick(self.old_names, call)), ctx)


class _Function(msgspec.Struct, frozen=True):
    name: str
    fn: Callable[..., object]
    parameters: Parameters
    effect: Effect

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        _pick({self.name: self}, call)
        if isinstance(call, ReadCall) and call.is_read:
            arguments = dict(cast("Mapping[str, Any]", call.value))
        else:
            arguments = self.parameters.read(call.arguments, strict=call.strict)
        if self.parameters.context_name is not None:
            arguments[self.parameters.context_name] = ctx
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


def _pick(choices: Mapping[str, Any], call: ToolCall) -> Any:
    try:
        return choices[call.name]
    except KeyError:
        known = ", ".join(nearest(call.name, choices)) or "none"
        raise ToolError(f"there is no tool {call.name!r}; the tools are: {known}") from None


@overload
def tool(fn: Callable[..., object], /) -> Toolset: ...


@overload
def tool(
    *,
    effect: Effect = Effect.UNSAFE,
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., object]], Toolset]: ...


def tool(
    fn: Callable[..., object] | None = None,
    /,
    *,
    effect: Effect = Effect.UNSAFE,
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> Toolset | Callable[[Callable[..., object]], Toolset]:
    """Make a toolset of one typed function. Usable as `@tool` and as `@tool(effect=…)`.

    The docstring's first paragraph becomes the description, its `Args:` section describes the
    parameters (`Annotated[…, msgspec.Meta(description=…)]` does so too and wins). Types are
    whatever can be a role's schema. A parameter annotated `ThreadContext` gets the thread and
    isn't offered to the model. The result is text, or anything that JSON can say.

    A plain function runs in a worker thread. Cancelling the call waits for it to return, unless
    it only reads: write an async function for what may take long.

    Args:
        effect: what running it twice would mean. It decides what happens after a crash.
        ask_if_unknown: where a crash leaves the outcome of a call unknown, a person says whether
            it runs again; otherwise the model is told to check.
        timeout_s: seconds that one call may take; `None` for no limit.
        pollable: the same call with the same result is normal, no sign of going in circles.
        max_result_chars: the most that a result has. Where all tools say so, and it is no more
            than an adapter shows, its roles aren't offered `read_result`.
        name: the name for the model; the function's own by default.

    Raises:
        ToolDefinitionError: the function can't be offered to a model.
    """

    def build(fn: Callable[..., object]) -> Toolset:
        tool_name = name or getattr(fn, "__name__", "")
        if not _NAME.fullmatch(tool_name):
            raise ToolDefinitionError(fn, f"{tool_name!r} is no name for a tool; pass name='…'")
        description, arguments = read_docstring(inspect.getdoc(fn) or "")
        parameters = parameters_of(fn, arguments)
        function = _Function(tool_name, fn, parameters, effect)

        def read(call: ToolCall) -> ToolCall:  # not a method, which `copy` would go into
            return function.read(call)

        definition = ToolDefinition(
            name=tool_name,
            description=description,
            parameters=parameters.json_schema,
            effect=effect,
            ask_if_unknown=ask_if_unknown,
            timeout_s=timeout_s,
            pollable=pollable,
            max_result_chars=max_result_chars,
            validated=True,
            reader=read,
        )
        return Toolset((definition,), function)

    return build if fn is None else build(fn)


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
