"""ReAct adapter: the tool loop, its dialects and workspace tools."""

from workflow_agent_react._adapter import (
    ReactAdapterConfig,
    ReactConfigError,
    create_react_adapter,
    create_react_agent,
)
from workflow_agent_react._command import (
    CommandAdapter,
    CommandNotRun,
    CommandResult,
    command_adapter,
    command_tool,
)
from workflow_agent_react._errors import (
    BadArguments,
    GuardError,
    McpError,
    OutsideWorkspace,
    SandboxUnavailable,
    ToolClash,
    ToolDefinitionError,
    ToolError,
)
from workflow_agent_react._history import (
    CallHistory,
    PastCall,
)
from workflow_agent_react.dialects._dialect import (
    Dialect,
    DialectName,
    JsonDialect,
    NativeDialect,
    Turn,
)
from workflow_agent_react.dialects._written_call import read_written_call
from workflow_agent_react.dialects._xml_dialect import (
    XmlDialect,
)
from workflow_agent_react.guards._guards import (
    AllOf,
    Allow,
    Ask,
    Decision,
    Deny,
    Guard,
    ProposedCall,
    VersionedGuard,
    all_of,
    versioned,
)
from workflow_agent_react.tools._decorator import (
    tool,
)
from workflow_agent_react.tools._memory_tools import memory_tools
from workflow_agent_react.tools._toolset import (
    ToolPart,
    Toolset,
    ToolSource,
)
from workflow_agent_react.tools._workspace_tools import (
    workspace_tools,
)
from workflow_agent_react.tools.mcp._open import (
    McpToolset,
    mcp_toolset,
    open_mcp,
)
from workflow_agent_react.tools.mcp._server import (
    McpServer,
)

__all__ = [
    "AllOf",
    "Allow",
    "Ask",
    "BadArguments",
    "CallHistory",
    "CommandAdapter",
    "CommandNotRun",
    "CommandResult",
    "Decision",
    "Deny",
    "Dialect",
    "DialectName",
    "Guard",
    "GuardError",
    "JsonDialect",
    "McpError",
    "McpServer",
    "McpToolset",
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
    "ToolPart",
    "ToolSource",
    "Toolset",
    "Turn",
    "VersionedGuard",
    "XmlDialect",
    "all_of",
    "command_adapter",
    "command_tool",
    "create_react_adapter",
    "create_react_agent",
    "mcp_toolset",
    "memory_tools",
    "open_mcp",
    "read_written_call",
    "tool",
    "versioned",
    "workspace_tools",
]
