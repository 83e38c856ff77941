"""Agents of the command line (claude, codex, hermes, …, any command) as adapters."""

from workflow_agent_cli._agent import (
    create_cli_agent,
)
from workflow_agent_cli._errors import (
    AgentFailed,
    AgentInterrupted,
    AgentNotInstalled,
    AgentOutputTooLarge,
    AgentSetupError,
    AgentTimedOut,
    CliAgentError,
)
from workflow_agent_cli._record import (
    AgentRun,
)
from workflow_agent_cli.agents._profiles import (
    PROFILES,
    AgentProfile,
)
from workflow_agent_cli.agents._reading import (
    LineReader,
    Reading,
    ReportReader,
)

__all__ = [
    "PROFILES",
    "AgentFailed",
    "AgentInterrupted",
    "AgentNotInstalled",
    "AgentOutputTooLarge",
    "AgentProfile",
    "AgentRun",
    "AgentSetupError",
    "AgentTimedOut",
    "CliAgentError",
    "LineReader",
    "Reading",
    "ReportReader",
    "create_cli_agent",
]
