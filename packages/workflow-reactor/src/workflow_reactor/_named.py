"""Models by name: what a name stands for is looked up when a role runs, by an installed package."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Protocol, cast

from workflow_reactor._errors import ModelNameError
from workflow_reactor._llm import LlmFn, LlmSource, Note
from workflow_reactor._provider import LlmProvider
from workflow_reactor.http._client import create_llm_fn

NAMES_GROUP = "workflow_reactor.model_names"
"""The entry point group of whoever finds models by name; workflow-register does."""


class FindModel(Protocol):
    """What is registered in the group: it gives the model of a name, and opens nothing."""

    def __call__(self, name: str, /) -> LlmSource:
        """Give the model of a name."""
        ...


class NamedLlm(LlmSource):
    """A model that is known by its name. Each session looks again what the name stands for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"named_llm({self.name!r})"

    def find(self) -> LlmSource:
        """Find the model, without opening it.

        Raises:
            ModelNameError: no installed package finds models by name, or it can't be imported.
        """
        return _finder()(self.name)

    @asynccontextmanager
    async def session(self, note: Note | None = None) -> AsyncGenerator[LlmFn]:
        """See `LlmSource.session`.

        Raises:
            ModelNameError: no installed package finds models by name.
        """
        async with self.find().session(note) as llm:
            yield llm


def named_llm(name: str) -> NamedLlm:
    """Make a model of a name such as `"provider/model"` or that of a scene.

    Nothing is looked up or opened before a role runs, so an entry script may name a model at its
    top level, on a machine where nothing is configured.

    Raises:
        ModelNameError: the name is empty.
    """
    if not name.strip():
        raise ModelNameError("a model's name is empty; name a scene, or provider/model")
    made = NamedLlm(name)
    note_model(made)
    return made


def model_of(model: str | LlmProvider | LlmFn | LlmSource) -> LlmFn | LlmSource:
    """The model that is meant by a name, a provider or a model.

    Raises:
        ModelNameError: the name is empty, or it is none of these.
    """
    if isinstance(model, str):
        return named_llm(model)
    given = cast("object", model)
    if not callable(given) and not isinstance(given, LlmProvider | LlmSource):
        raise ModelNameError(
            f"a model is of type {type(given).__name__}; use a name such as 'default', "
            "an LlmProvider or a model"
        )
    return create_llm_fn(model) if isinstance(model, LlmProvider) else model


_noted: ContextVar[list[LlmSource] | None] = ContextVar("noted models", default=None)


def note_model(model: LlmSource) -> None:
    """Tell `noting_models` of a model that was made."""
    if (noted := _noted.get()) is not None:
        noted.append(model)


@contextmanager
def noting_models() -> Generator[list[LlmSource]]:
    """Collect the models that are named while the block runs, as while an entry is imported."""
    noted: list[LlmSource] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


@functools.lru_cache(maxsize=1)
def _finder() -> FindModel:
    from importlib.metadata import entry_points  # 10 ms that only some runs need

    for entry in entry_points(group=NAMES_GROUP):
        try:
            return cast("FindModel", entry.load())
        except (ImportError, AttributeError) as error:
            raise ModelNameError(
                f"{entry.value!r}, which finds models by name, can't be imported: {error}"
            ) from error
    raise ModelNameError(
        "no installed package finds models by name; install workflow-register, or give an "
        "LlmProvider instead of a name"
    )
