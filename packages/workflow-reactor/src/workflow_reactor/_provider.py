"""Where a model is, how to get in, and what that endpoint can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast
from urllib.parse import unquote_plus, urlsplit

from workflow_reactor._errors import ProviderConfigError
from workflow_reactor._known_endpoints import profile_for
from workflow_reactor._profile import DialectName, ForcedToolChoice, Profile, ResponseFormat
from workflow_reactor._settings import NO_SETTINGS, ModelSettings
from workflow_reactor._shown_url import HIDDEN, base_url_fault, shown_url

__all__ = ["DialectName", "ForcedToolChoice", "LlmProvider", "Profile", "ResponseFormat", "Secret"]

_HEADER_SAFE = re.compile(r"[!-~]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type"}
    | {"host", "transfer-encoding", "expect", "keep-alive", "te", "trailer", "upgrade"}
)
_NAMES_A_KEY = re.compile(r"key|token|secret|sig|pass|auth|code|cred", re.IGNORECASE)
_AS_KNOWN = Profile()


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
class LlmProvider:
    """A model behind an OpenAI-compatible endpoint.

    Raises:
        ProviderConfigError: the base URL is not an http(s) URL or has a user or password in it, the
            model has no name, or the key can't go into a header.
    """

    base_url: str
    """Up to and without `/chat/completions`, such as `https://host/v1`; it may have a query."""
    model: str
    """The name that goes into each request."""
    name: str = ""
    """What observers call it; the host of the base URL if not given."""
    api_key: Secret = field(default_factory=lambda: Secret(""))
    """Sent as a bearer token; looked up when something is sent. Empty: nothing is sent."""
    timeout_s: float = 600.0
    """Seconds for one whole exchange."""
    max_attempts: int = 5
    """Requests for one reply, the first included."""
    max_wait_s: float = 60.0
    """Seconds that the waits between them may take together."""
    max_reply_bytes: int = 32 * 1024 * 1024
    """A larger reply is given up."""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More fields for each request, such as `{"reasoning_effort": "low"}`."""
    settings: ModelSettings = NO_SETTINGS
    """How the model chooses its words; before what `extra_body` says of the same."""
    headers: Mapping[str, str | Secret] = field(default_factory=dict[str, str | Secret], repr=False)
    """More headers for each request, such as `{"api-key": Secret(key)}`. No value is ever shown."""
    profile: Profile = _AS_KNOWN
    """What the endpoint can do; `profile_for(base_url, model)` if not given."""

    def __post_init__(self) -> None:
        if fault := base_url_fault(self.base_url):
            raise ProviderConfigError(f"base_url {shown_url(self.base_url)} {fault}")
        if not isinstance(cast("object", self.api_key), Secret):
            raise ProviderConfigError("api_key is no Secret; write Secret(key)")
        if self.api_key.is_known:
            self.revealed_key()
        self._check_headers()
        if self.profile is _AS_KNOWN:
            object.__setattr__(self, "profile", profile_for(self.base_url, self.model))
        if not self.model:
            raise ProviderConfigError(f"no model is named for {shown_url(self.base_url)}")

    def __repr__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        shown["base_url"] = shown_url(self.base_url)
        shown["headers"] = dict.fromkeys(self.headers, HIDDEN)
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

    def revealed_headers(self) -> dict[str, str]:
        """The headers with their values.

        Raises:
            ProviderConfigError: a value can't be sent.
        """
        revealed = {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in self.headers.items()
        }
        for name, value in revealed.items():
            if not _HEADER_VALUE.fullmatch(value):
                raise ProviderConfigError(
                    f"the value of the header {name!r} is empty, or has line ends or other "
                    "characters that no header can carry; set it again"
                )
        return revealed

    def secrets(self) -> list[str]:
        """What no message may show: the key, the values of headers with their words, and keys that
        stand in the base URL's query."""
        values = list(self.revealed_headers().values())
        for pair in re.split("[&;]", urlsplit(self.base_url).query):
            name, _, value = pair.partition("=")
            if _NAMES_A_KEY.search(name):
                values += [value, unquote_plus(value)]
        words = [word for value in values for word in re.split(r"[\s,;=]+", value)]
        return sorted({self.api_key.reveal(), *values, *words} - {""}, key=len, reverse=True)

    def _check_headers(self) -> None:
        names = [name.lower() for name in self.headers]
        for name, value in cast("Mapping[str, object]", self.headers).items():
            if names.count(name.lower()) > 1:
                raise ProviderConfigError(f"the header {name!r} is set twice; keep one")
            if not isinstance(value, str | Secret):
                kind = type(value).__name__
                raise ProviderConfigError(
                    f"the value of the header {name!r} is of type {kind}; use a string or a Secret"
                )
            if not _HEADER_NAME.fullmatch(name):
                raise ProviderConfigError(f"{name!r} is no name for a header")
            if name.lower() in _OWN_HEADERS:
                raise ProviderConfigError(
                    f"the header {name!r} can't be set: it is part of sending"
                )
        if all(isinstance(each, str) or each.is_known for each in self.headers.values()):
            self.revealed_headers()

    def with_profile(self, **changes: Any) -> LlmProvider:
        """The same provider with some of its profile changed."""
        return replace(self, profile=replace(self.profile, **changes))
