"""What can be listed of a thread without reading it: kept as the entry of its ref `head`.

A summary follows from the thread's records one by one, so that the writer of a record and the
reader of all of them come to the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from workflow_cas import Entry
from workflow_execute._records import (
    BranchRecord,
    Cause,
    ShownState,
    StartRecord,
    StateRecord,
    StatusRecord,
)
from workflow_protocol import ThreadId, Usage

PROMPT_CHARS = 200
SUMMARY_CHARS = 300
TOP = "top"
"""The label of threads that no other thread started."""
SHUT_DOWN = "cause=shutdown"
"""The label of threads that `Engine.recover` takes up though they ended in order."""


class ThreadSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread in short."""

    thread_id: ThreadId
    """The thread."""
    workflow: str
    """The name that it was started under."""
    started_ms: int
    """Unix milliseconds; of a fork, when it was forked."""
    updated_ms: int
    """When its state or its steps changed last."""
    state: ShownState
    """As it is recorded; `Engine.list_threads` knows better of running ones."""
    prompt: str = ""
    """The first 200 characters."""
    steps: int = 0
    """How many."""
    role: str = ""
    """The role at work when it stopped."""
    cause: Cause = ""
    """What a suspended thread waits for."""
    limit: str = ""
    """The limit that it has reached."""
    return_code: int | None = None
    """Of its end; `None` while it goes on."""
    summary: str = ""
    """What it completed with, or the reason for any other state: the first 300 characters."""
    error: str = ""
    """The type of the exception, for `failed`."""
    parent: ThreadId | None = None
    """The thread that started it and waits for it."""
    origin: ThreadId | None = None
    """The thread that it was forked from."""
    key: str = ""
    """The key that it was submitted with."""
    tags: tuple[str, ...] = ()
    """As they were given at its start."""
    models: tuple[str, ...] = ()
    """The models that its roles asked, as far as it is recorded."""
    usage: Usage = Usage()
    """Of its steps, those that a fork shares included."""
    step_tokens: int = 0
    """What its steps count against limits: input and output together, the supervisor's too."""
    step_micros: int = 0
    """Of its own ended turns, in millionths."""
    turn_tokens: int = 0
    """What its unfinished turn had taken when the thread was started, or stopped, last."""
    turn_micros: int = 0
    """Of the turn that has not ended."""
    children: int = 0
    """How many threads there are below it. Known to a reader only."""
    children_tokens: int = 0
    """What these took together."""
    children_micros: int = 0
    """Of its child threads."""

    @property
    def tokens(self) -> int:
        """Input and output tokens that it took, with all threads below it."""
        return self.step_tokens + self.turn_tokens + self.children_tokens

    @property
    def cost_micros(self) -> int:
        """What it cost, with all threads below it, in millionths of the currency of the prices."""
        return self.step_micros + self.turn_micros + self.children_micros


MAX_TAG_CHARS = 64
_TAG = re.compile(r"\w[\w.:/=@+-]*")
_decoder = msgspec.json.Decoder(ThreadSummary)


def check_tags(tags: Iterable[str] | Mapping[str, str]) -> tuple[str, ...]:
    """Tags as they are kept: sorted, each once; those of a mapping as `name=value`.

    Raises:
        ValueError: one is empty, too long, or has spaces or other signs.
    """
    if isinstance(tags, Mapping):
        pairs = cast("Mapping[str, str]", tags).items()
        tags = [f"{name}={value}" for name, value in pairs]
    found = sorted(set(tags))
    for tag in found:
        if len(tag) > MAX_TAG_CHARS or not _TAG.fullmatch(tag):
            raise ValueError(
                f"{tag[:100]!r} can't be a tag; use 1 to {MAX_TAG_CHARS} letters, digits and "
                "any of `. _ : / = @ + -`, a letter or digit first"
            )
    return tuple(found)


def begun(start: StartRecord) -> ThreadSummary:
    """The summary of a thread of which there is only the start. The prompt comes apart."""
    return ThreadSummary(
        thread_id=ThreadId(start.thread_id),
        workflow=start.workflow,
        started_ms=start.at_ms,
        updated_ms=start.at_ms,
        state="running",
        parent=ThreadId(start.parent_thread) if start.parent_thread is not None else None,
        tags=start.tags,
        key=start.key,
    )


def with_prompt(summary: ThreadSummary, prompt: str) -> ThreadSummary:
    """With the task."""
    return msgspec.structs.replace(summary, prompt=prompt[:PROMPT_CHARS])


def with_branch(summary: ThreadSummary, branch: BranchRecord) -> ThreadSummary:
    """The summary after a fork or a change of settings. Another prompt comes apart."""
    summary = msgspec.structs.replace(
        summary,
        thread_id=ThreadId(branch.thread_id),
        workflow=branch.workflow if branch.workflow is not None else summary.workflow,
        updated_ms=max(summary.updated_ms, branch.at_ms),
    )
    if not branch.origin:
        return summary
    return msgspec.structs.replace(
        summary, started_ms=branch.at_ms, origin=ThreadId(branch.origin), parent=None, key=""
    )


def with_step(summary: ThreadSummary, step: StateRecord) -> ThreadSummary:
    """The summary after a step."""
    tokens = step.usage.input_tokens + step.usage.output_tokens
    charged = tokens if step.charged_tokens is None else step.charged_tokens
    return msgspec.structs.replace(
        summary,
        steps=summary.steps + 1,
        updated_ms=max(summary.updated_ms, step.at_ms),
        models=_joined(summary.models, step.models),
        usage=summary.usage + step.usage,
        step_tokens=summary.step_tokens + charged,
        step_micros=summary.step_micros + step.charged_micros,
    )


def with_status(summary: ThreadSummary, status: StatusRecord) -> ThreadSummary:
    """The summary of a thread whose latest run stands like this; before it had no status."""
    in_turn = status.at_step == summary.steps  # else a step has taken in what the turn took
    return msgspec.structs.replace(
        summary,
        state=status.state,
        updated_ms=max(summary.updated_ms, status.at_ms),
        role=status.place,
        cause=status.cause,
        limit=status.limit,
        return_code=status.return_code,
        summary=status.summary[:SUMMARY_CHARS],
        error=status.error,
        models=_joined(summary.models, status.models),
        turn_tokens=status.charged_tokens if in_turn else 0,
        turn_micros=status.charged_micros if in_turn else 0,
    )


def thread_ref(thread_id: str, what: str) -> str:
    """The name of a thread's ref: `head`, `turn` or `status`."""
    return f"thread/{thread_id}/{what}"


def entry_of(summary: ThreadSummary) -> Entry:
    """A summary as the store keeps it, with the labels that it is found by."""
    labels = [
        label_of("state", summary.state),
        label_of("workflow", summary.workflow),
        *(label_of("tag", tag) for tag in summary.tags),
        TOP if summary.parent is None else label_of("parent", summary.parent),
    ]
    if summary.cause == "shutdown":
        labels.append(SHUT_DOWN)
    return Entry(thread_ref(summary.thread_id, "head"), msgspec.json.encode(summary), tuple(labels))


def summary_of(entry: Entry) -> ThreadSummary:
    """The summary that an entry keeps."""
    return _decoder.decode(entry.data)


def label_of(kind: str, value: str) -> str:
    """The label that threads with this value have. Odd text is escaped: a label is one line."""
    return f"{kind}={value if value.isprintable() else ascii(value)}"


def _joined(known: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more))) if more else known
