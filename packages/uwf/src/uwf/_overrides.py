"""What a person sets for one run alone: other models, other limits."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from uwf._errors import UsageError
from uwf.arguments._types import guess_word, model_choice
from workflow_execute import Limits
from workflow_register import (
    EVERY_SCENE,
    ConfiguredLlm,
    configured_llm,
    effective_config,
    find_home,
    overriding_models,
)


@dataclass(frozen=True, slots=True)
class Overrides:
    """The options `--model` and `--limit` of a run. Of two for the same, the last counts."""

    models: dict[str, str] = field(default_factory=dict[str, str])
    """`PROVIDER/MODEL` by scene; under `EVERY_SCENE` that of all other scenes."""
    limits: dict[str, float | None] = field(default_factory=dict[str, "float | None"])
    """By the names in `Limits`; `None` is no limit."""

    def limit(self, limits: Limits) -> Limits:
        """The limits with those that are given."""
        return replace(limits, **self.limits)

    def serve(self) -> AbstractContextManager[None]:
        """Let the models serve their scenes while the block runs."""
        return overriding_models(self.models)

    def check_models(self, used: Iterable[ConfiguredLlm]) -> list[ConfiguredLlm]:
        """The models that are given, to be checked as those of the workflow are.

        Args:
            used: what the workflow has made when it was imported.

        Raises:
            UsageError: a scene is neither configured nor used.
        """
        with overriding_models({}):
            configured = effective_config(find_home()).models
        scenes = {each.scene for each in used} | configured.keys()
        for scene in self.models:
            if scene not in {EVERY_SCENE, "default", *scenes}:
                known = sorted({"default", *scenes})
                guess = guess_word(scene, known) or f"; there are {', '.join(known)}"
                raise UsageError(f"--model: no role uses the scene {scene!r}{guess}")
        return [configured_llm(model) for model in self.models.values()]

    @property
    def model_words(self) -> list[str]:
        """The options for models, as they are typed."""
        named = ((scene, model) for scene, model in self.models.items())
        return [
            word
            for scene, model in named
            for word in ("--model", f"{scene}={model}" if scene != EVERY_SCENE else model)
        ]

    @property
    def lines(self) -> tuple[str, ...]:
        """Each option as it is typed."""
        words = self.model_words
        models = [shlex.join(words[at : at + 2]) for at in range(0, len(words), 2)]
        limits = [
            f"--limit {name.removeprefix('max_')}={'none' if value is None else f'{value:g}'}"
            for name, value in self.limits.items()
        ]
        return (*models, *limits)


def serve_recorded(lines: Sequence[str]) -> AbstractContextManager[None]:
    """Let the models of a run serve again while the block runs, by the options that it recorded."""
    words = [shlex.split(line) for line in lines]
    models = dict(model_choice(value) for name, value in words if name == "--model")
    return Overrides(models).serve()


def read_overrides(
    models: Sequence[tuple[str, str]] | None,
    limits: Sequence[tuple[str, float | None]] | None,
) -> Overrides:
    """Take up what the command line gives."""
    return Overrides(dict(models or ()), dict(limits or ()))
