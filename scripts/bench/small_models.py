"""How well the embedded models answer questions about files, by dialect.

    uv run python scripts/bench/small_models.py [--runs 1] [--models a,b] [--dialects json,xml]
        [--questions 10] [--held-back 5] [--named 10] [--verbose]

A role gets `read_file`, `list_files` and `search_files` on a small made-up project, and one
question. Ten questions may be looked at while the wording of prompts is worked on; five are held
back and reported apart. `named` is another, easier job, ten more questions that name their file, to
a role that has `read_file` alone. For each model and dialect: the runs whose answer is right, those
of the fifteen that ended with an answer at all, and their medians of rounds, tokens and seconds.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import anyio
import msgspec

from workflow_agent_react import (
    DialectName,
    ReactAdapterConfig,
    Toolset,
    create_react_adapter,
    workspace_tools,
)
from workflow_local_model import CATALOGUE, is_present, open_provider
from workflow_protocol import (
    DirectJournal,
    Event,
    ModelReplied,
    StartStep,
    ThreadContext,
    ThreadId,
    ToolFinished,
    ToolStarted,
    Usage,
    WorkflowError,
)
from workflow_reactor import LlmProvider

MAX_ROUNDS = 10
MAX_TOKENS = 400
TOOLS = workspace_tools(shell=False, write=False)

FILES = {
    "README.md": """# Tidepool

Tidepool predicts tides for small harbours. Maintained by Ines Okafor.

Start the server with `tidepool serve`. See docs/ for more.
""",
    "LICENSE": "MIT License\n\nCopyright (c) Ines Okafor\n",
    "CHANGELOG.md": "# Changelog\n\n## 2.7.1\n\n- Fix rounding.\n\n## 2.7.0\n\n- Charts.\n",
    "CONTRIBUTING.md": "# Contributing\n\nRun the tests with `make verify` before you push.\n",
    "pyproject.toml": """[project]
name = "tidepool"
version = "2.7.1"
requires-python = ">=3.12"
dependencies = ["numpy", "click"]
""",
    "config/server.toml": '[server]\nhost = "0.0.0.0"\nport = 7431\nworkers = 3\n',
    "config/limits.toml": "[limits]\nrequests_per_minute = 90\nupload_mb = 25\n",
    "src/tidepool/__init__.py": "",
    "src/tidepool/table.py": """MAX_STATIONS = 48


class TideTable:
    \"\"\"High and low water of one station.\"\"\"

    def next_high(self, now: float) -> float:
        return now + 44_714
""",
    "src/tidepool/client.py": """import os

TIMEOUT_S = 17


def connect() -> None:
    token = os.environ["TIDEPOOL_TOKEN"]
    print("connecting", token, TIMEOUT_S)
""",
    "src/tidepool/gauge.py": """def parse_gauge(line: str) -> float:
    name, _, level = line.partition(";")
    return float(level)
