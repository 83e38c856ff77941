"""The servers that `workflow.yaml` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from workflow_agent_react._errors import McpError
from workflow_agent_react.tools.mcp._server import McpServer

if TYPE_CHECKING:
    from workflow_register import McpServerConfig


async def configured_server(name: str, home: Path | None) -> McpServer:
    """Find a server in the configuration.

    Raises:
        McpError: it isn't there, or `workflow-register`, which reads it, isn't installed.
        ConfigError: the configuration is wrong.
    """
    try:
        import workflow_register as register
    except ImportError as error:
        reason = (
            "servers of workflow.yaml need workflow-register: install workflow-agent-react[mcp]"
        )
        raise McpError(name, reason) from error
    home = home or register.find_home()
    config = await to_thread.run_sync(register.effective_config, home)
    found = config.mcp.get(name)
    if found is None:
        known = ", ".join(config.mcp) or "none"
        path = register.config_path(home)
        raise McpError(name, f"`mcp:` in {path} has no server of this name; it has: {known}")
    return _server(name, found)


def _server(name: str, found: McpServerConfig) -> McpServer:
    return McpServer(
        name=name,
        command=found.command,
        env=found.env,
        folder=Path(found.folder).expanduser() if found.folder else None,
        url=found.url or "",
        headers=found.headers,
        trust_hints=found.trust_hints,
        timeout_s=found.timeout_s,
        start_timeout_s=found.start_timeout_s,
        list_timeout_s=found.list_timeout_s,
        close_timeout_s=found.close_timeout_s,
    )
