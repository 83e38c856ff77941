"""The engine's limits and supervisor as `workflow.yaml` has them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, TypedDict

from workflow_execute import Limits, Price, SupervisorFn, create_supervisor
from workflow_register import SandboxRule, configured_llm, configured_secrets, load_config


class EngineSettings(NamedTuple):
    """What `Engine` takes by these names, and the rule for commands."""

    limits: Limits
    supervisor: SupervisorFn | None
    supervise_every: int
    sandbox: SandboxRule


@asynccontextmanager
async def rule_for_commands(rule: SandboxRule) -> AsyncGenerator[None]:
    """Tell the tools that run commands of this process what `sandbox:` says."""
    before = os.environ.get("UWF_SANDBOX")
    if rule == "require":
        os.environ["UWF_SANDBOX"] = rule
    try:
        yield
    finally:
        if rule == "require" and before is None:
            del os.environ["UWF_SANDBOX"]


class KeptFiles(TypedDict):
    """What `Engine` takes by these names about the files of workspaces."""

    workspaces: Path
    secrets: Mapping[str, str]
    own_files: tuple[Path, ...]


def kept_files(home: Path) -> KeptFiles:
    """Where forks work, and the keys that no file which is kept may hold.

    Raises:
        ConfigError: the configuration can't be read.
    """
    return {
        "workspaces": home / "workspaces",
        "secrets": configured_secrets(home),
        "own_files": (home,),
    }


def engine_settings(home: Path) -> EngineSettings:
    """Read the limits, prices and supervisor of the configuration. No model is opened yet."""
    config = load_config(home)
    limits, watch = config.limits, config.supervisor
    return EngineSettings(
        limits=Limits(
            max_steps=limits.max_steps,
            max_rounds=limits.max_rounds,
            max_tokens=limits.max_tokens,
            max_cost=limits.max_cost,
            max_seconds=limits.max_seconds,
            max_depth=limits.max_depth,
            prices={
                model: Price(input=price.input, output=price.output, cached=price.cached)
                for model, price in limits.prices.items()
            },
        ),
        supervisor=create_supervisor(configured_llm(watch.model, home=home), prompt=watch.prompt)
        if watch is not None
        else None,
        supervise_every=watch.every if watch is not None else 1,
        sandbox=config.sandbox,
    )
