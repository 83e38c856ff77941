"""ReAct adapter: the tool loop, its dialects and workspace tools."""

from workflow_agent_react._adapter import (
    ReactAdapterConfig,
    ReactConfigError,
    create_react_adapter,
)
from workflow_agent_react._dialect import (
    Dialect,
    DialectName,
    JsonDialect,
    NativeDialect,
    Turn,
)
from workflow_agent_react._tool_errors import (
    BadArguments,
    OutsideWorkspace,
    SandboxUnavailable,
    ToolClash,
    ToolDefinitionError,
    ToolError,
)
from workflow_agent_react._toolset import (
    Toolset,
    tool,
)
from workflow_agent_react._workspace_tools import (
    workspace_tools,
)

__all__ = [
    "BadArguments",
    "Dialect",
    "DialectName",
    "JsonDialect",
    "NativeDialect",
    "OutsideWorkspace",
    "ReactAdapterConfig",
    "ReactConfigError",
    "SandboxUnavailable",
    "ToolClash",
    "ToolDefinitionError",
    "ToolError",
    "Toolset",
    "Turn",
    "create_react_adapter",
    "tool",
    "workspace_tools",
]
