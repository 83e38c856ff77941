"""What an agent is run with, and whether it can be run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from workflow_agent_cli._environment import Environment
from workflow_agent_cli._errors import AgentNotInstalled, AgentSetupError
from workflow_agent_cli.agents._profiles import PROMPT, REPORT, AgentProfile
from workflow_reactor import Secret

MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""What Linux takes in one argument (MAX_ARG_STRLEN, with the null byte)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `create_cli_agent` was given."""

    profile: AgentProfile
    model: str
    executable: str
    more_arguments: tuple[str, ...]
    env: Mapping[str, str | Secret] = field(repr=False)
    inherited_names: Sequence[str]
    timeout_s: float
    at_most_tokens: int
    max_output_bytes: int

    @property
    def priced_as(self) -> str:
        """The name that prices go by."""
        return self.model or self.profile.name

    def recorded_command(self, session: str) -> list[str]:
        """The command line, without what may differ between machines, and without the prompt."""
        return self.profile.command_line(
            self.profile.command,
            prompt=PROMPT,
            model=self.model,
            session=session,
            report=REPORT,
            more_arguments=self.more_arguments,
        )

    def request(self, prompt: str, session: str) -> bytes:
        """What is asked for."""
        return msgspec.json.encode({"command": self.recorded_command(session), "prompt": prompt})


async def find_executable(
    settings: Settings, workspace: Path, prompt: str, environment: Environment
) -> str:
    """Find the agent's program, and make sure that it can be run at all.

    Raises:
        AgentNotInstalled: it is not there.
        AgentSetupError: the workspace is gone, or something can't be passed to a process.
    """
    profile = settings.profile
    if not await anyio.Path(workspace).is_dir():
        reason = f"the workspace {str(workspace)!r} is not a folder; create it again, then resume"
        raise AgentSetupError(reason, agent=profile.name)
    faults = [f"the variable {name!r}" for name in environment.unusable_names]
    faults += [
        f"the argument {word!r}"
        for word in (settings.model, *settings.more_arguments)
        if "\0" in word
    ]
    if profile.prompt_is_argument and "\0" in prompt:
        faults.append("the prompt")
    if faults:
        reason = (
            f"{', '.join(faults)} can't be passed to a process; remove null characters, and "
            "give each variable a name without '='"
        )
        raise AgentSetupError(reason, agent=profile.name)
    size = len(prompt.encode())
    if profile.prompt_is_argument and size > MAX_ARGUMENT_BYTES:
        reason = (
            f"the prompt has {size} bytes, and {profile.name} takes it as an argument of at most "
            f"{MAX_ARGUMENT_BYTES}; lower quota_chars, or make the results of earlier steps shorter"
        )
        raise AgentSetupError(reason, agent=profile.name)
    found = await to_thread.run_sync(_find_on_path, settings.executable, environment.values["PATH"])
    if found is None:
        raise AgentNotInstalled(profile.name, settings.executable, profile.install)
    return found


def _find_on_path(executable: str, path: str) -> str | None:
    found = shutil.which(executable, path=path)
    return None if found is None else os.path.abspath(found)
