"""The spans that are open, and below which of them the next one belongs.

OpenTelemetry's context travels with the task that works: it is right for parallel tools and
children, and a span that a tool makes itself finds its parent there. Where it leads nowhere, as for
what is told from another task, the address of the event says to which thread and role it belongs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from workflow_otel._conventions import ERROR_TYPE, Value, attributes, sendable_text
from workflow_protocol import ThreadStarted

Kind = Literal["run", "role", "chat", "tool"]

SUSPENDED = "suspended"
"""The error of events where something waits, for a person or a limit: here it is none."""

_CURRENT = create_key("workflow_otel")


@dataclass(slots=True, eq=False)
class OpenSpan:
    """A span, and the context in which it is current."""

    span: Span
    kind: Kind
    thread: str
    key: str
    """The journal's, of a call."""
    parent: OpenSpan | None
    outer: Context
    """What it began in, and what is current again when it has ended."""
    context: Context = field(init=False)
    is_open: bool = True

    def __post_init__(self) -> None:
        self.context = set_value(_CURRENT, self, set_span_in_context(self.span, self.outer))

    def enter(self) -> None:
        """Make it current in the task that works: what begins there now belongs below it."""
        attach(self.context)

    def end(
        self, values: dict[str, Value] | None = None, *, error: str = "", words: str = ""
    ) -> None:
        """End it; with an error it is marked as failed."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            if error == SUSPENDED:
                self.span.set_attribute("uwf.waits", True)
            elif error:
                self.span.set_attribute(ERROR_TYPE, sendable_text(error))
                self.span.set_status(Status(StatusCode.ERROR, sendable_text(words) or None))
            self.span.set_attributes(attributes(values or {}))
        finally:
            self.span.end()
            if get_value(_CURRENT) is self:
                attach(self.outer)


@dataclass(slots=True)
class ThreadSpans:
    """The open spans of one run of a thread."""

    run: OpenSpan
    role: OpenSpan | None = None
    calls: dict[str, OpenSpan] = field(default_factory=dict[str, OpenSpan])
    """Model calls and tool calls, by key."""

    @property
    def innermost(self) -> OpenSpan:
        """That of the role at work; of the run where none is."""
        return self.role or self.run

    def end_calls(self, error: str = "") -> None:
        """End the calls of which no end was told: they were cut off, or wait."""
        for call in reversed(self.calls.values()):
            call.end({"uwf.unfinished": True}, error=error)
        self.calls.clear()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span begins."""

    parent: OpenSpan | None
    context: Context


def place_of_run(event: ThreadStarted, threads: dict[str, ThreadSpans]) -> Place:
    """Below what started it: for a child the tool or role, else whatever is current."""
    if (around := _around()) is not None:
        return _below(around)
    above = threads.get(event.parents[-1]) if event.parents else None
    if above is not None:
        return _below(above.innermost)
    ended = get_value(_CURRENT)
    if not isinstance(ended, OpenSpan):
        return Place(None, get_current())
    while ended.parent is not None:
        ended = ended.parent
    return Place(None, ended.outer)


def place_in_turn(spans: ThreadSpans, key: str) -> Place:
    """Below the tool that makes the call, if one does, else below the role.

    Args:
        spans: those of the thread.
        key: the call's. Where it begins with that of a model call, an agent of the command line
            made the call in its run, which is a model call for us.
    """
    around = _around(spans.run.thread)
    while around is not None and around.kind == "chat" and not _is_inside(key, around):
        around = around.parent
    if around is None or around.kind != "chat":
        chats = [each for each in spans.calls.values() if each.kind == "chat"]
        around = next((each for each in chats if _is_inside(key, each)), around)
    return _below(around or spans.innermost)


def _is_inside(key: str, chat: OpenSpan) -> bool:
    return key.startswith(f"{chat.key}/")


def current_span(spans: ThreadSpans) -> Span:
    """The span that something happens to, of this thread."""
    return (_around(spans.run.thread) or spans.innermost).span


def _around(thread: str | None = None) -> OpenSpan | None:
    """The innermost open span around what is done now; of one thread, if that is given."""
    found = get_value(_CURRENT)
    while isinstance(found, OpenSpan):
        if found.is_open and (thread is None or found.thread == thread):
            return found
        found = found.parent
    return None


def _below(parent: OpenSpan) -> Place:
    """In the context as it is where that is inside `parent`: the user's own spans count too."""
    inside = get_value(_CURRENT) is parent
    return Place(parent, get_current() if inside else parent.context)
