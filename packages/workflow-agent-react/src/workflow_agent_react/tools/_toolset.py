"""Tools as values: definitions together with the handler that runs them.

Functions are tools, too. Toolsets are combined, filtered and renamed without a look inside.
"""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol, TypeAlias, cast, runtime_checkable

import msgspec

from workflow_agent_react._errors import ToolClash, ToolDefinitionError
from workflow_agent_react.tools._function import function_tool
from workflow_agent_react.tools._names import nearest_names, pick, prefixed
from workflow_protocol import Effect, ThreadContext
from workflow_reactor import ToolCall, ToolDefinition, ToolHandler

_log = logging.getLogger("workflow_agent_react")

TOOLSET_OF = "__uwf_toolset__"
"""The attribute of a function under `@tool` that holds it as a `Toolset`."""


class Toolset(msgspec.Struct, frozen=True):
    """Definitions and the handler that runs a call of any of them."""

    tools: tuple[ToolDefinition, ...]
    """What the model is told of each."""
    handler: ToolHandler
    """Runs a call of any of them."""
    instructions: str = ""
    """What a model should know about the tools together; an adapter puts it behind the prompt."""
    prefix: str = ""
    """With it `combine` makes another name of one that is taken; without it that is an error."""

    def __post_init__(self) -> None:
        names = [item.name for item in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ToolClash(twice, f"two tools have this name; {_RENAME}")

    @staticmethod
    def combine(*tools: Toolset | Callable[..., object]) -> Toolset:
        """All tools of these toolsets and functions, in this order, and their instructions.

        A function is what `tool` makes of it. Where two have a tool of the same name, it is renamed
        in a toolset that has a `prefix`, the later one if both have; the log says so.

        Raises:
            ToolClash: two of them have a tool of the same name, and neither has a prefix.
            ToolDefinitionError: a function can't be offered to a model.
        """
        given = [toolset_of(each) for each in tools]
        _refuse_clashes([one for one in given if not one.prefix])
        apart = _told_apart(given)
        handlers = {item.name: one.handler for one in apart for item in one.tools}
        definitions = tuple(item for one in apart for item in one.tools)
        instructions = "\n\n".join(filter(None, (one.instructions for one in apart)))
        return Toolset(definitions, _Dispatch(handlers), instructions)

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


ToolPart: TypeAlias = Toolset | ToolSource | Callable[..., object]
"""What tools are put together of. A function without `@tool` is as one with a bare `@tool`."""


def toolset_of(part: Toolset | Callable[..., object]) -> Toolset:
    """A toolset as it is, and a function as one.

    Raises:
        ToolDefinitionError: it can't be offered to a model.
    """
    if isinstance(part, Toolset):
        return part
    made = getattr(part, TOOLSET_OF, None)
    if isinstance(made, Toolset):
        return made
    if not callable(part) or inspect.isclass(part):
        raise ToolDefinitionError(part, "give a function, a Toolset, or what mcp_toolset returns")
    return make_toolset(part)


def make_toolset(
    fn: Callable[..., object],
    *,
    effect: Effect | None = None,
    unsafe_if: str = "",
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> Toolset:
    """A function as a toolset of one. See `tool`.

    Raises:
        ToolDefinitionError: the function can't be offered to a model.
    """
    _refuse_makers(fn)
    definition, handler = function_tool(
        fn,
        effect=effect,
        unsafe_if=unsafe_if,
        ask_if_unknown=ask_if_unknown,
        timeout_s=timeout_s,
        pollable=pollable,
        max_result_chars=max_result_chars,
        name=name,
    )
    return Toolset((definition,), handler)


def _refuse_makers(fn: Callable[..., object]) -> None:
    """Refuse a function that gives tools: it was meant to be called."""
    try:
        gives = typing.get_type_hints(fn).get("return")
    except (NameError, TypeError):  # names that only a type checker sees
        gives = getattr(fn, "__annotations__", {}).get("return")
    kinds = (Toolset, ToolSource)
    is_kind = isinstance(gives, type) and issubclass(cast("type[object]", gives), kinds)
    if is_kind or gives in [kind.__name__ for kind in kinds]:
        raise ToolDefinitionError(fn, f"it gives tools; call it: {getattr(fn, '__name__', fn)}()")


_RENAME = "give one another name, with tool(name='…') or Toolset.renamed"


def _refuse_clashes(toolsets: Sequence[Toolset]) -> None:
    """Say all names that are given twice, and where, in one error."""
    places: dict[str, list[int]] = {}
    for number, one in enumerate(toolsets, start=1):
        for item in one.tools:
            places.setdefault(item.name, []).append(number)
    twice = {name: at for name, at in sorted(places.items()) if len(at) > 1}
    if twice:
        where = "; ".join(
            f"{name!r} in parts {' and '.join(map(str, at))} of {len(toolsets)}"
            for name, at in twice.items()
        )
        raise ToolClash(twice, f"two tools have one name ({where}); {_RENAME}")


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
        return await pick(self.handlers, call)(call, ctx)


class _Renamed(msgspec.Struct, frozen=True):
    handler: ToolHandler
    old_names: Mapping[str, str]

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        return await self.handler(replace(call, name=pick(self.old_names, call)), ctx)
