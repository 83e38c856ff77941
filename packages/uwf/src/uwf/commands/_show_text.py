"""What `show` prints for people: how a thread stands, and its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uwf.commands._thread_usage import ThreadUsage
from uwf.terminal._cells import hang
from uwf.terminal._output import pretty
from uwf.terminal._style import STATES, Style, Styled, printable
from uwf.terminal._transcript import Line, failure_words, lay_out
from workflow_execute import StoredStep, StoredThread
from workflow_protocol import Question, Usage

_INDENT = 11
"""Where the values of fields begin."""

Field = tuple[str, str, "Style | None"]
"""A word, what it says, and how that looks."""


def head_text(
    thread: StoredThread,
    state: str,
    used: ThreadUsage,
    *,
    unconfined: str | None,
    questions: Mapping[str, Question],
    width: int | None,
) -> list[Styled | str]:
    """How a thread stands, a field a line; long ones are broken under their own text.

    Args:
        unconfined: why its commands ran without a sandbox, if they did.
        width: columns; `None` breaks no line.
    """
    fields = [
        *_fields(thread, state, used, unconfined),
        *_tree_fields(used),
        *_origin_fields(thread),
        *_end_fields(thread, state),
    ]
    printed = [part for field in fields for part in _field(field, width)]
    for key, asked in questions.items():
        printed += ["\n", *_field(("question", f"{key}: {asked.text}", "warn"), width)]
        details = [Line(_INDENT, line) for line in asked.details.splitlines()]
        printed += [*lay_out(details, width), "\n"] if details else []
    return printed[:-1]


def step_text(number: int, step: StoredStep, width: int | None) -> list[Styled | str]:
    """A step: the role, its value, and what it said besides."""
    record = step.record
    took = f"  ({record.elapsed_ms / 1000:.1f} s)"
    lines = [Line(2, each) for each in pretty(step.value).splitlines()]
    if step.failure is not None:
        lines = [Line(2, each, "bad") for each in failure_words(step.failure).splitlines()]
    if step.content.encode() != step.value:
        lines += [Line(2, each) for each in step.content.split("\n")]
    lines += [Line(2, f"{each.name} = {each.json}", "name") for each in record.artifacts]
    lines += [Line(2, f"child thread {each}", "name") for each in record.child_threads]
    head = [Styled(f"{number + 1}. {record.role}", "strong"), Styled(took, "dim"), "\n"]
    return [*head, *lay_out(lines, width)]


def _field(field: Field, width: int | None) -> list[Styled | str]:
    word, text, look = field
    printed: list[Styled | str] = [Styled(f"{word:<{_INDENT}}", "dim")]
    for number, line in enumerate(text.split("\n")):
        for at, row in enumerate(hang(printable(line), _INDENT, width)):
            lead = " " * _INDENT if number or at else ""
            row = f"{lead}{row.removeprefix('  ') if at else row}"
            printed += [row if look is None else Styled(row, look), "\n"]
    return printed


def _fields(
    thread: StoredThread, state: str, used: ThreadUsage, unconfined: str | None
) -> Iterable[Field]:
    status = thread.status
    code = "" if status.return_code is None else f" (return code {status.return_code})"
    yield "thread", thread.thread_id, "strong"
    yield "workflow", thread.start.workflow, None
    yield "state", f"{state}{code}", STATES[state]
    yield "prompt", thread.prompt, None
    yield "workspace", thread.start.workspace, None
    yield "tokens", tokens_words(used.usage), None
    if status.run_options:
        yield "options", " ".join(status.run_options), None
    if unconfined is not None:
        yield "sandbox", f"commands ran without one: {unconfined}", "warn"
    if (cost := cost_of(used)) is not None:
        yield "cost", f"{cost:.4f}", None


def _tree_fields(used: ThreadUsage) -> Iterable[Field]:
    """What the thread and those below it took together, and each of these by itself."""
    if used.tree is None:
        return
    yield "  in all", f"{_took(used.tree)}, its child threads included", None
    for each in used.children:
        yield "  child", f"{_took(each.own)}, {each.thread_id} {each.workflow}", None


def _origin_fields(thread: StoredThread) -> Iterable[Field]:
    if thread.origin is not None:
        yield "origin", f"{thread.origin}, the first {thread.own_from} steps", None
    if thread.parent is not None:
        yield "parent", thread.parent, None


def _end_fields(thread: StoredThread, state: str) -> Iterable[Field]:
    status = thread.status
    if status.summary:
        kind = f"{status.error}: " if status.error else ""
        place = f" (role {status.place})" if status.place and state == "failed" else ""
        yield "summary", f"{kind}{status.summary}{place}", _END_LOOKS.get(state)
    if status.origin:
        yield "raised in", status.origin, None
    if status.limit:
        yield "limit", f"limits.{status.limit}", "warn"


_END_LOOKS: Mapping[str, Style] = {"failed": "bad", "suspended": "warn"}


def children_words(used: ThreadUsage) -> dict[str, str]:
    """What is said of each child thread where it was started."""
    return {
        each.thread_id: f"{each.workflow}, {each.state}, {_took(each.own)}"
        for each in used.children
    }


def tokens_words(usage: Usage) -> str:
    """The tokens and calls of a thread."""
    return (
        f"{usage.input_tokens} in ({usage.cached_tokens} cached), "
        f"{usage.output_tokens} out, {usage.calls} model calls"
    )


def cost_of(used: ThreadUsage) -> float | None:
    """What was paid, where the models had prices or the provider said it."""
    return used.micros / 1_000_000 if used.micros else None


def _took(used: ThreadUsage) -> str:
    cost = cost_of(used)
    return tokens_words(used.usage) + ("" if cost is None else f", cost {cost:.4f}")
