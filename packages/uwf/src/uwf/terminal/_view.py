"""What people see while a thread runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO, cast

from uwf.terminal._cells import columns_of, fit, flatten
from uwf.terminal._screen import Screen
from uwf.terminal._spoken import spoken_words
from uwf.terminal._style import STATES, Style, Styled, is_rich_terminal, render, wants_colour
from uwf.terminal._table import RICH_STYLES, make_console
from workflow_protocol import (
    Event,
    ModelReplied,
    Retrying,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    RoundStarted,
    ThreadEnded,
    ThreadStarted,
    ToolFinished,
    ToolStarted,
    Usage,
    WorkspaceDiffers,
    WorkspaceVersioned,
)

_WIDTH = 100


class Progress:
    """Turns events into lines, and keeps what is going on now."""

    def __init__(self, width: Callable[[], int] = lambda: _WIDTH) -> None:
        self._width = width
        self.started = time.monotonic()
        self.now = "starting"
        self.role = ""
        self.round = ""
        self.usage = Usage()
        self._arguments: dict[tuple[str, str], str] = {}

    def line(self, event: Event) -> str | None:
        """Take in an event; give a line for what is worth one."""
        match event:
            case ThreadStarted():
                return f"thread {event.thread}"
            case RoleStarted():
                self.role, self.round, self.now = event.role, "", "starting"
                return f"{event.role} (step {event.step + 1})"
            case RoundStarted():
                self.round = f"round {event.round + 1}/{event.max_rounds}"
                self.now = "asking the model"
            case ModelReplied():
                self.usage += event.usage
                self.now = "reading the reply"
                words = spoken_words(event.text, self._width() - 4)
                return f"  “{words}”" if words else None
            case Retrying():
                self.now = f"waiting {event.wait_s:.1f} s: {event.reason}"
                return flatten(f"  {self.now}")
            case ToolStarted():
                arguments = compact(event.arguments)
                self._arguments[event.thread, event.key or event.call_id] = arguments
                self.now = f"{event.name} {arguments}"
            case ToolFinished():
                call = event.thread, event.key or event.call_id
                what = f"{event.name} {self._arguments.pop(call, '')}"
                if event.ok:
                    return self._cut(f"  ✓ {what}")
                return self._cut(f"  ✗ {event.name}: {event.summary}  {what.partition(' ')[2]}")
            case RoleFinished():
                tokens = event.usage.input_tokens + event.usage.output_tokens
                seconds = event.elapsed_ms / 1000
                took = f"  [{tokens} tokens, {seconds:.1f} s]"
                return f"  = {shorten(event.value, self._width() - columns_of(took) - 4)}{took}"
            case RoleStopped() if event.leads_to:
                to = f"  → {event.leads_to}"
                words = " ".join(f"{event.error}: {event.message}".split())
                return f"  ✗ {shorten(words, self._width() - columns_of(to) - 4)}{to}"
            case WorkspaceVersioned():
                return self._cut(f"  {_versions_words(event)}")
            case WorkspaceDiffers():
                return f"  {_differing_words(event)}"
            case ThreadEnded():
                return _end(event)
            case _:
                pass
        return None

    def _cut(self, text: str) -> str:
        return shorten(text, self._width())

    def status(self) -> str:
        """One line of what is going on; what comes last may be cut."""
        seconds = time.monotonic() - self.started
        tokens = f"{self.usage.input_tokens} in, {self.usage.output_tokens} out"
        parts = (self.role, self.round, f"{seconds:.0f} s", tokens, self.now)
        return self._cut(" · ".join(part for part in parts if part))


def line_style(event: Event) -> Style | None:
    """How the line of an event looks."""
    match event:
        case ThreadStarted():
            return "dim"
        case RoleStarted():
            return "strong"
        case Retrying():
            return "warn"
        case ToolFinished():
            return None if event.ok else "bad"
        case ThreadEnded():
            return STATES.get(event.state)
        case _:
            return None


def _versions_words(event: WorkspaceVersioned) -> str:
    """That copies of the files are kept, or why they aren't."""
    if event.reason:
        return event.reason
    left = f" (left out: {', '.join(event.left_out[:3])})" if event.left_out else ""
    return f"versions of the files are kept in the store{left}: {event.workspace}"


