"""`tool`: says how a typed function is a tool, and leaves it the function that it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

from workflow_agent_react.tools._toolset import TOOLSET_OF, make_toolset
from workflow_protocol import Effect

F = TypeVar("F", bound=Callable[..., object])


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(
    *,
    effect: Effect | None = None,
    unsafe_if: str = "",
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> Callable[[F], F]: ...


def tool(
    fn: Callable[..., object] | None = None,
    /,
    *,
    effect: Effect | None = None,
    unsafe_if: str = "",
    ask_if_unknown: bool = False,
    timeout_s: float | None = 300.0,
    pollable: bool = False,
    max_result_chars: int | None = None,
    name: str | None = None,
) -> Callable[..., object]:
    """Say how a typed function is a tool. Usable as `@tool` and as `@tool(effect=…)`.

    It stays a function that is called as before, with its own signature, and goes into `toolset=`
    or `Toolset.combine` as it is.

    The docstring's first paragraph becomes the description, its `Args:` section describes the
    parameters (`Annotated[…, msgspec.Meta(description=…)]` does so too and wins). Types are
    whatever can be a role's schema. A parameter annotated `ThreadContext` gets the thread, one
    annotated `CallHistory` the calls of the turn before this one; neither is offered to the model.
    The result is text, or anything that JSON can say.

    A plain function runs in a worker thread. Cancelling the call waits for it to return, unless
    it only reads: write an async function for what may take long.

    Example:
        ```python
        @tool(effect=Effect.READ)
        async def weather(city: str, days: int = 1) -> str:
            "Say what the weather will be."
            return f"sun in {city} for {days} days"

        config = ReactAdapterConfig(llm="default", toolset=[weather, workspace_tools()])
        assert await weather("Rome") == "sun in Rome for 1 days"
        ```

    Args:
        effect: what running it twice would mean. It decides what happens after a crash, and which
            calls run together. Undeclared, it counts as `UNSAFE`.
        unsafe_if: a parameter; a call that sets it to anything but false is `UNSAFE` whatever
            `effect` says.
        ask_if_unknown: where a crash leaves the outcome of a call unknown, a person says whether
            it runs again; otherwise the model is told to check.
        timeout_s: seconds that one call may take; `None` for no limit.
        pollable: the same call with the same result is normal, no sign of going in circles.
        max_result_chars: the most that a result has. Where all tools say so, and it is no more
            than an adapter shows, its roles aren't offered `read_result`. A tool that returns a
            number, a flag, a date, a choice or nothing needn't say it.
        name: the name for the model; the function's own by default.

    Raises:
        ToolDefinitionError: the function can't be offered to a model.
    """

    def build(fn: Callable[..., object]) -> Callable[..., object]:
        toolset = make_toolset(
            fn,
            effect=effect,
            unsafe_if=unsafe_if,
            ask_if_unknown=ask_if_unknown,
            timeout_s=timeout_s,
            pollable=pollable,
            max_result_chars=max_result_chars,
            name=name,
        )
        same = _same_function(fn)
        setattr(same, TOOLSET_OF, toolset)
        return same

    return build if fn is None else build(fn)


def _same_function(fn: Callable[..., object]) -> Callable[..., object]:
    """The function under another object, as one function may be several tools."""
    if inspect.iscoroutinefunction(fn):
        call = cast("Callable[..., Awaitable[object]]", fn)

        @functools.wraps(fn)
        async def same_async(*args: object, **named: object) -> object:
            return await call(*args, **named)

        return same_async

    @functools.wraps(fn)
    def same(*args: object, **named: object) -> object:
        return fn(*args, **named)

    return same
