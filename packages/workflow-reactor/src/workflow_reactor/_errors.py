"""What a model call or a loop over it can fail with.

WorkflowError
└── ReactorError
    ├── ProviderError          a request failed; `status`, `provider_message`, `attempts`
    │   ├── ProviderUnavailable    try again later: network, 429, 5xx, garbage, after all retries
    │   └── ProviderRefused        fix the request, the key or the account: it will fail again
    │       └── ContentRefused         shorten or change the conversation: too long, or not allowed
    ├── ProviderConfigError    fix the provider's settings
    ├── ModelNameError         install what finds models by name; or the name is empty
    ├── ToolNameError          rename the tool; `name`
    ├── ToolSchemaError        fix the tool's parameters; `name`
    ├── MaxRoundsExceeded      the model did not finish in its rounds; `messages`, `rounds`
    └── NoProgress             the model repeats itself; `messages`, `rounds`

ProviderError, MaxRoundsExceeded and NoProgress are `RoleFailed` too: `on_failure` of a workflow
leads on from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from workflow_protocol import RoleFailed, WorkflowError
from workflow_reactor._messages import Message


class ReactorError(WorkflowError):
    """A model call, or the loop around it, could not go on."""


class ProviderConfigError(ReactorError):
    """The settings of a provider can't work."""


class ModelNameError(ReactorError):
    """A model is named, and nothing installed knows names."""


class ToolNameError(ReactorError, ValueError):
    """A tool's name is none that providers take. `name` is what it was to be."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is no name for a tool; use letters, digits, _ and -, at most 64 of them"
        )


class ToolSchemaError(ReactorError):
    """The parameters of a tool can't be offered or checked. `name` is the tool's."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"the parameters of the tool {name!r} can't be used: {reason}")


class ProviderError(ReactorError, RoleFailed):
    """The provider did not give a usable reply. The message quotes what it said.

    Attributes:
        status: the HTTP status, or `None` when there was no HTTP reply.
        provider_message: the provider's own words, cut to 2,000 characters.
        attempts: how many requests were sent.
        retry_after_s: how long the provider asked to wait, if it did.
        messages: the conversation that could not go on, where a loop asked.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        provider_message: str = "",
        attempts: int = 1,
        retry_after_s: float | None = None,
    ) -> None:
        self.status = status
        self.provider_message = provider_message
        self.attempts = attempts
        self.retry_after_s = retry_after_s
        self.messages: tuple[Message, ...] = ()
        super().__init__(message)


class ProviderUnavailable(ProviderError):
    """A fault that may pass: the request was right, and worth sending again later."""


class ProviderRefused(ProviderError):
    """A fault that stays: the same request will be refused again."""


class ContentRefused(ProviderRefused):
    """The conversation itself is refused: it is too long, or against the provider's policy."""


class _LoopError(ReactorError, RoleFailed):
    def __init__(self, message: str, *, messages: Sequence[Message], rounds: int) -> None:
        self.messages = tuple(messages)
        self.rounds = rounds
        super().__init__(message)


class MaxRoundsExceeded(_LoopError):
    """The model used all its rounds without a valid result.

    Attributes:
        messages: the whole conversation.
        rounds: how many model calls were made.
    """


class NoProgress(_LoopError):
    """The model kept making the same calls with the same results after it was told.

    Attributes:
        messages: the whole conversation.
        rounds: how many model calls were made.
    """