def _differing_words(event: WorkspaceDiffers) -> str:
    """Which files are not as the thread left them, and the command for it."""
    thread = f"uwf thread resume {event.thread} --restore-files"
    if not event.put_back:
        what = _names(event.count, event.paths)
        return f"not as the thread left them: {what}. To put them back: `{thread}`"
    words: list[str] = []
    if event.count:
        words.append(f"put back as the thread left them: {_names(event.count, event.paths)}")
    if event.stay:
        words.append(f"not kept, so left as they are: {_names(len(event.stay), event.stay)}")
    before = f"uwf thread files {event.thread} --version {event.version} --to DIR"
    return f"{'; '.join(words)}. As they were: `{before}`"


def _names(count: int, paths: Sequence[str]) -> str:
    """How many files, and the first few of them."""
    named = ", ".join(shorten(path, _WIDTH // 3) for path in paths[:3])
    more = ", …" if count > len(paths[:3]) else ""
    return f"{count} {'file' if count == 1 else 'files'} ({named}{more})"


def _end(event: ThreadEnded) -> str:
    """How a thread ended; of a failure the type, what it says, and where it was raised."""
    if event.state == "completed":
        return f"completed ({event.return_code}): {shorten(event.summary)}"
    summary = flatten(event.summary)
    if event.state == "suspended":  # to come: its code is none of a result
        return f"suspended: {summary}"
    words = [event.error, summary] if event.error else [summary]
    place = f" ({relative_origin(event.origin)})" if event.origin else ""
    return f"{event.state} ({event.return_code}): {': '.join(filter(None, words))}{place}"


def relative_origin(origin: str) -> str:
    """A file, line and function, the file as one would name it here."""
    with suppress(OSError):  # the folder may be gone
        origin = origin.removeprefix(f"{os.getcwd()}{os.sep}")
    return flatten(origin)


def compact(arguments: str) -> str:
    """A call's arguments on one line, however the model laid them out; what is no JSON stays."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def shorten(text: str, width: int = _WIDTH) -> str:
    """One line of limited width, safe to print."""
    return fit(text, width)


@dataclass(frozen=True, slots=True)
class View:
    """Shows events; `quiet` keeps the screen still for a block, and gives it for a prompt."""

    show: Callable[[Event], None]
    quiet: Callable[[], AbstractContextManager[TextIO]]


@contextmanager
def progress_view(screen: Screen, *, live: bool) -> Generator[View]:
    """Show a thread's events while the block runs."""
    if live and is_rich_terminal(screen):
        with _live_view(screen) as view:
            yield view
    else:
        progress, stream = Progress(), cast("TextIO", screen)
        colour = wants_colour(screen)

        def show(event: Event) -> None:
            if (line := progress.line(event)) is not None:
                style = line_style(event)
                words = line if style is None else Styled(line, style)
                print(render(words, colour=colour), file=stream, flush=True)

        yield View(show, screen.prompt)


@contextmanager
def _live_view(screen: Screen) -> Generator[View]:
    """Lines as they come, and below them one that changes: what goes on, tokens and time."""
    from rich.live import Live
    from rich.text import Text

    console = make_console(cast("TextIO", screen))
    progress = Progress(lambda: console.width - 1)
    with Live(
        get_renderable=lambda: Text(progress.status(), style="dim", no_wrap=True),
        console=console,
        refresh_per_second=4,
        transient=True,
    ) as live:

        def show(event: Event) -> None:
            if (line := progress.line(event)) is not None:
                style = line_style(event)
                console.print(Text(line, RICH_STYLES[style] if style is not None else ""))

        @contextmanager
        def quiet() -> Generator[TextIO]:
            live.stop()
            try:
                with screen.prompt() as stream:
                    yield stream
            finally:
                live.start()

        yield View(show, quiet)
