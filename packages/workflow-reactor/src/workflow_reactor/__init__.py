"""Model providers, tools and structured replies over any OpenAI-compatible endpoint."""

from workflow_reactor._cas_get import CAS_GET, ObjectHost, cas_get
from workflow_reactor._errors import (
    ContentRefused,
    MaxRoundsExceeded,
    ModelNameError,
    NoProgress,
    ProviderConfigError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    ReactorError,
    ToolNameError,
    ToolSchemaError,
)
from workflow_reactor._extract import ExtractFn, create_extract
from workflow_reactor._kept import keep_open, kept
from workflow_reactor._known_endpoints import profile_for
from workflow_reactor._llm import (
    LlmFn,
    LlmSource,
    ask_model,
    llm_in_place,
    open_llm,
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
from workflow_reactor._named import NamedLlm, model_of, named_llm, note_model, noting_models
from workflow_reactor._provider import (
    DialectName,
    ForcedToolChoice,
    LlmProvider,
    Profile,
    ResponseFormat,
    Secret,
)
from workflow_reactor._reactor import ThreadReactorConfig, ThreadReactorFn, create_thread_reactor
from workflow_reactor._result_tool import (
    RESOLVE,
    ResultSchema,
)
from workflow_reactor._settings import ModelSettings
from workflow_reactor._shown_url import HIDDEN, base_url_fault, shown_url, without_keys
from workflow_reactor._told_call import CallOutcome, tell_call
from workflow_reactor._tool_result import ToolResult
from workflow_reactor.http._client import (
    HttpLlm,
    create_llm_fn,
)
from workflow_reactor.reply._calls import (
    make_call,
)
from workflow_reactor.reply._json_text import (
    NotOneValue,
    find_json,
)
from workflow_reactor.reply._reply import (
    NotAReply,
    read_reply,
)
from workflow_reactor.request._bodies import (
    Frame,
    Framer,
    RequestOptions,
    asks_strictly,
    response_format,
)
from workflow_reactor.request._conversation import (
    Conversation,
)
from workflow_reactor.request._tools import (
    ToolDefinition,
    ToolHandler,
)
from workflow_reactor.schemas._check import schema_faults
from workflow_reactor.schemas._nested_text import (
    unfold_json,
)
from workflow_reactor.schemas._walk import (
    find_schema,
    followed,
    map_schemas,
)

TYPE_CHECKING = False  # type checkers take it as true
if TYPE_CHECKING:
    from workflow_reactor.http._models import list_models

__all__ = [
    "CAS_GET",
    "HIDDEN",
    "RESOLVE",
    "AssistantMessage",
    "CallOutcome",
    "ContentRefused",
    "Conversation",
    "DialectName",
    "ExtractFn",
    "ForcedToolChoice",
    "Frame",
    "Framer",
    "HttpLlm",
    "LlmFn",
    "LlmProvider",
    "LlmSource",
    "MaxRoundsExceeded",
    "Message",
    "ModelNameError",
    "ModelSettings",
    "NamedLlm",
    "NoProgress",
    "NotAReply",
    "NotOneValue",
    "ObjectHost",
    "Profile",
    "ProviderConfigError",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "ReactorError",
    "RequestOptions",
    "ResponseFormat",
    "ResultSchema",
    "Secret",
    "ThreadReactorConfig",
    "ThreadReactorFn",
    "ToolCall",
    "ToolDefinition",
    "ToolHandler",
    "ToolNameError",
    "ToolResult",
    "ToolSchemaError",
    "ask_model",
    "asks_strictly",
    "assistant",
    "base_url_fault",
    "cas_get",
    "create_extract",
    "create_llm_fn",
    "create_thread_reactor",
    "find_json",
    "find_schema",
    "followed",
    "keep_open",
    "kept",
    "list_models",
    "llm_in_place",
    "make_call",
    "map_schemas",
    "model_of",
    "named_llm",
    "note_model",
    "noting_models",
    "open_llm",
    "profile_for",
    "read_reply",
    "response_format",
    "schema_faults",
    "shown_url",
    "system",
    "tell_call",
    "tool_result",
    "unfold_json",
    "user",
    "without_keys",
]


def __getattr__(name: str) -> object:
    if name == "list_models":  # with it comes httpx, which half of the commands do without
        from workflow_reactor.http._models import list_models

        return list_models
    raise AttributeError(f"module 'workflow_reactor' has no attribute {name!r}")
