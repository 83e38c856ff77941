"""How well the embedded models do the quickstart's job, on this repository.

    uv run python scripts/bench/local_models.py [--runs 10] [--models a,b] [--dialects native,json]

For each pulled model and dialect: the runs that ended with a value, those whose facts are right,
those that the reviewer approved, and the medians of rounds, tokens and seconds of a run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from uwf.examples import repo_facts
from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_execute import Workflow, create_workflow, run_workflow
from workflow_local_model import CATALOGUE, is_present, open_provider
from workflow_protocol import AdapterBinding, Event, ModelReplied, Usage
from workflow_reactor import DialectName, LlmProvider

ROOT = Path(__file__).parent.parent.parent
PROMPT = "What is this project? Find its language, entry point and test command."


@dataclass
class Outcome:
    """One run."""

    ended: bool
    right: bool
    approved: bool
    rounds: int
    usage: Usage
    seconds: float
    words: str


def workflow(provider: LlmProvider, dialect: DialectName) -> Workflow:
    """The example's definition on one model and dialect."""
    reader = ReactAdapterConfig(
        provider=provider,
        toolset=workspace_tools().only("list_files", "read_file"),
        max_rounds=16,
        guards=[repo_facts.facts_were_read],
        dialect=dialect,
    )
    return create_workflow(
        repo_facts.run.definition,
        AdapterBinding(
            create_llm_adapter(provider),
            overrides={"reader": create_react_adapter(reader)},
        ),
    )


def is_right(facts: repo_facts.RepoFacts) -> bool:
    """Whether the facts are those of this repository, with evidence that exists."""
    return (
        facts.language.lower().startswith("python")
        and "uwf" in facts.entry_point
        and "pytest" in facts.test_command
        and all((ROOT / each.partition(":")[0]).exists() for each in facts.evidence)
    )


async def one_run(provider: LlmProvider, dialect: DialectName) -> Outcome:
    """Run the job once."""
    rounds, usage = 0, Usage()

    def observer(event: Event) -> None:
        nonlocal rounds, usage
        if isinstance(event, ModelReplied):
            rounds, usage = rounds + 1, usage + event.usage

    started = time.monotonic()
    result = await run_workflow(
        workflow(provider, dialect), PROMPT, workspace=ROOT, observer=observer
    )
    facts = next(
        (s.meta for s in reversed(result.steps) if isinstance(s.meta, repo_facts.RepoFacts)), None
    )
    return Outcome(
        ended=result.state == "completed",
        right=facts is not None and is_right(facts),
        approved=result.state == "completed" and result.return_code == 0,
        rounds=rounds,
        usage=usage,
        seconds=time.monotonic() - started,
        words=f"{result.state}: {result.summary}",
    )


def seeded(provider: LlmProvider, seed: int) -> LlmProvider:
    """The same provider with a seed of its own, so that the runs differ and can be repeated."""
    return replace(provider, extra_body={**provider.extra_body, "seed": seed})


def report(name: str, dialect: str, runs: list[Outcome]) -> None:
    """Print one row of the table."""

    def count(what: str) -> str:
        return f"{sum(getattr(run, what) for run in runs)}/{len(runs)}"

    def median(values: list[float]) -> str:
        return f"{statistics.median(values):.0f} ({min(values):.0f} … {max(values):.0f})"

    print(
        f"| {name} | {dialect} | {count('ended')} | {count('right')} | {count('approved')} "
        f"| {median([run.rounds for run in runs])} "
        f"| {median([run.usage.input_tokens - run.usage.cached_tokens for run in runs])} "
        f"| {median([run.usage.output_tokens for run in runs])} "
        f"| {median([run.seconds for run in runs])} |",
        flush=True,
    )


async def main(models: list[str], dialects: list[DialectName], runs: int) -> None:
    """Measure and print the table."""
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    print("\n| model | dialect | ended | right | approved | rounds | tokens in | out | seconds |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in models:
        async with open_provider(name) as provider:
            for dialect in dialects:
                outcomes: list[Outcome] = []
                for seed in range(runs):
                    outcomes.append(await one_run(seeded(provider, seed), dialect))
                    print(f"{name} {dialect} {seed}: {outcomes[-1].words}", file=sys.stderr)
                report(name, dialect, outcomes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    present = [model.name for model in CATALOGUE.values() if is_present(model)]
    parser.add_argument("--models", type=lambda text: text.split(","), default=present)
    parser.add_argument("--dialects", type=lambda text: text.split(","), default=["native", "json"])
    chosen = parser.parse_args()
    anyio.run(main, chosen.models, chosen.dialects, chosen.runs)
