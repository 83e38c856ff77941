"""How a model chooses its words: `temperature`, `top_p`, `seed`."""

from __future__ import annotations

import math

import msgspec

from workflow_reactor._errors import ProviderConfigError


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model chooses its words. What is `None` isn't sent: the provider decides.

    They are part of each request's bytes. An endpoint that doesn't take one refuses the request, or
    ignores it; nothing is left out silently here.

    Raises:
        ProviderConfigError: a value is no number, or outside of its range.
    """

    temperature: float | None = None
    """How freely words are chosen: 0 takes the most likely one; most endpoints stop at 1 or 2."""
    top_p: float | None = None
    """From 0 to 1: only the most likely words that have this probability together are chosen."""
    seed: int | None = None
    """The same seed asks for the same reply again. Endpoints try, and promise nothing."""

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0, math.inf)
        _check("top_p", self.top_p, 0, 1)
        _check("seed", self.seed, -(2**63), 2**63 - 1)
        if isinstance(self.seed, float):
            raise ProviderConfigError(f"seed is {self.seed!r}; it must be a whole number")

    def over(self, other: ModelSettings) -> ModelSettings:
        """These, and what the other has where these have nothing."""
        if other == NO_SETTINGS:
            return self
        return msgspec.convert({**other.fields(), **self.fields()}, ModelSettings)

    def fields(self) -> dict[str, float | int]:
        """Those that are set, by the names that requests have for them."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }


def _check(name: str, value: object, least: float, most: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProviderConfigError(f"{name} is {value!r}; it must be a number")
    if not (math.isfinite(value) and least <= value <= most):
        up_to = "or more" if most == math.inf else f"to {most:g}"
        raise ProviderConfigError(f"{name} is {value!r}; it must be {least:g} {up_to}")


NO_SETTINGS = ModelSettings()
