"""Artifacts, and what publishes them: exact values under a name, which no model words again.

A value is kept with the effect that published it (a tool's call, a function that is a role), in
one commit with its result. So a turn that is carried out again has what it had, and an effect that
never came to a result has published nothing.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._errors import ArtifactError, SchemaMismatch, SchemaTypeError, WorkflowError
from workflow_protocol.schemas._schema import schema_of
from workflow_protocol.schemas._stored import stored_form

T = TypeVar("T")

MAX_ARTIFACT_BYTES = 16 * 1024
"""Of one value as JSON. What is larger belongs into a file of the workspace."""
MAX_TURN_BYTES = 128 * 1024
"""Of all values of one turn."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """An exact value under a name."""

    name: str
    """What later roles find it by."""
    json: str
    """The value as it is stored."""

    def read(self, type: TypeForm[T]) -> T:
        """Give the value.

        Raises:
            ArtifactError: it is of another type.
        """
        schema = schema_of(type)
        try:
            return schema.restore(self.json.encode())
        except SchemaMismatch as misfit:
            raise ArtifactError(
                self.name, f"it is {_shown(self.json)} and no {schema.title}: {misfit}"
            ) from misfit


class Work:
    """What publishes: a turn of a role, or an effect inside of it.

    What an effect published counts when its result is recorded, in the order in which effects
    began; what a turn's own code published, at once.
    """

    def __init__(self, outer: Work | None = None) -> None:
        self.outer = outer
        self.turn: Work = self if outer is None else outer.turn
        self.is_open = True
        self.in_engine = outer is not None
        """False for a context that was made by hand, as in a test."""
        self.changed_paths: tuple[str, ...] | None = None
        """The files that were told to be all that has changed; `None` where nothing was told."""
        self.carried: dict[str, object] = {}
        """By the ref, facts that are kept or (`None`) forgotten together with its result."""
        self._numbered = 0
        self._items: list[Artifact | Work] = []
        self._bytes = 0

    def next_number(self) -> int:
        """Count, for the keys of what happens several times in a turn."""
        self._numbered += 1
        return self._numbered - 1

    def begin(self) -> Work:
        """An effect inside of this."""
        work = Work(self)
        self._items.append(work)
        return work

    def drop(self, work: Work) -> None:
        """Forget an effect that came to no result."""
        work.is_open = False
        self._items.remove(work)

    def take(self, artifacts: Sequence[Artifact]) -> None:
        """Take in what is recorded of an effect that isn't performed again."""
        self._items.extend(artifacts)

    def touched(self, path: str) -> None:
        """Say that a file of the workspace was changed, made or removed.

        An effect that says so says that it changed nothing else, so that the workspace needn't be
        looked through for what it did. One that says nothing may have changed everything.

        Args:
            path: relative to the workspace, with `/` and no link on the way; or absolute.
        """
        self.changed_paths = (*(self.changed_paths or ()), path)

    def publish(self, artifact: Artifact) -> None:
        """Keep a value.

        Raises:
            ArtifactError: the turn has too much, or what publishes has ended.
        """
        if not self.is_open:
            raise ArtifactError(artifact.name, "what publishes it has ended; publish it before")
        size = self.turn._bytes + len(artifact.json)
        if size > MAX_TURN_BYTES:
            raise ArtifactError(
                artifact.name,
                f"a turn can publish {MAX_TURN_BYTES} bytes; write large values to a file",
            )
        self.turn._bytes = size
        self._items.append(artifact)

    def published(self, seen_by: Work | None = None) -> tuple[Artifact, ...]:
        """What counts: all of this itself, and of effects in it that ended or that `seen_by` is."""
        inside: list[Work] = []
        while seen_by is not None:
            inside.append(seen_by)
            seen_by = seen_by.outer
        return tuple(self._published(inside))

    def _published(self, inside: Sequence[Work]) -> Generator[Artifact]:
        for item in self._items:
            if isinstance(item, Artifact):
                yield item
            elif not item.is_open or item in inside:
                yield from item._published(inside)


_at_work: ContextVar[Work | None] = ContextVar("at_work", default=None)


def current_work() -> Work:
    """What is at work in this task; something that nobody reads where that is nothing."""
    return _at_work.get() or Work()


@contextmanager
def working(work: Work) -> Generator[None]:
    """Make it what publishes while the block runs, in its tasks and worker threads, too."""
    before = _at_work.set(work)
    try:
        yield
    finally:
        _at_work.reset(before)


def work_in(turn: Work, name: str) -> Work:
    """What of a turn is at work in this task.

    Raises:
        ArtifactError: nothing is, as in a thread that was started without the task's context.
    """
    current = _at_work.get()
    if current is not None and current.turn is turn:
        return current
    if turn.in_engine:
        raise ArtifactError(
            name,
            "it is published from outside of its turn; publish it in the call itself, or in a "
            "thread that anyio.to_thread or asyncio.to_thread started",
        )
    return turn


def make_artifact(name: str, value: T, type: TypeForm[T] | None) -> Artifact:
    """A value as what is stored.

    Raises:
        ArtifactError: the name or the value can't be kept.
    """
    if not _NAME.fullmatch(name):
        raise ArtifactError(
            name, "use letters, digits and `_ . -`, at most 64, and a letter or _ first"
        )
    try:
        data = stored_form(schema_of(value.__class__ if type is None else type), value)[0]
    except (SchemaMismatch, SchemaTypeError) as error:
        raise ArtifactError(
            name, f"the value can't be kept exactly: {error}; say its type with `type=`"
        ) from error
    except WorkflowError as error:
        raise ArtifactError(name, str(error)) from error
    if len(data) > MAX_ARTIFACT_BYTES:
        raise ArtifactError(
            name,
            f"it has {len(data)} bytes as JSON and may have {MAX_ARTIFACT_BYTES}; write it to a "
            "file of the workspace and publish the file's name",
        )
    return Artifact(name=name, json=data.decode())


def _shown(json: str) -> str:
    return json if len(json) <= 60 else f"{json[:60]}…"
