"""Code as a role: a plain function of the thread, as the adapter of one role."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NoReturn, TypeVar, Unpack, cast

from anyio import to_thread
from typing_extensions import TypeForm

from workflow_execute._errors import RoleValueError
from workflow_protocol import (
    Answer,
    Effect,
    Event,
    Journal,
    Question,
    Resolved,
    RoleDefinition,
    RoleFn,
    RunOptions,
    SchemaMismatch,
    ThreadContext,
    WorkflowError,
    expect_type,
    run_once,
    schema_of,
    stored_form,
)

T = TypeVar("T")
S = TypeVar("S")

FUNCTION_KEY = "function"
"""The journal's key of what a function gave; what it does through the journal stands below."""


@dataclass(frozen=True, slots=True)
class FunctionAdapter(Generic[T]):
    """An adapter that calls a function. Made by `function_adapter`."""

    role: RoleDefinition[T]
    """The role that it carries out."""
    fn: Callable[[ThreadContext], Awaitable[T]] | Callable[[ThreadContext], T]
    """Gives the role's value from the thread."""
    effect: Effect
    """What calling it twice means."""

    def fault_of(self, role: RoleDefinition[Any]) -> str:
        """See `CheckedAdapter`."""
        if role is self.role:
            return ""
        return (
            f"its adapter calls {self._name}, which is for the role {self.role.name!r}; "
            "give each role a function_adapter of its own"
        )

    def __call__(self, prompt: str, schema: TypeForm[S]) -> RoleFn[S]:
        """See `AdapterFn`."""
        del prompt

        async def role(ctx: ThreadContext) -> S:
            parts = (
                replace(ctx, journal=_NoParts(ctx.journal, self._name))
                if self.effect is Effect.UNSAFE
                else ctx.scoped(FUNCTION_KEY)
            )
            json = await run_once(
                ctx.journal,
                FUNCTION_KEY,
                functools.partial(self._perform, schema, parts),
                effect=self.effect,
                what=f"the function {self._name} of the role {self.role.name!r}",
            )
            value = schema_of(schema).restore(json)
            await ctx.journal.note(Resolved(value=value, json=json))
            return value

        return role

    async def _perform(self, schema: TypeForm[S], ctx: ThreadContext) -> bytes:
        """Call the function; its value as JSON.

        Raises:
            RoleValueError: the value is not of the role's schema.
        """
        value = await self._call(ctx)
        read = schema_of(schema)
        try:
            return stored_form(read, cast("S", value))[0]
        except SchemaMismatch as error:
            raise RoleValueError(
                f"the function {self._name} of the role {self.role.name!r} returned a value of "
                f"type {type(value).__name__}, which does not fit {read.title}: {error}"
            ) from error

    async def _call(self, ctx: ThreadContext) -> object:
        if inspect.iscoroutinefunction(self.fn):
            return await cast("Awaitable[object]", self.fn(ctx))
        # A thread can't be stopped. One that only reads is left behind when the turn is
        # cancelled; one that changes things is waited for, so that nothing changes afterwards.
        value: object = await to_thread.run_sync(
            self.fn, ctx, abandon_on_cancel=self.effect is Effect.READ
        )
        # An async function behind a plain one, such as a lambda.
        return await cast("Awaitable[object]", value) if inspect.isawaitable(value) else value

    @property
    def _name(self) -> str:
        return getattr(self.fn, "__qualname__", None) or type(self.fn).__qualname__


def function_adapter(
    role: RoleDefinition[T],
    fn: Callable[[ThreadContext], Awaitable[T]] | Callable[[ThreadContext], T],
    *,
    effect: Effect = Effect.UNSAFE,
) -> FunctionAdapter[T]:
    """Give the adapter of a role that is code: `overrides={tests: function_adapter(tests, run)}`.

    The function gets the thread and returns the role's value. It is called once: what it gave is
    recorded, and a resume, a fork and a replay take the record. A plain function runs in a worker
    thread, an async one in the loop. What it raises fails the turn, and a resume calls it again.

    Example:
        ```python
        def list_files(ctx: ThreadContext) -> list[str]:
            return sorted(path.name for path in ctx.start.workspace.iterdir())

        files = RoleDefinition(name="files", schema=list[str])
        run = create_workflow(
            WorkflowDefinition(table={START: files, files: END}, result=files),
            AdapterBinding(function_adapter(files, list_files, effect=Effect.READ)),
        )
        ```

    Args:
        role: the role that it carries out; its schema is what the function returns.
        fn: the function.
        effect: what calling it twice means, which counts when a crash or a stop cuts it off. An
            `UNSAFE` one is called again only if a person says so. The others are simply called
            again. A function that is put together of parts with records of their own, as child
            threads are and what goes through `ctx.journal`, is `READ`; an `UNSAFE` one may have
            none.

    The role raises `RoleValueError` when the value is not of the role's schema, and
    `OutcomeUnknown` when the function was cut off and a person said that it may not run again.
    """
    use = "write function_adapter(role, function)"
    expect_type(role, RoleDefinition, "the role of a function_adapter", use=use)
    if not callable(fn):
        raise TypeError(f"the function of {role.name!r} is of type {type(fn).__name__}; {use}")
    return FunctionAdapter(role, fn, effect)


@dataclass(frozen=True, slots=True)
class _NoParts:
    """The journal of a function that must not be called twice, which its parts would need."""

    inner: Journal
    name: str

    def _refuse(self, what: str) -> NoReturn:
        raise WorkflowError(
            f"the function {self.name} {what}, so it has to be called again after a crash: say "
            "function_adapter(…, effect=Effect.READ), and put what must not happen twice into "
            "ctx.journal.run(…, effect=Effect.UNSAFE)"
        )

    async def run(
        self, key: str, perform: Callable[[], Awaitable[S]], **options: Unpack[RunOptions[S]]
    ) -> S:
        """Refused."""
        self._refuse("uses the journal or starts child threads")

    async def ask(self, key: str, question: Question) -> Answer:
        """Refused."""
        self._refuse("asks a person")

    async def note(self, event: Event) -> None:
        """See `Journal.note`."""
        await self.inner.note(event)
