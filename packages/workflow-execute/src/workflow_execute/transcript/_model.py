"""What a transcript is made of. Encoded by msgspec, each part is a tagged JSON object.

    Transcript
    └── Turn                 a step, or the unfinished turn
        └── Attempt          the one that counts is the last
            ├── supervisor   parts of the look that came before the role began
            └── parts        Round | ChildStart | Asked | Recorded, as they came
                └── Call     of a Round, as the model wrote them

Each part names in `records` the records that it was made of, and each record stands in one part.
What begins a new attempt is no part of its own. In JSON, a field that has its default is left out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_execute._records import ThreadState
from workflow_protocol import Artifact, Effect, Failure, Hash, Usage

CallState = Literal[
    "done", "failed", "denied", "unknown", "waiting", "accepted", "refused", "skipped",
    "unrecorded", "open",
]  # fmt: skip
"""What came of a call.

`denied`: a guard or a person did not let it run. `unknown`: it began and nobody knows how it ended.
`waiting`: a person must answer first. `accepted`: it gave the role's value. `refused`: it was not
run, and the model was told why. `skipped`: the value had been given before it. `unrecorded`: it ran
and leaves no record. `open`: the records end before it.
"""

RoundState = Literal["calls", "result", "corrected", "failed", "lost", "unreadable", "open"]
"""What came of a round.

`calls`: the reply has calls. `result`: the reply itself is the value, or what it is taken from.
`corrected`: it had no usable call or value, and the model was told so. `failed`: an agent's run
failed, or the request was refused. `lost`: there is no reply. `unreadable`: the record is no reply.
`open`: the records end with it.
"""


class _Part(msgspec.Struct, frozen=True, kw_only=True, tag_field="part", omit_defaults=True):
    """Each class below repeats `frozen`, which type checkers do not inherit."""


class Asked(_Part, frozen=True, kw_only=True, tag="question"):
    """A question to a person, with what they said."""

    key: str
    text: str
    details: str = ""
    at_ms: int
    approved: bool | None = None
    """The answer; `None` as long as there is none."""
    answer: str = ""
    """The person's words."""
    arguments: str = ""
    """What a call was to run with instead."""
    by: str = ""
    """Who answered: the user and the process."""
    answered_at_ms: int | None = None
    withdrawn: bool = False
    """It had no place in the turn any more."""
    records: tuple[Hash, ...]


class Call(_Part, frozen=True, kw_only=True, tag="call"):
    """A tool call of a model."""

    key: str
    """Of the journal, such as `tool/3/0`."""
    name: str
    """Empty where the reply does not tell."""
    arguments: str
    """A JSON object, or what the model wrote where that is none."""
    state: CallState
    text: str = ""
    """What the tool gave, or why it did not run."""
    error: str = ""
    """What kind of failure it was, as `ToolFinished.error` says."""
    note: str = ""
    """What a person decided, as the model was told."""
    ran_with: str = ""
    """The arguments that it ran with, where they are not the model's."""
    told: str = ""
    """What the engine added for the model. Only known where the requests are."""
    effect: Effect | None = None
    at_ms: int | None = None
    """When the last record of it was made."""
    took_ms: int | None = None
    questions: tuple[Asked, ...] = ()
    records: tuple[Hash, ...]


class LostCall(_Part, frozen=True, kw_only=True, tag="lost"):
    """A model call whose reply nobody saw. It counts as the most that it may have taken."""

    at_ms: int
    charged_tokens: int
    charged_micros: int
    records: tuple[Hash, ...]


class Round(_Part, frozen=True, kw_only=True, tag="round"):
    """One reply of a model, or one run of an agent, with its calls."""

    key: str
    scope: str
    """The part of the turn that asked, such as `extract`; empty for the role itself."""
    number: int
    """Counted from 0."""
    state: RoundState
    at_ms: int
    """When its first record was made: mostly, when the reply came."""
    took_ms: int | None = None
    model: str = ""
    """As the reply names it."""
    text: str = ""
    """What the model said beside its calls."""
    reasoning: str = ""
    finish: str = ""
    usage: Usage = Usage()
    cost_micros: int | None = None
    fault: str = ""
    """What went wrong, in words."""
    told: tuple[str, ...] = ()
    """What the engine told the model after this reply, beside results. Only known where the
    requests are."""
    calls: tuple[Call, ...] = ()
    lost: tuple[LostCall, ...] = ()
    records: tuple[Hash, ...]


class ChildStart(_Part, frozen=True, kw_only=True, tag="child"):
    """A child thread, where it was started."""

    key: str
    thread: str
    at_ms: int
    took_ms: int | None = None
    return_code: int | None = None
    """`None` as long as the turn has not taken in what it came to."""
    summary: str = ""
    value: msgspec.Raw = msgspec.Raw(b"null")
    records: tuple[Hash, ...]


class Recorded(_Part, frozen=True, kw_only=True, tag="record"):
    """Any other record of the journal, such as an effect of a role's own code."""

    key: str
    record: str
    """`result`, `intent`, `withdrawn`, …"""
    effect: Effect
    at_ms: int
    took_ms: int | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The result, where it is JSON."""
    text: str = ""
    """The result, where it is none."""
    records: tuple[Hash, ...]


Part = Round | ChildStart | Asked | Recorded


class Decided(_Part, frozen=True, kw_only=True, tag="decision"):
    """What the supervisor said of the thread."""

    key: str
    decision: str
    reason: str
    at_ms: int
    records: tuple[Hash, ...]


class Attempt(_Part, frozen=True, kw_only=True, tag="attempt"):
    """One attempt at a turn. All but the last of a turn are history."""

    number: int
    """Counted from 1."""
    is_current: bool
    supervisor: tuple[Part | Decided, ...] = ()
    """What the supervisor did before the role began."""
    parts: tuple[Part, ...] = ()


class Turn(_Part, frozen=True, kw_only=True, tag="turn"):
    """A role's turn: a committed step, or the one that has not ended."""

    number: int
    """Counted from 1, as `show` does."""
    role: str
    """Empty where the record does not tell, as while an unfinished turn runs."""
    state: Literal["committed", "failed", "unfinished", "ended"]
    """`failed`: it is a step without a value, from which the workflow led on. `ended`: there was no
    turn any more, only the supervisor's look that ended the thread."""
    inherited: bool = False
    """A fork has it from the thread that it was forked from."""
    at_ms: int | None = None
    elapsed_ms: int | None = None
    usage: Usage = Usage()
    cost_micros: int | None = None
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    content: str = ""
    """The role's words, where they are not its value."""
    failure: Failure | None = None
    """Why there is no value."""
    child_threads: tuple[str, ...] = ()
    skipped_calls: tuple[str, ...] = ()
    """The key and tool of each call that came after the result."""
    artifacts: tuple[Artifact, ...] = ()
    """What it published, in order."""
    hash: Hash | None = None
    attempts: tuple[Attempt, ...] = ()


class Transcript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is recorded of a thread, in the order in which it happened."""

    thread: str
    workflow: str
    prompt: str
    state: ThreadState
    """As recorded: `running` is also said of a thread whose process died."""
    turns: tuple[Turn, ...]
