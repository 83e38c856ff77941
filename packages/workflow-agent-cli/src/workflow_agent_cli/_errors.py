"""What running an agent can fail with, and whose fault it is.

WorkflowError
└── CliAgentError            `agent` is its name, `run` what is known of its run, if there was one
    ├── AgentSetupError          yours: the call of `create_cli_agent`, the workspace or the prompt
    │   └── AgentNotInstalled    this machine's: `command` is not there; nothing was begun
    ├── AgentFailed              the agent's, or with `run.status` its provider's: in their words
    │   └── AgentOutputTooLarge      it wrote without end and was stopped
    ├── AgentTimedOut            it took longer than it may and was stopped
    └── AgentInterrupted         nobody's: it was at work in a crash, and a person declined to go on

AgentFailed and AgentTimedOut are `RoleFailed` too: `on_failure` of a workflow leads on from them.
"""

from __future__ import annotations

from workflow_agent_cli._record import AgentRun
from workflow_protocol import RoleFailed, WorkflowError
from workflow_util_agent.process import ending

_RETRY = "to begin the turn again, run `uwf thread resume --fresh`"
_SHOWN_CHARS = 2000


class CliAgentError(WorkflowError):
    """An agent could not do its work. `agent` names it; `run` is what is known of its run."""

    def __init__(self, message: str, *, agent: str, run: AgentRun | None = None) -> None:
        self.agent = agent
        self.run = run
        super().__init__(message)


class AgentSetupError(CliAgentError, ValueError):
    """An agent can't be run like this. Nothing was begun."""


class AgentNotInstalled(AgentSetupError):
    """The command of an agent is not on this machine. `command` names it."""

    def __init__(self, agent: str, command: str, install: str) -> None:
        self.command = command
        how = f"install it with `{install}`" if install else "install it"
        super().__init__(
            f"{command!r} is not installed, or not on PATH; {how}, or give its path as "
            "`executable`, then resume the thread",
            agent=agent,
        )


class AgentFailed(CliAgentError, RoleFailed):
    """An agent ended without having done its work. The message quotes it."""


class AgentOutputTooLarge(AgentFailed):
    """An agent wrote more than it may, and was stopped."""


class AgentTimedOut(CliAgentError, RoleFailed):
    """An agent took longer than it may, and was stopped. `run` has what it said so far."""


class AgentInterrupted(CliAgentError):
    """An agent was at work when its process died, and a person decided not to go on."""


def error_of(agent: str, run: AgentRun) -> CliAgentError:
    """The error for a run that did not end well."""
    after = f"{_session_note(run)}; {_RETRY}"
    match run.how:
        case "not_started":
            return AgentSetupError(
                f"{agent} could not be started: {run.words}; {_RETRY}", agent=agent, run=run
            )
        case "timeout":
            message = (
                f"{agent} was stopped after {run.wall_s:.0f} s, which is its time limit; raise "
                f"timeout_s, or give it a smaller task{_quoted_failure(run)}{after}"
            )
            return AgentTimedOut(message, agent=agent, run=run)
        case "too_large":
            message = f"{agent} was stopped: {run.words}{after}"
            return AgentOutputTooLarge(message, agent=agent, run=run)
        case "failed" | "done":
            refused = f"its provider answered {run.status}" if run.status else ""
            code = ending(run.exit_code) if run.exit_code else ""
            why = ", ".join(part for part in (refused, code) if part)
            message = f"{agent} failed{f' ({why})' if why else ''}{_quoted_failure(run)}{after}"
            return AgentFailed(message, agent=agent, run=run)


def _quoted_failure(run: AgentRun) -> str:
    words = run.words.strip() or run.stderr.strip()
    if len(words) > _SHOWN_CHARS:
        words = f"{words[: _SHOWN_CHARS // 2]} … {words[-_SHOWN_CHARS // 2 :]}"
    return f". It says: {words}" if words else ""


def _session_note(run: AgentRun) -> str:
    return f". Its session is {run.session_id}" if run.session_id else ""
