"""Where the work stands: pure functions of the thread, for conditions and for what roles are told.

Each pass of the coder is an attempt at a phase; a phase ends with a turn of the committer.
"""

from __future__ import annotations

from workflow_protocol import Condition, ThreadContext
from workflow_templates.developing._roles import (
    baseline,
    change,
    coder,
    committer,
    planner,
    reviewer,
    tester,
)
from workflow_templates.developing._values import Commit, Phase, Tested


def phase_now(ctx: ThreadContext) -> Phase | None:
    """The phase that is worked on; `None` when all are done."""
    plan = ctx.meta(planner)
    number = ctx.visits(committer)
    return plan.phases[number] if plan is not None and number < len(plan.phases) else None


def attempts(ctx: ThreadContext) -> int:
    """How often the coder has tried at this phase."""
    count = 0
    for step in ctx.steps:
        count = 0 if step.role == committer.name else count + (step.role == coder.name)
    return count


def commits(ctx: ThreadContext) -> list[str]:
    """The commits that were made, oldest first."""
    made = [step.meta for step in ctx.steps if step.role == committer.name]
    return [each.hash for each in made if isinstance(each, Commit) and each.hash]


def last_commit(ctx: ThreadContext) -> str:
    """What the present phase begins with."""
    begun = ctx.meta(baseline)
    return [begun.commit if begun else "", *commits(ctx)][-1]


def left_behind(ctx: ThreadContext) -> list[str]:
    """What the tests made by now."""
    begun = ctx.meta(baseline)
    found = set(begun.left_behind if begun else [])
    for step in ctx.steps:
        if isinstance(step.meta, Tested):
            found.update(step.meta.left_behind)
    return sorted(found)


def can_begin(ctx: ThreadContext) -> bool:
    """The project's tests can be run."""
    begun = ctx.meta(baseline)
    return begun is not None and not begun.problem


def nothing_left(ctx: ThreadContext) -> bool:
    """An earlier phase has done this one, too: twice nothing was changed."""
    taken = ctx.meta(change)
    done = taken is not None and not taken.files
    return done and attempts(ctx) >= 2 and bool(commits(ctx))


def unusable(ctx: ThreadContext) -> bool:
    """Nothing was changed, or something that may not be."""
    taken = ctx.meta(change)
    return taken is None or not taken.files or bool(taken.forbidden)


def declined(ctx: ThreadContext) -> bool:
    """The reviewer sends the change back."""
    review = ctx.meta(reviewer)
    return review is None or not review.approved


def tests_failed(ctx: ThreadContext) -> bool:
    """Tests are worse than before."""
    tested = ctx.meta(tester)
    return tested is None or not tested.passed


def more_phases(ctx: ThreadContext) -> bool:
    """A phase is left, and the last one was committed."""
    made = ctx.meta(committer)
    refused = made is not None and bool(made.problem) and not _was_empty(ctx)
    return phase_now(ctx) is not None and not refused


def _was_empty(ctx: ThreadContext) -> bool:
    taken = ctx.meta(change)
    return taken is not None and not taken.files


def tried_enough(max_attempts: int) -> Condition:
    """The condition that ends a phase that doesn't come to an end."""
    return Condition(
        name="tried_enough",
        description=f"The coder had its {max_attempts} attempts at the phase.",
        check=lambda ctx: attempts(ctx) >= max_attempts,
    )


def tell_coder(ctx: ThreadContext) -> str:
    """What the coder is told: the phase, and what was wrong with the last attempt."""
    phase = phase_now(ctx)
    words = [] if phase is None else [f"Do this phase: {phase.title}", "It is done when:"]
    words += [] if phase is None else [f"- {each}" for each in phase.acceptance]
    if attempts(ctx):
        words += ["", *_what_was_wrong(ctx)]
    return "\n".join(words)


def _what_was_wrong(ctx: ThreadContext) -> list[str]:
    last = ctx.steps[-1].role
    taken, review, tested = ctx.meta(change), ctx.meta(reviewer), ctx.meta(tester)
    if last == change.name and taken is not None and taken.forbidden:
        return ["These files may not be changed; put them back as they were:", *taken.forbidden]
    if last == change.name:
        return ["Your last attempt changed no file."]
    if last == reviewer.name and review is not None:
        return ["The reviewer sent your change back:", *(f"- {each}" for each in review.reasons)]
    if tested is not None:
        return ["The tests do not pass:", *(f"- {each}" for each in tested.faults[:20])]
    return []


def tell_reviewer(ctx: ThreadContext) -> str:
    """What the reviewer judges by."""
    phase = phase_now(ctx)
    if phase is None:
        return ""
    return "\n".join([f"The phase: {phase.title}", *(f"- {each}" for each in phase.acceptance)])
