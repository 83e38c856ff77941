"""Functions of the thread that authors write: what they are called, and what is wrong with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from workflow_protocol._errors import WorkflowError

In = TypeVar("In")
Out = TypeVar("Out")


def call_with(function: Callable[[In], Out], ctx: In, what: str) -> Out:
    """Call a function with the thread. Whatever it raises is a fault of that thread alone.

    Raises:
        WorkflowError: it wants to end the process, which runs other threads too.
    """
    try:
        return function(ctx)
    except (SystemExit, GeneratorExit) as error:
        kind = type(error).__name__
        raise WorkflowError(
            f"{what} raised {kind}; return a value, or raise an exception"
        ) from error


def name_of(function: object) -> str:
    """The name of a function; empty where it has none that says something."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""


def first_line_of(function: object) -> str:
    """The first paragraph of its docstring, as one line."""
    words = inspect.getdoc(function) if name_of(function) else None
    return (words or "").partition("\n\n")[0].replace("\n", " ")


def function_fault(function: object) -> str:
    """What keeps it from being asked about a thread, as the end of a sentence; empty if nothing."""
    if not callable(function):
        return f"is of type {type(function).__name__}; use a function of the thread"
    if _is_any(function, inspect.iscoroutinefunction, inspect.isasyncgenfunction):
        return "is async; make it a plain `def`"
    if _is_any(function, inspect.isgeneratorfunction):
        return "is a generator; use `return` instead of `yield`"
    try:
        inspect.signature(function).bind(None)
    except ValueError:  # some builtins don't tell their arguments
        return ""
    except TypeError:
        return "can't be called with one argument, the thread; write `def name(ctx)`"
    return ""


def _is_any(function: object, *kinds: object) -> bool:
    """Whether it, or the method by which an object is called, is a function of such a kind."""
    called = getattr(function, "__call__", None)  # noqa: B004 - of an object with such a method
    return any(callable(kind) and (kind(function) or kind(called)) for kind in kinds)
