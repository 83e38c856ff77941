"""Model providers, tools and structured replies over any OpenAI-compatible endpoint."""

from workflow_reactor._errors import (
    MaxRoundsExceeded,
    NoProgress,
    ProviderConfigError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    ReactorError,
)
from workflow_reactor._json_text import (
    NotOneValue,
    find_json,
)
from workflow_reactor._llm import (
    HttpLlm,
    LlmFn,
    LlmSource,
    RequestOptions,
    ask_model,
    create_llm_fn,
    open_llm,
    response_format,
)
from workflow_reactor._messages import (
    AssistantMessage,
    Message,
    ToolCall,
    assistant,
    system,
    tool_result,
    user,
)
from workflow_reactor._provider import (
    DialectName,
    LlmProvider,
    Profile,
    Secret,
)
from workflow_reactor._reply import (
    NotAReply,
    make_call,
    read_reply,
)
from workflow_reactor._result import (
    RESOLVE,
    ResultSchema,
)
from workflow_reactor._tools import (
    ToolDefinition,
    ToolHandler,
)

__all__ = [
    "RESOLVE",
    "AssistantMessage",
    "DialectName",
    "HttpLlm",
    "LlmFn",
    "LlmProvider",
    "LlmSource",
    "MaxRoundsExceeded",
    "Message",
    "NoProgress",
    "NotAReply",
    "NotOneValue",
    "Profile",
    "ProviderConfigError",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "ReactorError",
    "RequestOptions",
    "ResultSchema",
    "Secret",
    "ToolCall",
    "ToolDefinition",
    "ToolHandler",
    "ask_model",
    "assistant",
    "create_llm_fn",
    "find_json",
    "make_call",
    "open_llm",
    "read_reply",
    "response_format",
    "system",
    "tool_result",
    "user",
]
