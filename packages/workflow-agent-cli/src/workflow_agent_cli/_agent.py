"""`create_cli_agent`: an agent of the command line as an `AgentFn`, run once whatever happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workflow_agent_cli._errors import AgentSetupError
from workflow_agent_cli._settings import Settings
from workflow_agent_cli._turn import run_turn
from workflow_agent_cli.agents._profiles import PROFILES, AgentProfile, profile_for_command
from workflow_protocol import AgentFn, ThreadContext
from workflow_reactor import Secret
from workflow_util_agent import DEFAULT_QUOTA_CHARS, build_thread_input

DEFAULT_TIMEOUT_S = 1800.0


def create_cli_agent(
    agent: str | AgentProfile | None = None,
    *,
    command: Sequence[str] | None = None,
    model: str = "",
    executable: str = "",
    more_arguments: Sequence[str] = (),
    env: Mapping[str, str | Secret] | None = None,
    inherit: Sequence[str] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
    at_most_tokens: int = 1_000_000,
    max_output_bytes: int = 8 * 1024 * 1024,
    quota_chars: int = DEFAULT_QUOTA_CHARS,
) -> AgentFn:
    """Make an agent that works as a process of its own in the thread's workspace.

    It is given the role's prompt and the thread (`build_thread_input`). It runs once: its result
    is in the journal, also if it failed. If this process dies or is stopped while the agent is at
    work, the agent is killed with all its processes, and when the turn is taken up again a person
    is asked, since it may have changed files: it then goes on in its session, where the agent can
    do that and had one, or begins again. `agent_to_adapter` makes an adapter of it.

    Args:
        agent: a name in `PROFILES`, or a profile of your own.
        command: instead, any command that prints its final text. It gets the prompt in place of
            the argument `"{prompt}"`, or on standard input if it has none.
        model: the model that the agent should use, in its own words; its default if not given.
            Prices of limits go by it, or by the agent's name.
        executable: the program, where it is not on `PATH`.
        more_arguments: more words for the command line. They are recorded: keys belong in `env`.
        env: variables for the agent. Their values are not recorded.
        inherit: names of variables that it gets from this process. It gets a few harmless ones
            and those of its own provider anyway, and no others.
        timeout_s: seconds for one run.
        at_most_tokens: what a run may take, for the limits of its thread. It is set aside before
            the run, and counted where the agent doesn't say what it took.
        max_output_bytes: of its text, or of a line where it speaks in lines.
        quota_chars: for `build_thread_input`.

    The agent raises `AgentNotInstalled` or `AgentSetupError` where it can't be run, `AgentFailed`,
    `AgentTimedOut` or `AgentOutputTooLarge` where its run didn't end well, and `AgentInterrupted`
    where a person declines to go on.

    Raises:
        AgentSetupError: the agent is not known, or an option can't be used.
    """
    profile = _profile(agent, command)
    name = profile.name
    if model and not profile.model:
        raise AgentSetupError(
            f"{name} has no option for a model; put the model into `command`", agent=name
        )
    if timeout_s <= 0 or at_most_tokens < 0 or max_output_bytes <= 0:
        reason = "timeout_s and max_output_bytes must be above 0, at_most_tokens at least 0"
        raise AgentSetupError(reason, agent=name)
    settings = Settings(
        profile=profile,
        model=model,
        executable=executable or profile.command,
        more_arguments=tuple(more_arguments),
        env=dict(env or {}),
        inherited_names=(*profile.env, *inherit),
        timeout_s=timeout_s,
        at_most_tokens=at_most_tokens,
        max_output_bytes=max_output_bytes,
    )

    async def run_cli_agent(ctx: ThreadContext, prompt: str) -> str:
        text = f"{prompt}\n\n{build_thread_input(ctx, quota_chars=quota_chars)}"
        return await run_turn(settings, ctx, text.encode("utf-8", "replace").decode())

    return run_cli_agent


def _profile(agent: str | AgentProfile | None, command: Sequence[str] | None) -> AgentProfile:
    known = ", ".join(PROFILES)
    if isinstance(command, str) or not (bool(agent) ^ bool(command)):
        reason = f"name an agent ({known}), or give command=['program', 'argument', …]"
        raise AgentSetupError(reason, agent="")
    if isinstance(agent, AgentProfile):
        return agent
    if command:
        return profile_for_command(command)
    assert agent is not None  # one of the two is
    if agent not in PROFILES:
        reason = f"there is no agent {agent!r}; use one of {known}, or give command=[…]"
        raise AgentSetupError(reason, agent=agent)
    return PROFILES[agent]
