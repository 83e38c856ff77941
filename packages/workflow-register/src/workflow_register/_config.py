"""What a configuration says, once it is known to be right. Building one by hand checks nothing.

These are plain dataclasses, so that using a configuration does not load the validator that reading
one needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from workflow_reactor import DialectName

FORBID_EXTRA: dict[str, Any] = {"extra": "forbid"}

OPENAI_KIND = "openai"
"""The kind of provider that is reached by its base URL alone."""

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A value that is kept in an environment variable."""


def _about(description: str, **rules: object) -> dict[str, object]:
    """Field metadata that pydantic reads: what the field is for, and the bounds of its value."""
    return {"description": description, **rules}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOverrides:
    """What an endpoint can do, where it is not what `profile_for` supposes. `None`: as supposed."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    dialect: DialectName | None = field(
        default=None, metadata=_about("how tools are offered: native or json")
    )
    response_format: Literal["json_schema", "json_object", "none"] | None = field(
        default=None, metadata=_about("what the endpoint can be asked to hold its reply to")
    )
    forced_tool_choice: bool | None = field(
        default=None,
        metadata=_about("whether a request may name the one tool to call", strict=True),
    )
    max_tokens: int | None = field(
        default=None, metadata=_about("the most tokens of one reply", strict=True, ge=1)
    )
    max_tokens_field: str | None = field(
        default=None, metadata=_about("the name of the request's field for max_tokens")
    )
    echo_reasoning: bool | None = field(
        default=None, metadata=_about("whether reasoning is sent back with its turn", strict=True)
    )
    text_tool_calls: bool | None = field(
        default=None,
        metadata=_about("whether tool calls written into the text are recognised", strict=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """Where a provider's models are and how to get in."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    kind: str = field(
        default=OPENAI_KIND,
        metadata=_about("openai for an OpenAI-compatible endpoint, or a plug-in such as local"),
    )
    base_url: str | None = field(
        default=None, metadata=_about("up to and without /chat/completions: https://host/v1")
    )
    api_key: str | None = field(
        default=None,
        repr=False,
        metadata=_about("the environment variable that has the key, as ${OPENAI_API_KEY}"),
    )
    timeout_s: float | None = field(
        default=None,
        metadata=_about("seconds for one whole exchange", strict=True, gt=0, allow_inf_nan=False),
    )
    max_attempts: int | None = field(
        default=None,
        metadata=_about("requests for one reply, the first included", strict=True, ge=1),
    )
    extra_body: dict[str, Any] = field(
        default_factory=dict[str, Any],
        metadata=_about("more fields for each request, such as {temperature: 0}"),
    )
    profile: ProfileOverrides = field(
        default_factory=ProfileOverrides,
        metadata=_about("what the endpoint can do, where the defaults are wrong"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where the engine stops a thread that doesn't stop by itself."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    max_steps: int = field(
        default=100, metadata=_about("role turns of one thread", strict=True, ge=1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The contents of `workflow.yaml`. Keys of providers are references here, never resolved."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    providers: dict[str, ProviderConfig] = field(
        default_factory=dict[str, ProviderConfig], metadata=_about("providers by a name of yours")
    )
    models: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=_about("provider/model by scene; `default` serves the scenes that have none"),
    )
    limits: Limits = field(default_factory=Limits, metadata=_about("where the engine stops"))
