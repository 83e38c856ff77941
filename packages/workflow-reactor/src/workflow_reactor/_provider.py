"""Where a model is, how to get in, and what that endpoint can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from workflow_reactor._errors import ProviderConfigError
from workflow_reactor._shown_url import base_url_fault, shown_url

_HEADER_SAFE = re.compile(r"[!-~]*")

DialectName = Literal["native", "json", "xml"]
ResponseFormat = Literal["json_schema", "json_object", "none"]
ForcedToolChoice = Literal["named", "required", "none"]


class Secret:
    """A string that no `repr`, log or error shows. `reveal()` gives it.

    Args:
        value: the string, or a function that finds it (in the environment, a keyring …). That is
            called when something is sent for the first time, so a replay needs no key.
    """

    __slots__ = ("_found", "_value")

    def __init__(self, value: str | Callable[[], str]) -> None:
        self._value = value
        self._found = value if isinstance(value, str) else None

    @property
    def is_known(self) -> bool:
        """Whether `reveal` has nothing to call any more."""
        return self._found is not None

    def reveal(self) -> str:
        """The secret itself: for the one place that sends it.

        Whatever the function that finds it raises, this raises.
        """
        if self._found is None:
            self._found = self._value if isinstance(self._value, str) else self._value()
        return self._found

    def __repr__(self) -> str:
        return "Secret('')" if self._value == "" else "Secret('…')"

    def __bool__(self) -> bool:
        return self._value != ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What an endpoint can do and may send. Where it can't, the adapters do without."""

    dialect: DialectName = "native"
    """How tools are offered when the adapter says `auto`."""
    response_format: ResponseFormat = "json_schema"
    strict_schemas: bool = False
    """Schemas are sent in their strict form, where they have one, with `strict: true`."""
    refs: bool = True
    """A schema may have definitions; else they are written out in place."""
    union_at_root: bool = True
    """The schema of `response_format` may be a union at its root; else it is made one object."""
    forced_tool_choice: ForcedToolChoice = "named"
    """How a request can make the model call a tool: by its name, just any, or not at all."""
    parallel_tool_calls: bool | None = None
    """What requests with tools say of several calls in one reply; `None`: nothing."""
    stop: bool = True
    """Stop sequences end a reply."""
    max_tokens: int | None = None
    """The most tokens that one reply may have; `None` leaves it to the provider."""
    max_tokens_field: str = "max_tokens"
    echo_reasoning: bool = True
    """Send `reasoning_content` and its like back with the turn it came with."""
    echo_call_ids: bool = True
    """Send a call's id back as it came. Else, and where it is missing or doubled, one of nine
    letters and digits stands in its place, which every known endpoint takes."""
    text_tool_calls: bool = False
    """Recognise a tool call that the model wrote into its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmProvider:
    """A model behind an OpenAI-compatible endpoint.

    Raises:
        ProviderConfigError: the base URL is not an http(s) URL or has a user or password in it, the
            model has no name, or the key can't go into a header.
    """

    base_url: str
    """Up to and without `/chat/completions`, such as `https://host/v1`."""
    model: str
    api_key: Secret = field(default_factory=lambda: Secret(""))
    timeout_s: float = 600.0
    """Seconds for one whole exchange."""
    max_attempts: int = 5
    """Requests for one reply, the first included."""
    max_wait_s: float = 60.0
    """Seconds that the waits between them may take together."""
    max_reply_bytes: int = 32 * 1024 * 1024
    """A larger reply is given up."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More fields for each request, such as `{"temperature": 0}`."""
    profile: Profile = field(default_factory=Profile)

    def __post_init__(self) -> None:
        if fault := base_url_fault(self.base_url):
            raise ProviderConfigError(f"base_url {shown_url(self.base_url)} {fault}")
        if self.api_key.is_known:
            self.revealed_key()
        if not self.model:
            raise ProviderConfigError(f"no model is named for {shown_url(self.base_url)}")

    def __repr__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        shown["base_url"] = shown_url(self.base_url)
        return f"LlmProvider({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def revealed_key(self) -> str:
        """The API key, which a header can carry.

        Raises:
            ProviderConfigError: it can't.
        """
        key = self.api_key.reveal()
        if not _HEADER_SAFE.fullmatch(key):
            raise ProviderConfigError(
                f"the API key for {shown_url(self.base_url)} has spaces, line ends or other "
                "characters that no header can carry; set it again"
            )
        return key

    def with_profile(self, **changes: Any) -> LlmProvider:
        """The same provider with some of its profile changed."""
        return replace(self, profile=replace(self.profile, **changes))
