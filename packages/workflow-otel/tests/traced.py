"""What the tests share: workflows of one role, and what was exported in memory of their runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from typing_extensions import TypeForm

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter
from workflow_execute import Workflow, create_workflow
from workflow_otel import OtelObserver
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    WorkflowDefinition,
)

READER = RoleDefinition(name="reader", system_prompt="Read.", schema=int)


def one_role(adapter: AdapterFn) -> Workflow:
    """A workflow of the role `reader`, which gives a number."""
    return create_workflow(
        WorkflowDefinition(
            table={START: READER, READER: END},
        ),
        AdapterBinding(adapter),
    )


def react(*tools: Toolset, **config: Any) -> Workflow:
    """The same, by the ReAct loop."""
    return one_role(create_react_adapter(ReactAdapterConfig(toolset=tools, **config)))


def doing(work: Callable[[ThreadContext], Awaitable[int]]) -> AdapterFn:
    """An adapter whose roles do what a function says."""

    def adapter(prompt: str, schema: TypeForm[Any]) -> RoleFn[Any]:
        return cast("RoleFn[Any]", work)

    return adapter


@dataclass
class Traced:
    """An observer, and all that it sent."""

    contents: bool = False
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    observer: OtelObserver = field(init=False)

    def __post_init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.observer = OtelObserver(
            contents=self.contents, tracer_provider=self.provider, meter_provider=self.meters
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda each: each.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of a name."""
        return [each for each in self.spans if each.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of a name."""
        (span,) = self.named(name)
        return span

    def tree(self) -> list[Any]:
        """The names, each with those below it where there are any."""
        ids = {span_id(each) for each in self.spans}
        roots = [each for each in self.spans if each.parent is None or parent_id(each) not in ids]
        return [self._branch(each) for each in roots]

    def _branch(self, span: ReadableSpan) -> Any:
        below = [each for each in self.spans if parent_id(each) == span_id(span)]
        return (span.name, [self._branch(each) for each in below]) if below else span.name

    def points(self, metric: str) -> list[HistogramDataPoint]:
        """The data points of a metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        metrics = [
            each
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
        ]
        points = [point for each in metrics for point in each.data.data_points]
        return [each for each in points if isinstance(each, HistogramDataPoint)]

    def tokens(self) -> dict[str, float]:
        """The sums of the token metric over all models, by kind."""
        sums: dict[str, float] = {}
        for each in self.points("gen_ai.client.token.usage"):
            kind = str((each.attributes or {})["gen_ai.token.type"])
            sums[kind] = sums.get(kind, 0) + each.sum
        return sums


def span_id(span: ReadableSpan) -> int:
    """Its own id."""
    assert span.context is not None
    return span.context.span_id


def parent_id(span: ReadableSpan) -> int | None:
    """The id of the span above it."""
    return span.parent.span_id if span.parent else None


def trace_id(span: ReadableSpan) -> int:
    """The id of its trace."""
    assert span.context is not None
    return span.context.trace_id


def has_error(span: ReadableSpan) -> tuple[bool, object]:
    """Whether it is marked as failed, and as what."""
    is_error = span.status.status_code is StatusCode.ERROR
    return is_error, (span.attributes or {}).get("error.type")


def events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    """Its events."""
    return [(each.name, dict(each.attributes or {})) for each in span.events]


def all_text(spans: Sequence[ReadableSpan]) -> str:
    """All that spans hold."""
    return "\n".join(each.to_json() for each in spans)
