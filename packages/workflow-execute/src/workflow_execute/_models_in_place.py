"""Which models stand in for those of a workflow, in this context: what `Workflow.using` sets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from workflow_execute._binding import key_faults, override_faults
from workflow_protocol import AnyDefinition, DefinitionError, Fault, Items, RoleDefinition
from workflow_reactor import LlmFn, LlmProvider, LlmSource, llm_in_place, model_of

Model: TypeAlias = str | LlmProvider | LlmFn | LlmSource
"""A model, its provider, or its name."""
Models: TypeAlias = Model | Items[RoleDefinition[Any] | str, Model]
"""One model for all roles, or models by role or by a role's name."""

_Chosen = Callable[[str], LlmFn | LlmSource | None]
_in_use: ContextVar[tuple[tuple[object, _Chosen], ...]] = ContextVar("models in use", default=())


@contextmanager
def models_in_use(workflow: object, definition: AnyDefinition, models: Models) -> Generator[None]:
    """See `Workflow.using`.

    Raises:
        DefinitionError: a key is no role of the workflow, or a value is no model.
    """
    chosen = _chosen(definition, models)
    token = _in_use.set((*_in_use.get(), (workflow, chosen)))
    try:
        yield
    finally:
        _in_use.reset(token)


def model_in_place(workflow: object, role: str) -> AbstractContextManager[None]:
    """Put the model that is used for a role in the place of the role's own, if there is one."""
    for used_for, chosen in reversed(_in_use.get()):
        if used_for is workflow and (model := chosen(role)) is not None:
            return llm_in_place(model)
    return nullcontext()


def _chosen(definition: AnyDefinition, models: Models) -> _Chosen:
    if not callable(getattr(models, "items", None)):
        model = _model(cast("Model", models), "using")
        return lambda role: model
    pairs = list(cast("Items[RoleDefinition[Any] | str, Model]", models).items())
    keys = [key for key, _ in pairs]
    faults = list(key_faults(keys, what="using"))
    if faults := faults or list(override_faults(definition, keys, what="using", one="model")):
        raise DefinitionError(faults)
    named: Mapping[str, LlmFn | LlmSource] = {
        name: _model(model, f"using[{name!r}]")
        for key, model in pairs
        for name in [key if isinstance(key, str) else key.name]
    }
    return named.get


def _model(model: Model, place: str) -> LlmFn | LlmSource:
    given = cast("object", model)
    if isinstance(given, str | LlmProvider | LlmSource) or callable(given):
        return model_of(model)
    words = f"this is of type {type(given).__name__}; use a model, a provider or a model's name"
    raise DefinitionError([Fault(place, words)])
