"""What a configuration says, once it is known to be right. Building one by hand checks nothing.

These are plain dataclasses, so that using a configuration does not load the validator that reading
one needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from workflow_reactor import (
    DialectName,
    ForcedToolChoice,
    ModelSettings,
    ResponseFormat,
    shown_url,
)

FORBID_EXTRA: dict[str, Any] = {"extra": "forbid"}

OPENAI_KIND = "openai"
"""The kind of provider that is reached by its base URL alone."""

DEFAULT_SCENE = "default"
"""The scene that serves those which have no model of their own."""

SandboxRule = Literal["auto", "require"]

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
        default=None, metadata=_about("how tools are offered: native, json or xml")
    )
    response_format: ResponseFormat | None = field(
        default=None, metadata=_about("what the endpoint can be asked to hold its reply to")
    )
    strict_schemas: bool | None = field(
        default=None, metadata=_about("whether schemas are sent with strict: true", strict=True)
    )
    refs: bool | None = field(
        default=None, metadata=_about("whether a schema may have $ref and $defs", strict=True)
    )
    union_at_root: bool | None = field(
        default=None,
        metadata=_about("whether a reply's schema may have anyOf at its root", strict=True),
    )
    forced_tool_choice: ForcedToolChoice | None = field(
        default=None,
        metadata=_about("how a request can make the model call a tool: by its name, or just any"),
    )
    parallel_tool_calls: bool | None = field(
        default=None,
        metadata=_about("what is sent as parallel_tool_calls; without it, nothing", strict=True),
    )
    stop: bool | None = field(
        default=None, metadata=_about("whether stop sequences end a reply", strict=True)
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
    echo_call_ids: bool | None = field(
        default=None, metadata=_about("whether a call's id is sent back as it came", strict=True)
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
    headers: dict[str, str] = field(
        default_factory=dict[str, str],
        repr=False,
        metadata=_about("more headers for each request; a value may hold ${NAME} references"),
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
        metadata=_about("more fields for each request, such as {reasoning_effort: low}"),
    )
    profile: ProfileOverrides = field(
        default_factory=ProfileOverrides,
        metadata=_about("what the endpoint can do, where the defaults are wrong"),
    )

    def __repr__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        shown["base_url"] = self.base_url and shown_url(self.base_url)
        return f"ProviderConfig({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model of a scene, and how it chooses its words. `None` leaves that to the provider."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    model: str = field(metadata=_about("provider/model"))
    temperature: float | None = field(
        default=None,
        metadata=_about(
            "how freely words are chosen: from 0, at most endpoints up to 1 or 2",
            strict=True,
            ge=0,
            allow_inf_nan=False,
        ),
    )
    top_p: float | None = field(
        default=None,
        metadata=_about("from 0 to 1: the share of the most likely words", strict=True, ge=0, le=1),
    )
    seed: int | None = field(
        default=None,
        metadata=_about(
            "a whole number; the same one asks for the same reply again",
            strict=True,
            ge=-(2**63),
            le=2**63 - 1,
        ),
    )

    @property
    def settings(self) -> ModelSettings:
        """How it chooses its words."""
        return ModelSettings(temperature=self.temperature, top_p=self.top_p, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model costs per million tokens, in the currency of `max_cost`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    input: float = field(metadata=_about("per million input tokens", ge=0, allow_inf_nan=False))
    output: float = field(metadata=_about("per million output tokens", ge=0, allow_inf_nan=False))
    cached: float | None = field(
        default=None,
        metadata=_about("per million input tokens from a cache", ge=0, allow_inf_nan=False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where the engine stops a thread that doesn't stop by itself. `None` is no limit."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    max_steps: int = field(
        default=100, metadata=_about("role turns of one thread", strict=True, ge=1)
    )
    max_rounds: int | None = field(
        default=None, metadata=_about("model calls in one turn of a role", strict=True, ge=1)
    )
    max_tokens: int | None = field(
        default=None, metadata=_about("input and output tokens of a thread", strict=True, ge=1)
    )
    max_cost: float | None = field(
        default=None,
        metadata=_about("what a thread may cost, by `prices`", gt=0, allow_inf_nan=False),
    )
    max_seconds: float | None = field(
        default=None,
        metadata=_about("seconds that a thread may run", gt=0, allow_inf_nan=False),
    )
    max_depth: int = field(
        default=8, metadata=_about("child threads one below the other", strict=True, ge=0)
    )
    prices: dict[str, ModelPrice] = field(
        default_factory=dict[str, ModelPrice],
        metadata=_about("prices by the model's name, such as {gpt-4.1: {input: 2, output: 8}}"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorConfig:
    """A model that looks at each thread now and then, and may stop it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    every: int = field(metadata=_about("steps from one look to the next", strict=True, ge=1))
    model: str = field(
        default=DEFAULT_SCENE, metadata=_about("who looks: a scene of `models`, or provider/model")
    )
    prompt: str | None = field(
        default=None,
        metadata=_about("what it watches for, instead of threads that go in circles", min_length=1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerConfig:
    """Where an MCP server is: a command to start, or the URL of a running one.

    `${NAME}` in `env`, `headers` and `url` stands for an environment variable.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    command: list[str] = field(
        default_factory=list[str],
        metadata=_about("the program and its arguments, such as [npx, -y, some-server]"),
    )
    env: dict[str, str] = field(
        default_factory=dict[str, str],
        repr=False,
        metadata=_about("variables for the command, such as {TOKEN: ${MY_TOKEN}}"),
    )
    folder: str | None = field(default=None, metadata=_about("where the command is started"))
    url: str | None = field(
        default=None, repr=False, metadata=_about("a streamable HTTP endpoint: https://host/mcp")
    )
    headers: dict[str, str] = field(
        default_factory=dict[str, str],
        repr=False,
        metadata=_about("headers for each request, such as {Authorization: Bearer ${MY_TOKEN}}"),
    )
    trust_hints: bool = field(
        default=False,
        metadata=_about("believe which of its tools only read or may be repeated", strict=True),
    )
    timeout_s: float = field(
        default=120.0,
        metadata=_about("seconds for one call", strict=True, gt=0, allow_inf_nan=False),
    )
    start_timeout_s: float = field(
        default=60.0,
        metadata=_about("seconds until it is ready", strict=True, gt=0, allow_inf_nan=False),
    )
    list_timeout_s: float = field(
        default=30.0,
        metadata=_about("seconds for its list of tools", strict=True, gt=0, allow_inf_nan=False),
    )
    close_timeout_s: float = field(
        default=2.0,
        metadata=_about("seconds to end by itself", strict=True, gt=0, allow_inf_nan=False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The contents of `workflow.yaml`. Keys of providers are references here, never resolved."""

    __pydantic_config__: ClassVar[dict[str, Any]] = FORBID_EXTRA

    providers: dict[str, ProviderConfig] = field(
        default_factory=dict[str, ProviderConfig], metadata=_about("providers by a name of yours")
    )
    models: dict[str, ModelConfig] = field(
        default_factory=dict[str, ModelConfig],
        metadata=_about(
            "provider/model by scene, or a mapping with `model`, `temperature`, `top_p`, `seed`; "
            "`default` serves the scenes that have none"
        ),
    )
    limits: Limits = field(default_factory=Limits, metadata=_about("where the engine stops"))
    sandbox: SandboxRule = field(
        default="auto",
        metadata=_about(
            "auto: shell commands run in a sandbox if the workflow says so and it works here; "
            "require: in a sandbox or not at all"
        ),
    )
    supervisor: SupervisorConfig | None = field(
        default=None, metadata=_about("who looks at threads and may stop them; nobody if not given")
    )
    mcp: dict[str, McpServerConfig] = field(
        default_factory=dict[str, McpServerConfig],
        metadata=_about("MCP servers by a name of yours, for `mcp_toolset(NAME)`"),
    )
