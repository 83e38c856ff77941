"""`uwf run` traces where the environment asks for it, and never at the cost of the run."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

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
    "how",
    [
        "refuses",
        pytest.param("is silent", marks=pytest.mark.slow),
        pytest.param("says no", marks=pytest.mark.slow),
    ],
)
async def test_a_collector_that_fails_costs_one_line_and_a_bounded_time(uwf: Cli, how: str) -> None:
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
    assert len([line for line in ran.err.splitlines() if "were not sent" in line]) == 1
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
