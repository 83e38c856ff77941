"""Makes spans and metrics of the events of threads."""

from __future__ import annotations

import re

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, SpanKind, TracerProvider, get_current_span, get_tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from workflow_otel._contents import input_message, output_message
from workflow_otel._conventions import (
    AGENT,
    CACHED_TOKENS,
    CONVERSATION,
    ERROR_TYPE,
    FINISH_REASONS,
    INPUT_MESSAGES,
    INPUT_TOKENS,
    OPERATION,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    PROVIDER,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    SCOPE,
    SEMCONV_SCHEMA_URL,
    TOOL,
    TOOL_ARGUMENTS,
    TOOL_CALL,
    TOOL_RESULT,
    TOOL_TYPE,
    WORKFLOW,
    Value,
    attributes,
    provider_name,
    sendable_text,
)
from workflow_otel._metrics import ModelMetrics, is_known
from workflow_otel._spans import (
    SUSPENDED,
    Kind,
    OpenSpan,
    Place,
    ThreadSpans,
    current_span,
    place_in_turn,
    place_of_run,
)
from workflow_protocol import (
    Event,
    ModelFailed,
    ModelReplied,
    Retrying,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    RoundStarted,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    ToolFinished,
    ToolStarted,
)

_TOOL_NAME = re.compile(r"[\w.:/-]{1,128}")
_propagator = TraceContextTextMapPropagator()


