"""`uwf run` traces where the environment asks for it, and never at the cost of the run."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anyio
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from workflow_reactor.testing import say

from ..cli import Cli, example
from ..entries import GREETING

COUNTING = """
import sys
from workflow_execute.testing import in_turn

async def turn(ctx):
    heavy = {"opentelemetry", "workflow_otel", "google", "requests"}
    return len([name for name in sys.modules if name.partition(".")[0] in heavy])

run = in_turn(turn)
"""


OWN_SPAN = """
from opentelemetry import trace
from workflow_execute.testing import in_turn

async def turn(ctx):
    with trace.get_tracer("own").start_as_current_span("own work"):
        return 1

run = in_turn(turn)
"""

WITH_AN_SDK = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from uwf import main

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
assert main(["run", sys.argv[1], "p"]) == 0
print([each.name for each in spans.get_finished_spans()])
"""


class Collector(ThreadingHTTPServer):
    """Takes OTLP over HTTP on a loopback port."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.metrics: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, path: str, data: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
                named = [
                    each for each in resource.resource.attributes if each.key == "service.name"
                ]
                self.services |= {each.value.string_value for each in named}
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        else:
            for resource in ExportMetricsServiceRequest.FromString(data).resource_metrics:
                for scope in resource.scope_metrics:
                    self.metrics |= {each.name for each in scope.metrics}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        self.server.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def collector(status: int = 200) -> Generator[Collector]:
    with Collector(status) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def test_a_run_and_its_resume_reach_the_collector(uwf: Cli) -> None:
    refused = say("no")  # no greeting, twice: the run fails
    with collector() as server:
        async with uwf.scripted([refused, refused]):
            failed = await uwf.process(
                "run", example("greet"), "Ada", OTEL_EXPORTER_OTLP_ENDPOINT=server.url
            )
        run = next(each for each in server.spans if each.name.startswith("invoke_workflow"))
        async with uwf.scripted([say(GREETING)]):
            resumed = await uwf.process(
                "thread",
                "resume",
                _last_thread(run),
                "--fresh",
                OTEL_EXPORTER_OTLP_ENDPOINT=server.url,
            )

        assert (failed.code, resumed.code) == (1, 0), resumed.err
        names = [each.name for each in server.spans]
        assert names.count("chat scripted") == 3
        assert names.count("invoke_agent greeter") == 2
        (again,) = [each for each in server.spans if list(each.links)]
        assert again.links[0].trace_id == run.trace_id
        assert server.services == {"uwf"}
        assert server.metrics == {
            "gen_ai.client.token.usage",
            "gen_ai.client.operation.duration",
        }


def _last_thread(run: Span) -> str:
    found = {each.key: each.value.string_value for each in run.attributes}
    return found["gen_ai.conversation.id"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("refuses", ": Connection refused"),
        pytest.param("is silent", "took longer than 5 s", marks=pytest.mark.slow),
        pytest.param("says no", "400", marks=pytest.mark.slow),
    ],
)
async def test_a_collector_that_fails_costs_one_line_and_a_bounded_time(
    uwf: Cli, how: str, words: str
) -> None:
    with socket.socket() as silent, collector(status=400) as refusing:
        silent.bind(("127.0.0.1", 0))
        if how == "is silent":
            silent.listen()
        url = refusing.url if how == "says no" else f"http://127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        async with uwf.scripted([say(GREETING)]):
            ran = await uwf.process("run", example("greet"), "Ada", OTEL_EXPORTER_OTLP_ENDPOINT=url)
        took_s = time.monotonic() - began_s

    assert ran.code == 0
    assert json.loads(ran.out)["language"] == "French"
    (line,) = [line for line in ran.err.splitlines() if "were not sent" in line]
    assert words in line
    assert "Traceback" not in ran.err
    assert "opentelemetry" not in ran.err.lower()
    assert took_s < 20


async def test_a_variable_that_can_t_be_used_is_one_line(uwf: Cli) -> None:
    async with uwf.scripted([say(GREETING)]):
        ran = await uwf("run", example("greet"), "Ada", OTEL_TRACES_EXPORTER="zipkin")

    assert ran.code == 0
    assert "uwf: no traces: OTEL_TRACES_EXPORTER is 'zipkin'; use one of" in ran.err


@pytest.mark.parametrize(
    "variables",
    [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}],
)
async def test_what_is_not_traced_imports_nothing_of_opentelemetry(
    uwf: Cli, variables: dict[str, str]
) -> None:
    entry = uwf.write("entry.py", COUNTING)

    ran = await uwf.process("run", entry, "p", stdin=b"", **variables)

    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == 0


@pytest.mark.slow
async def test_what_a_role_traces_itself_is_sent_too(uwf: Cli) -> None:
    entry = uwf.write("entry.py", OWN_SPAN)
    with collector() as server:
        ran = await uwf.process(
            "run", entry, "p", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{server.url}/v1/traces"
        )

    assert ran.code == 0, ran.err
    spans = {each.name.partition(" ")[0]: each for each in server.spans}
    assert spans["own"].parent_span_id == spans["invoke_agent"].span_id
    assert server.metrics == set()


@pytest.mark.slow
async def test_spans_on_the_console_leave_standard_output_to_the_value(uwf: Cli) -> None:
    entry = uwf.write("entry.py", OWN_SPAN)

    ran = await uwf.process("run", entry, "p", OTEL_TRACES_EXPORTER="console")

    assert ran.out == "1\n"
    assert '"name": "own work"' in ran.err


@pytest.mark.slow
async def test_an_sdk_that_the_process_has_is_used(uwf: Cli) -> None:
    entry, script = uwf.write("entry.py", OWN_SPAN), uwf.write("script.py", WITH_AN_SDK)

    done = await anyio.run_process(
        [sys.executable, str(script), str(entry)],
        check=False,
        cwd=uwf.folder,
        env={**uwf.environment, "OTEL_TRACES_EXPORTER": "otlp"},
    )

    assert done.returncode == 0, done.stderr.decode()
    last = done.stdout.decode().splitlines()[-1]
    assert last.startswith("['own work', 'invoke_agent")
    assert "were not sent" not in done.stderr.decode()


@pytest.mark.slow
async def test_a_variable_that_the_sdk_can_t_read_is_one_line(uwf: Cli) -> None:
    entry = uwf.write("entry.py", OWN_SPAN)
    with collector() as server:
        ran = await uwf.process(
            "run",
            entry,
            "p",
            OTEL_EXPORTER_OTLP_ENDPOINT=server.url,
            OTEL_BSP_SCHEDULE_DELAY="soon",
        )

    assert (ran.code, ran.out) == (0, "1\n")
    assert "uwf: OpenTelemetry: Unable to parse value for OTEL_BSP_SCHEDULE_DELAY" in ran.err
    assert "Traceback" not in ran.err
    assert "own work" in {each.name for each in server.spans}
