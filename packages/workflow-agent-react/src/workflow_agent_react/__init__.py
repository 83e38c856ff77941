"""ReAct adapter: the tool loop, its dialects and workspace tools."""

from workflow_agent_react._adapter import (
    ReactAdapterConfig,
    ReactConfigError,
    create_react_adapter,
    create_react_agent,
)
from workflow_agent_react._dialect import (
    Dialect,
    DialectName,
    JsonDialect,
    NativeDialect,
    Turn,
)
from workflow_agent_react._guards import (
    AllOf,
    Allow,
    Ask,
    CallHistory,
    Decision,
    Deny,
    Guard,
    PastCall,
    ProposedCall,
    VersionedGuard,
    all_of,
    versioned,
)
from workflow_agent_react._mcp import (
    McpServer,
    open_mcp,
)
from workflow_agent_react._tool_errors import (
    BadArguments,
    GuardError,
    McpError,
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
from workflow_agent_react._xml_dialect import (
    XmlDialect,
)

__all__ = [
    "AllOf",
    "Allow",
    "Ask",
    "BadArguments",
    "CallHistory",
    "Decision",
    "Deny",
    "Dialect",
    "DialectName",
    "Guard",
    "GuardError",
    "JsonDialect",
    "McpError",
    "McpServer",
    "NativeDialect",
    "OutsideWorkspace",
    "PastCall",
    "ProposedCall",
    "ReactAdapterConfig",
    "ReactConfigError",
    "SandboxUnavailable",
    "ToolClash",
    "ToolDefinitionError",
    "ToolError",
    "Toolset",
    "Turn",
    "VersionedGuard",
    "XmlDialect",
    "all_of",
    "create_react_adapter",
    "create_react_agent",
    "open_mcp",
    "tool",
    "versioned",
    "workspace_tools",
]
