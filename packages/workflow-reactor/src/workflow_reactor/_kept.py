"""Keeps what is costly to open, such as a server, open from one role's turn to the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

if TYPE_CHECKING:
    import anyio.abc

T = TypeVar("T")

Opener = Callable[[], AbstractAsyncContextManager[T]]


class _Kept:
    """Each thing is opened and closed by a task of its own: whichever turn asks for it first may
    run in a task that ends long before, and a cancel scope can't be left by another task.
    """

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._locks: dict[Hashable, anyio.Lock] = {}
        self._open: dict[Hashable, Any] = {}
        self.done = anyio.Event()

    async def value(self, key: Hashable, opener: Opener[T]) -> T:
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._open:
                self._open[key] = await self._group.start(self._hold_open, opener)
            return self._open[key]

    async def _hold_open(self, opener: Opener[T], *, task_status: anyio.abc.TaskStatus[T]) -> None:
        async with opener() as value:
            task_status.started(value)
            await self.done.wait()


_kept: ContextVar[_Kept | None] = ContextVar("workflow_reactor_kept", default=None)


@asynccontextmanager
async def keep_open() -> AsyncGenerator[None]:
    """Let what is opened by `kept` stay open to the end of the block.

    Wrap it around a whole run; within another such block it does nothing. What the block raises
    comes out as it is.
    """
    if _kept.get() is not None:
        yield
        return
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        keeping = _Kept(group)
        token = _kept.set(keeping)
        try:
            yield
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
            failure = error
        finally:
            _kept.reset(token)
            keeping.done.set()
    if failure is not None:
        raise failure


@asynccontextmanager
async def kept(key: Hashable, opener: Opener[T]) -> AsyncGenerator[T]:
    """Open something for this block; within `keep_open`, once for all blocks of the same key."""
    keeping = _kept.get()
    if keeping is not None:
        yield await keeping.value(key, opener)
        return
    async with opener() as value:
        yield value
