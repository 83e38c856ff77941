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
    more: tuple[str, ...]
    env: Mapping[str, str | Secret] = field(repr=False)
    names: Sequence[str]
    timeout_s: float
    at_most_tokens: int
    max_output_bytes: int

    @property
    def priced_as(self) -> str:
        """The name that prices go by."""
        return self.model or self.profile.name

    def words(self, session: str) -> list[str]:
        """The command line, without what may differ between machines, and without the prompt."""
        return self.profile.command_line(
            self.profile.command,
            prompt=PROMPT,
            model=self.model,
            session=session,
            report=REPORT,
            more=self.more,
        )

    def request(self, prompt: str, session: str) -> bytes:
        """What is asked for."""
        return msgspec.json.encode({"command": self.words(session), "prompt": prompt})


async def find_executable(
    settings: Settings, workspace: Path, prompt: str, environment: Environment
) -> str:
    """Find the agent's program, and make sure that it can be run at all.

    Raises:
        AgentNotInstalled: it is not there.
        AgentSetupError: the workspace is gone, or something can't be handed to a process.
    """
    profile = settings.profile
    if not await anyio.Path(workspace).is_dir():
        reason = f"the workspace {str(workspace)!r} is no folder; make it again and resume"
        raise AgentSetupError(reason, agent=profile.name)
    faults = [f"the variable {name!r}" for name in environment.unusable]
    faults += [
        f"the argument {word!r}" for word in (settings.model, *settings.more) if "\0" in word
    ]
    if profile.prompt_is_argument and "\0" in prompt:
        faults.append("the prompt")
    if faults:
        reason = f"{', '.join(faults)} can't be handed to a process: it holds a null character"
        raise AgentSetupError(reason, agent=profile.name)
    size = len(prompt.encode())
    if profile.prompt_is_argument and size > MAX_ARGUMENT_BYTES:
        reason = (
            f"the prompt has {size} bytes, and {profile.name} takes it as an argument, which may "
            f"have {MAX_ARGUMENT_BYTES}; lower quota_chars, or let the steps before say less"
        )
        raise AgentSetupError(reason, agent=profile.name)
    found = await to_thread.run_sync(_which, settings.executable, environment.values["PATH"])
    if found is None:
        raise AgentNotInstalled(profile.name, settings.executable, profile.install)
    return found


def _which(executable: str, path: str) -> str | None:
    found = shutil.which(executable, path=path)
    return None if found is None else os.path.abspath(found)
