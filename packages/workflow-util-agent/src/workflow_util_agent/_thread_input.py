"""The thread as the user message of a role: what is to be done, where, and what was said before."""

from __future__ import annotations

from collections.abc import Iterable

from workflow_protocol import Artifact, RoleStep, ThreadContext

_WORKSPACE = "You work in the folder `.`, and all paths are relative to it."
"""Without the folder's own path: small models make wrong ones of it, and replays would differ."""

DEFAULT_QUOTA_CHARS = 32_000
"""Room for earlier steps: about 8,000 tokens. The task and the latest step come on top."""

MAX_ARTIFACT_CHARS = 400
"""Of one published value; roles' code and tools have the whole."""


def build_thread_input(ctx: ThreadContext, *, quota_chars: int = DEFAULT_QUOTA_CHARS) -> str:
    """Render the thread for a model: task, workspace, progress, earlier steps, the latest in full.

    A turn that failed is marked, and what it failed with stands there as JSON.

    What steps published stands after the latest one, by name. Last comes what the transition to
    the role tells it, if it does.

    Earlier steps are taken newest first until their contents reach the quota; a line says how
    many older ones were left out. The text depends on nothing but `ctx`, so that a repeated turn
    sends the same bytes.

    Args:
        ctx: the thread so far.
        quota_chars: the most characters of earlier steps' contents; the latest is never cut.
    """
    sections = [
        f"## Task\n\n{ctx.start.prompt}",
        f"## Workspace\n\n{_WORKSPACE}",
    ]
    if ctx.steps:
        *earlier, latest = ctx.steps
        sections.append(f"## Progress\n\n{_progress(ctx.steps)}")
        sections += _earlier(earlier, quota_chars)
        sections.append(f"## Latest step: {_who(latest)}\n\n{latest.content}")
    if artifacts := ctx.artifacts:
        sections.append(f"## Exact values\n\n{_artifacts(artifacts.values())}")
    if ctx.told:
        sections.append(f"## What to do now\n\n{ctx.told}")
    return "\n\n".join(sections)


def _who(step: RoleStep) -> str:
    return step.role if step.failure is None else f"{step.role} (failed)"


def _artifacts(artifacts: Iterable[Artifact]) -> str:
    """One a line as JSON, so that nothing in a value looks like something else."""
    lines: list[str] = []
    for each in artifacts:
        text = each.json.replace("\n", " ")
        if len(text) > MAX_ARTIFACT_CHARS:
            text = f"{text[:MAX_ARTIFACT_CHARS]}… ({len(text)} characters; a tool reads all)"
        lines.append(f"- {each.name}: {text}")
    return "\n".join(lines)


def _progress(steps: tuple[RoleStep, ...]) -> str:
    spoken = " → ".join(map(_who, steps[-20:]))
    older = f"({len(steps) - 20} more) → " if len(steps) > 20 else ""
    count = len(steps)
    return f"{count} step{'s' * (count != 1)} done: {older}{spoken}"


def _earlier(steps: list[RoleStep], quota_chars: int) -> list[str]:
    shown: list[str] = []
    left = quota_chars
    for number, step in reversed(list(enumerate(steps, start=1))):
        left -= len(step.content)
        if left < 0:
            break
        shown.insert(0, f"### Step {number}: {_who(step)}\n\n{step.content}")
    omitted = len(steps) - len(shown)
    if omitted:
        shown.insert(0, f"(the first {omitted} of {len(steps)} earlier steps are left out)")
    return ["## Earlier steps", *shown] if shown else []