""",
    "tests/test_table.py": "def test_next_high() -> None:\n    pass\n",
    "data/stations.csv": "name,lat\nBrest,48.4\nCork,51.9\nVigo,42.2\nBergen,60.4\n",
    "data/levels-2022.csv": "day,level\n1,3.2\n",
    "data/levels-2023.csv": "day,level\n1,3.4\n",
    "docs/architecture.md": "# Architecture\n\nLevels are stored in DuckDB. Charts are SVG.\n",
}


@dataclass(frozen=True)
class Question:
    """A question and what the answer must hold."""

    text: str
    pattern: str


QUESTIONS = (
    Question("Which port does the server listen on?", r"\b7431\b"),
    Question("Who maintains this project?", r"ines okafor"),
    Question("What is the version of this project?", r"\b2\.7\.1\b"),
    Question("In which file is the class TideTable defined?", r"\btable\.py"),
    Question("What is the value of the constant MAX_STATIONS?", r"\b48\b"),
    Question("Which command runs the tests, according to CONTRIBUTING.md?", r"make verify"),
    Question("How many CSV files are in the folder data?", r"\b(3|three)\b"),
    Question("Under which licence is this project?", r"\bmit\b"),
    Question("How many requests per minute are allowed?", r"\b90\b"),
    Question("Which command starts the server?", r"tidepool serve"),
)
HELD_BACK = (
    Question("What is the timeout of the client, in seconds?", r"\b17\b"),
    Question("In which file is the function parse_gauge defined?", r"\bgauge\.py"),
    Question("How many stations are listed in data/stations.csv?", r"\b(4|four)\b"),
    Question("Which database stores the levels?", r"duckdb"),
    Question("Which environment variable holds the token?", r"\btidepool_token\b"),
)
NAMED = (
    Question("How many workers does config/server.toml set?", r"\b(3|three)\b"),
    Question("Which Python version does pyproject.toml require?", r"3\.12"),
    Question("According to LICENSE, who holds the copyright?", r"ines okafor"),
    Question("What was fixed in version 2.7.1, according to CHANGELOG.md?", r"rounding"),
    Question("How many megabytes may an upload have, by config/limits.toml?", r"\b25\b"),
    Question("Which separator does src/tidepool/gauge.py split a line at?", r";|semicolon"),
    Question("Which image format do charts have, by docs/architecture.md?", r"\bsvg\b"),
    Question("What is the latitude of Cork in data/stations.csv?", r"51\.9"),
    Question("What is the level in data/levels-2023.csv?", r"\b3\.4\b"),
    Question("Which function does src/tidepool/client.py define?", r"\bconnect\b"),
)


class Found(msgspec.Struct):
    """What the role gives."""

    answer: Annotated[str, msgspec.Meta(description="the answer, as short as possible")]


@dataclass
class Run(DirectJournal):
    """One run, and what was heard of it."""

    right: bool = False
    ended: str = ""
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    calls: list[str] = field(default_factory=list[str])

    async def note(self, event: Event) -> None:
        """Count replies and keep the calls."""
        match event:
            case ModelReplied():
                self.rounds += 1
                self.usage += event.usage
            case ToolStarted():
                self.calls.append(f"{event.name} {event.arguments}")
            case ToolFinished() if not event.ok:
                self.calls.append(f"    failed: {event.summary}")
            case _:
                pass


async def ask(
    provider: LlmProvider,
    dialect: DialectName,
    question: Question,
    workspace: Path,
    *,
    tools: Toolset = TOOLS,
) -> Run:
    """Put one question."""
    run = Run()
    adapter = create_react_adapter(
        ReactAdapterConfig(
            provider=provider.with_profile(max_tokens=MAX_TOKENS),
            toolset=tools,
            max_rounds=MAX_ROUNDS,
            dialect=dialect,
        )
    )
    start = StartStep(prompt=question.text, workspace=workspace, timestamp_ms=0)
    ctx = ThreadContext(thread_id=ThreadId("bench"), start=start, journal=run)
    started = time.monotonic()
    try:
        found = await adapter("You answer questions about the files in a folder.", Found)(ctx)
    except WorkflowError as error:
        run.ended = f"{type(error).__name__}: {error}"
    else:
        run.ended = f"answered: {found.answer}"
        run.right = re.search(question.pattern, found.answer.lower()) is not None
    run.seconds = time.monotonic() - started
    return run


def row(name: str, dialect: str, runs: list[Run], held_back: list[Run], named: list[Run]) -> str:
    """One row of the table."""

    def right(some: list[Run]) -> str:
        return f"{sum(run.right for run in some)}/{len(some)}" if some else ""

    def median(values: list[float]) -> str:
        if not values:
            return ""
        return f"{statistics.median(values):.0f} ({min(values):.0f} … {max(values):.0f})"

    both = [*runs, *held_back]
    answered = sum(run.ended.startswith("answered") for run in both)
    return (
        f"| {name} | {dialect} | {right(runs)} | {right(held_back)} | {right(named)} "
        f"| {answered}/{len(both)} "
        f"| {median([run.rounds for run in both])} "
        f"| {median([run.usage.input_tokens - run.usage.cached_tokens for run in both])} "
        f"| {median([run.usage.output_tokens for run in both])} "
        f"| {median([run.seconds for run in both])} |"
    )


def tell(question: Question, run: Run, *, verbose: bool) -> None:
    """Say how one run went. Held-back questions are never shown in detail."""
    print(f"  {'right' if run.right else 'WRONG'} {question.text} {run.ended}", file=sys.stderr)
    if verbose:
        for call, count in Counter(run.calls).items():
            print(f"      {count} x {call[:160]}", file=sys.stderr)


async def main(chosen: argparse.Namespace) -> None:
    """Measure and print the table."""
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    print(
        "\n| model | dialect | right | held back | named | answered "
        "| rounds | tokens in | out | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidepool-") as folder:
        workspace = Path(folder)
        for path, text in FILES.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(text, encoding="utf-8")
        for name in chosen.models:
            async with open_provider(name) as provider:
                for dialect in chosen.dialects:
                    await measure(provider, name, dialect, workspace, chosen)


async def measure(
    provider: LlmProvider,
    name: str,
    dialect: DialectName,
    workspace: Path,
    chosen: argparse.Namespace,
) -> None:
    """Put all questions and print one row."""
    runs: list[Run] = []
    held_back: list[Run] = []
    named: list[Run] = []
    read_alone = TOOLS.only("read_file")
    for seed in range(chosen.runs):
        seeded = replace(provider, extra_body={**provider.extra_body, "seed": seed})
        print(f"{name} {dialect} seed {seed}", file=sys.stderr)
        for question in QUESTIONS[: chosen.questions]:
            runs.append(await ask(seeded, dialect, question, workspace))
            tell(question, runs[-1], verbose=chosen.verbose)
        for question in HELD_BACK[: chosen.held_back]:
            held_back.append(await ask(seeded, dialect, question, workspace))
        for question in NAMED[: chosen.named]:
            named.append(await ask(seeded, dialect, question, workspace, tools=read_alone))
            tell(question, named[-1], verbose=chosen.verbose)
    print(row(name, dialect, runs, held_back, named), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    present = [model.name for model in CATALOGUE.values() if is_present(model)]
    dialects: list[DialectName] = ["native", "json", "xml"]
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--models", type=lambda text: text.split(","), default=present)
    parser.add_argument("--dialects", type=lambda text: text.split(","), default=dialects)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--held-back", type=int, default=len(HELD_BACK))
    parser.add_argument("--named", type=int, default=len(NAMED))
    parser.add_argument("--verbose", action="store_true")
    anyio.run(main, parser.parse_args())