class OtelObserver:
    """An observer for `Engine(observer=…)` that makes a trace of each run of a thread.

    `invoke_workflow {name}` holds `invoke_agent {role}`, and that `chat {model}` and
    `execute_tool {tool}`. What a child thread does is below the tool or role that started it. What
    a resume only reads from the record is an event of a span, and counts no tokens. Names and
    attributes follow `SEMCONV_VERSION`; our own begin with `uwf.`.

    Args:
        contents: also tell prompts, arguments, results, questions and the words of errors.
        tracer_provider: makes the spans; the global one if not given.
        meter_provider: takes the metrics; the global one if not given.
    """

    def __init__(
        self,
        *,
        contents: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._contents = contents
        self._tracer = get_tracer(
            SCOPE, tracer_provider=tracer_provider, schema_url=SEMCONV_SCHEMA_URL
        )
        self._metrics = ModelMetrics(meter_provider)
        self._threads: dict[str, ThreadSpans] = {}

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        if isinstance(event, ThreadStarted):
            self._start_run(event)
        elif (spans := self._threads.get(event.thread)) is not None:
            self._hear(event, spans)

    def traceparent(self, thread: ThreadId) -> str:
        """Name the trace of a run that has begun; empty where it has none."""
        spans = self._threads.get(thread)
        carrier: dict[str, str] = {}
        if spans is not None:
            _propagator.inject(carrier, spans.run.context)
        return carrier.get("traceparent", "")

    def _hear(self, event: Event, spans: ThreadSpans) -> None:
        match event:
            case RoleStarted():
                self._start_role(event, spans)
            case RoundStarted() if not event.recorded:
                self._start_chat(event, spans)
            case ToolStarted() if not event.recorded:
                self._start_tool(event, spans)
            case ModelReplied() | ModelFailed():
                self._end_chat(event, spans)
            case ToolFinished():
                self._end_tool(event, spans)
            case Retrying():
                self._note_retry(event, spans)
            case RoleFinished():
                self._end_role(event, spans)
            case RoleStopped():
                _end_turn(spans, error=event.error, words=self._told(event.message))
            case ThreadEnded():
                self._end_run(event, spans)
            case _:
                pass

    def _start_run(self, event: ThreadStarted) -> None:
        if (left := self._threads.pop(event.thread, None)) is not None:
            _end_all(left, "interrupted")
        previous = get_current_span(_propagator.extract({"traceparent": event.previous_trace}))
        link = previous.get_span_context()
        run = self._open(
            f"invoke_workflow {event.workflow}",
            "run",
            event,
            place_of_run(event, self._threads),
            {
                OPERATION: "invoke_workflow",
                WORKFLOW: event.workflow,
                "uwf.resumed": event.recorded,
                "uwf.parent_thread": event.parents[-1] if event.parents else "",
                INPUT_MESSAGES: self._told(input_message(event.prompt)),
            },
            links=[Link(link, {"uwf.link": "previous_run"})] if link.is_valid else [],
        )
        self._threads[event.thread] = ThreadSpans(run)
        run.enter()

    def _start_role(self, event: RoleStarted, spans: ThreadSpans) -> None:
        _end_turn(spans)
        spans.role = self._open(
            f"invoke_agent {event.role}",
            "role",
            event,
            Place(spans.run, spans.run.context),
            {
                OPERATION: "invoke_agent",
                AGENT: event.role,
                "uwf.step": event.step,
                "uwf.resumed": event.recorded,
            },
        )
        spans.role.enter()

    def _start_chat(self, event: RoundStarted, spans: ThreadSpans) -> None:
        chat = self._open(
            f"chat {event.model}",
            "chat",
            event,
            place_in_turn(spans, event.key),
            {**_model(event), **_address(event)},
        )
        spans.calls[event.key] = chat
        chat.enter()

    def _start_tool(self, event: ToolStarted, spans: ThreadSpans) -> None:
        name = event.name if _TOOL_NAME.fullmatch(event.name) else ""
        place = place_in_turn(spans, event.key)
        tool = self._open(
            f"execute_tool {name}".rstrip(),
            "tool",
            event,
            place,
            {
                OPERATION: "execute_tool",
                **_address(event),
                TOOL: name,
                TOOL_TYPE: "function",
                TOOL_CALL: event.call_id,
                TOOL_ARGUMENTS: self._told(event.arguments),
            },
        )
        spans.calls[event.key] = tool
        if place.parent is None or place.parent.kind != "chat":
            tool.enter()  # else it runs in an agent's process, and several at a time are told here

    def _end_chat(self, event: ModelReplied | ModelFailed, spans: ThreadSpans) -> None:
        model = _model(event)
        if event.recorded:
            told = attributes({**model, "uwf.key": event.key})
            current_span(spans).add_event("uwf.recorded", told)
            return
        error = event.error if isinstance(event, ModelFailed) else ""
        if error != SUSPENDED:  # else a limit is reached, and it wasn't made
            self._metrics.count_call(event.elapsed_ms, model, error=error)
        chat = spans.calls.pop(event.key, None)
        if isinstance(event, ModelReplied):
            self._metrics.count_tokens(event.usage, model)
            said = output_message(event.text, event.finish or "stop")
            values = {**model, **_used(event), OUTPUT_MESSAGES: self._told(said)}
            if chat is not None:
                chat.end(values)
        elif chat is not None:
            chat.end(error=error, words=self._told(event.message))

    def _end_tool(self, event: ToolFinished, spans: ThreadSpans) -> None:
        # What a model calls a tool that there is not may be anything, the task included.
        name = "" if event.error == "unknown_tool" or event.skipped else event.name
        told: dict[str, Value] = {OPERATION: "execute_tool", TOOL: name, "uwf.key": event.key}
        if event.recorded or event.skipped:
            told[ERROR_TYPE] = event.error
            what = "uwf.recorded" if event.recorded else "uwf.skipped"
            current_span(spans).add_event(what, attributes(told))
            return
        tool = spans.calls.pop(event.key, None)
        if tool is None:
            return
        if not name:
            tool.span.update_name("execute_tool")
            tool.span.set_attribute(TOOL, "_OTHER")
        words = self._told(event.summary)
        tool.end({TOOL_RESULT: words}, error=event.error, words=words)

    def _note_retry(self, event: Retrying, spans: ThreadSpans) -> None:
        call = spans.calls.get(event.key)
        values: dict[str, Value] = {
            "uwf.retry.attempt": event.attempt,
            "uwf.retry.wait_s": event.wait_s,
            "uwf.retry.reason": self._told(event.reason),
        }
        span = current_span(spans) if call is None else call.span
        span.add_event("uwf.retry", attributes(values))

    def _end_role(self, event: RoleFinished, spans: ThreadSpans) -> None:
        _end_turn(spans, values={OUTPUT_MESSAGES: self._told(output_message(event.value))})

    def _end_run(self, event: ThreadEnded, spans: ThreadSpans) -> None:
        del self._threads[event.thread]
        words = self._told(event.summary)
        if event.state == "suspended":
            waits = {"uwf.cause": event.cause, "uwf.reason": words}
            spans.run.span.add_event("uwf.suspended", attributes(waits))
        error = _error_of(event)
        _end_turn(spans, error=error, words=words)
        spans.run.end(
            {
                "uwf.state": event.state,
                "uwf.return_code": event.return_code,
                "uwf.origin": event.origin,
                "uwf.summary": words,
            },
            error=error,
            words=words,
        )

    def _open(
        self,
        name: str,
        kind: Kind,
        event: Event,
        place: Place,
        values: dict[str, Value],
        *,
        links: list[Link] | None = None,
    ) -> OpenSpan:
        span = self._tracer.start_span(
            sendable_text(name.rstrip()),
            context=place.context,
            kind=SpanKind.CLIENT if kind == "chat" else SpanKind.INTERNAL,
            attributes=attributes({CONVERSATION: event.thread, **values}),
            links=links,
        )
        return OpenSpan(span, kind, event.thread, event.key, place.parent, place.context)

    def _told(self, words: str) -> str:
        """Words that may hold what was said: only where they are asked for."""
        return words if self._contents else ""


def _end_turn(
    spans: ThreadSpans,
    *,
    values: dict[str, Value] | None = None,
    error: str = "",
    words: str = "",
) -> None:
    spans.end_calls(error)
    if spans.role is not None:
        spans.role.end(values, error=error, words=words)
        spans.role = None
        spans.run.enter()


def _end_all(spans: ThreadSpans, error: str) -> None:
    _end_turn(spans, error=error)
    spans.run.end(error=error)


def _error_of(event: ThreadEnded) -> str:
    """What went wrong, as `error.type`: a class, a state or, as for a process, its exit code."""
    if event.state == "completed":
        return str(event.return_code) if event.return_code else ""
    return event.error or event.state


def _address(event: RoundStarted | ToolStarted) -> dict[str, Value]:
    return {
        AGENT: event.role,
        "uwf.step": event.step,
        "uwf.round": event.round,
        "uwf.key": event.key,
    }


def _model(event: RoundStarted | ModelReplied | ModelFailed) -> dict[str, Value]:
    return {
        OPERATION: "chat",
        REQUEST_MODEL: event.model,
        PROVIDER: provider_name(event.provider),
        RESPONSE_MODEL: event.response_model if isinstance(event, ModelReplied) else "",
    }


def _used(event: ModelReplied) -> dict[str, Value]:
    usage = event.usage
    used: dict[str, Value] = {
        FINISH_REASONS: [event.finish] if event.finish else None,
        "uwf.cost": None if event.cost_micros is None else event.cost_micros / 1_000_000,
    }
    if is_known(usage):
        used[INPUT_TOKENS] = usage.input_tokens
        used[OUTPUT_TOKENS] = usage.output_tokens
        used[CACHED_TOKENS] = usage.cached_tokens or None
    return used
