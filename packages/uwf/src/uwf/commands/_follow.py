"""`thread follow` and `thread join`: watch threads that run in other processes, until they end."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence

import anyio
import msgspec

from uwf._store import open_existing
from uwf.terminal._cells import columns_of, fit, flatten
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, terminal_columns
from uwf.terminal._spoken import spoken_words
from uwf.terminal._style import (
    STATES,
    Styled,
    Words,
    is_rich_terminal,
    render,
    wants_colour,
)
from uwf.terminal._view import compact, shorten
from workflow_agent_react import read_written_call
from workflow_cas import Store
from workflow_execute import (
    Engine,
    StoredThread,
    ThreadNow,
    find_thread,
    read_attempts,
    read_thread,
)
from workflow_execute.transcript import Call, CallState, Round, Transcript, Turn, build_transcript
from workflow_protocol import ThreadId
from workflow_register import find_home

POLL_S = 0.25
"""What is shown is not older than this and the time to read it: half a second at most."""
_CODES = {"failed": 1, "interrupted": 1, "suspended": 3, "cancelled": 130}
_MICROS = 1_000_000
_WIDTH = 100
"""Of a line that goes to no terminal, in columns."""
_LEAST = 8


def follow(output: Output, thread: str, *, from_start: bool) -> int:
    """Show what a thread does, whoever runs it, until it ends; give the exit code of the run."""

    async def main() -> int:
        home = find_home()
        async with open_existing(home) as store:
            engine = Engine(store, locks=home / "locks")
            thread_id = await find_thread(store, thread)
            shown = _Follower(output)
            refs: object = None
            while True:
                before, refs = refs, await store.refs(f"thread/{thread_id}/")
                if refs == before and await engine.is_running(thread_id):
                    shown.now(await engine.now(thread_id))
                    await anyio.sleep(POLL_S)
                    continue  # nothing is recorded since: the thread isn't read again
                state, stored = await _look(engine, store, thread_id)
                transcript = await _transcript(store, stored, shown, from_start=from_start)
                shown.told(transcript, is_running=state == "running")
                if state != "running":
                    return shown.end(stored, state)
                shown.now(await engine.now(thread_id))
                await anyio.sleep(POLL_S)

    return run_async(main)


def join(output: Output, threads: Sequence[str]) -> int:
    """Wait until threads end; give the exit code of the run that went worst."""

    async def main() -> int:
        home = find_home()
        codes: list[int] = []
        async with open_existing(home) as store:
            engine = Engine(store, locks=home / "locks")
            for thread_id in [await find_thread(store, each) for each in threads]:
                state, stored = await _look(engine, store, thread_id)
                while state == "running":
                    while await engine.is_running(thread_id):  # noqa: ASYNC110 - another process
                        await anyio.sleep(POLL_S)
                    state, stored = await _look(engine, store, thread_id)
                codes.append(_code(stored, state))
                text = f"{thread_id} {state}: {shorten(stored.status.summary)}"
                output.data({"thread": thread_id, "state": state, "code": codes[-1]}, text)
        return max(codes, key=_badness)

    return run_async(main)


def _badness(code: int) -> int:
    """A thread that failed is worse than one that was cancelled, and that than one that waits."""
    return {0: 0, 3: 1, 130: 2}.get(code, 3)


def _code(stored: StoredThread, state: str) -> int:
    return _CODES.get(state, stored.status.return_code or 0)


async def _look(engine: Engine, store: Store, thread_id: ThreadId) -> tuple[str, StoredThread]:
    """The state and the thread, which are of one moment once it has ended."""
    while True:
        stored = await read_thread(store, thread_id)
        state = await engine.state(stored)
        now = await read_thread(store, thread_id)
        if now.status == stored.status and now.head == stored.head:
            return state, now


async def _transcript(
    store: Store, stored: StoredThread, shown: _Follower, *, from_start: bool
) -> Transcript:
    """The thread with the records of the turns that are not shown yet."""
    if shown.next_turn == 0:
        shown.next_turn = 1 if from_start else max(1, len(stored.steps))
    ends = [*(step.turn for step in stored.steps), stored.turn]
    records = [
        await read_attempts(store, last) if number >= shown.next_turn else []
        for number, last in enumerate(ends, 1)
    ]
    return build_transcript(stored, records, written_call=read_written_call)


class _Follower:
    """Prints what is new: lines for people, JSON lines for programs."""

    def __init__(self, output: Output) -> None:
        self.next_turn = 0
        """The first turn, counted from 1, that is not shown to its end; 0 before the first look."""
        self._output = output
        self._seen: set[tuple[int, str]] = set()
        self._last_doing: object = None
        self._is_live = not output.json and is_rich_terminal(sys.stderr)

    def told(self, transcript: Transcript, *, is_running: bool) -> None:
        """Show what is recorded and was not shown."""
        unsettled: set[CallState] = {"open", "waiting"}
        if is_running:  # a call that has begun and left no result is at work
            unsettled.add("unknown")
        for turn in transcript.turns:
            if turn.number < self.next_turn:
                continue
            for part in turn.attempts[-1].parts if turn.attempts else ():
                if isinstance(part, Round):
                    self._round(turn, part, unsettled)
            if turn.state == "committed":
                tokens = turn.usage.input_tokens + turn.usage.output_tokens
                value = bytes(turn.value).decode() if isinstance(turn.value, msgspec.Raw) else ""
                head, tail = f"{turn.role} (step {turn.number})", f"  [{tokens} tokens]"
                room = self._columns - columns_of(head + tail) - 3
                self._say(
                    {"step": turn.number, "role": turn.role, "value": turn.value},
                    [Styled(head, "strong"), f" = {fit(value, max(room, _LEAST))}{tail}"],
                )
                self.next_turn = turn.number + 1
            if turn.failure is not None:
                why = turn.failure
                self._say(
                    {"step": turn.number, "role": turn.role, "failure": why},
                    f"{turn.role} (step {turn.number}) ✗ {shorten(f'{why.type}: {why.message}')}",
                )
                self.next_turn = turn.number + 1

    def _round(self, turn: Turn, part: Round, unsettled: Collection[CallState]) -> None:
        if self._is_new(turn, part.key) and (words := spoken_words(part.text, self._columns - 4)):
            self._say(
                {"step": turn.number, "round": part.number, "text": part.text}, f"  “{words}”"
            )
        for call in part.calls:
            if call.state not in unsettled and self._is_new(turn, call.key):
                self._call(turn, call)

    def _is_new(self, turn: Turn, key: str) -> bool:
        """Whether it was not shown before; from now on it was."""
        at = (turn.number, key)
        is_new = at not in self._seen
        self._seen.add(at)
        return is_new

    def _call(self, turn: Turn, call: Call) -> None:
        is_good = call.state in {"done", "accepted", "unrecorded"}
        sign = "✓" if is_good else f"✗ {call.state}"
        value = {
            "step": turn.number,
            "call": call.key,
            "name": call.name,
            "state": call.state,
            "took_ms": call.took_ms,
        }
        text = fit(f"  {sign} {call.name} {compact(call.arguments)}", self._columns)
        self._say(value, text if is_good else Styled(text, "bad"))

    def now(self, now: ThreadNow | None) -> None:
        """Show what is being done, where that has changed; on a terminal with its time."""
        if now is None:
            return
        if self._is_live:
            line = fit(_now_words(now), terminal_columns(sys.stderr) - 1)
            shown = render(Styled(line, "dim"), colour=wants_colour(sys.stderr))
            print(f"\r\x1b[K{shown}", end="", file=sys.stderr, flush=True)
            return
        doing = (now.role, now.step, _doing_keys(now))
        if doing != self._last_doing:
            self._last_doing = doing
            self._say({"now": now}, f"  … {flatten(_now_words(now))}")

    def end(self, stored: StoredThread, state: str) -> int:
        """Show how it ended."""
        code, status = _code(stored, state), stored.status
        summary = status.summary
        if state == "interrupted":
            summary = f"its process died; continue: `uwf thread resume {stored.thread_id}`"
        words = Styled(f"{state}: {flatten(summary)}", STATES[state])
        value = {"thread": stored.thread_id, "state": state, "code": code, "summary": summary}
        self._say(value, words)
        return code

    @property
    def _columns(self) -> int:
        """How wide a line may be."""
        return self._output.width or _WIDTH

    def _say(self, value: object, text: Words) -> None:
        if self._is_live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._output.data(value, text)


def _doing_keys(now: ThreadNow) -> tuple[object, ...]:
    below = tuple((each.thread, _doing_keys(each)) for each in now.children)
    return (*((each.what, each.key) for each in now.doing), *below)


def _now_words(now: ThreadNow) -> str:
    """One line: the role, the round, what is at work, tokens and cost against their limits."""
    at_ms = time.time_ns() // 1_000_000
    parts = [now.role or "between steps"]
    if now.max_rounds:
        parts.append(f"round {now.round + 1}/{now.max_rounds}")
    parts.append(f"{(at_ms - now.since_ms) // 1000} s")
    limit = f"/{now.max_tokens}" if now.max_tokens is not None else ""
    parts.append(f"{now.tokens}{limit} tokens")
    if now.cost_micros or now.max_cost is not None:
        of = f"/{now.max_cost:g}" if now.max_cost is not None else ""
        parts.append(f"cost {now.cost_micros / _MICROS:.4f}{of}")
    words = {"model": "asking the model", "wait": "waiting: ", "tool": ""}
    parts += [
        f"{words[each.what]}{each.name} ({max(0, at_ms - each.since_ms) / 1000:.1f} s)"
        for each in now.doing
    ]
    below = [f"{each.workflow}: {_now_words(each)}" for each in now.children]
    return " · ".join([*parts, *below])
