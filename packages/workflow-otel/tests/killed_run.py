"""Runs or resumes a thread with traces that go to a file as each span ends; may kill itself.

Arguments: the store, the file for the spans, and `kill` or the thread to resume.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter, tool
from workflow_cas import open_store
from workflow_execute import Engine, create_workflow
from workflow_otel import OtelObserver
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    RoleDefinition,
    ThreadId,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm, call

STORE, SPANS, WHAT = sys.argv[1:]
REPLIES = [call("look"), call("stay"), call("resolve", value=1)]
READER = RoleDefinition(name="reader", system_prompt="Read.", schema=int)


class Lines(SpanExporter):
    """One JSON line a span, on disk at once."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans."""
        with Path(SPANS).open("a", encoding="utf-8") as file:
            file.writelines(f"{each.to_json(indent=None)}\n" for each in spans)
        return SpanExportResult.SUCCESS


@tool(effect=Effect.READ)
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect=Effect.REPEATABLE)
async def stay() -> str:
    """Die the first time."""
    if WHAT == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return "stayed"


async def main() -> None:
    """Run the thread."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines()))
    rest = REPLIES if WHAT == "kill" else REPLIES[2:]
    config = ReactAdapterConfig(llm=ScriptedLlm(rest), toolset=Toolset.combine(look, stay))
    workflow = create_workflow(
        WorkflowDefinition(
            table={START: READER, READER: END},
        ),
        AdapterBinding(create_react_adapter(config)),
    )
    async with open_store(Path(STORE)) as store:
        engine = Engine(store, observer=OtelObserver(tracer_provider=provider))
        if WHAT == "kill":
            await engine.start(workflow, "p")
        else:
            result = await engine.resume(workflow, ThreadId(WHAT))
            sys.stdout.write(f"{result.state} {result.steps[0].usage.input_tokens}")


anyio.run(main)
