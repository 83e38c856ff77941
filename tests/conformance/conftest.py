"""Runs the real adapters over HTTP against a strict endpoint, and what each run must hold."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import DialectName, ReactAdapterConfig, create_react_adapter
from workflow_protocol import (
    AdapterFn,
    DirectJournal,
    Effect,
    Event,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowError,
)
from workflow_reactor import HttpLlm, LlmProvider, Profile, ToolCall, ToolDefinition
from workflow_reactor.testing import LoopbackServer, Reply, Wire, loopback_server


@dataclass
class Answer:
    answer: int


def definition(name: str, effect: Effect, *parameters: str, pollable: bool = False) -> Any:
    kinds = {"a": "integer", "b": "integer"}
    return ToolDefinition(
        name=name,
        description=f"The tool {name}.",
        parameters={
            "type": "object",
            "properties": {each: {"type": kinds.get(each, "string")} for each in parameters},
            "required": list(parameters),
            "additionalProperties": False,
        },
        effect=effect,
        pollable=pollable,
    )


TOOLS = (
    definition("add", Effect.READ, "a", "b"),
    definition("ping", Effect.READ),
    definition("poll", Effect.READ, pollable=True),
    definition("write", Effect.UNSAFE, "path", "text"),
    definition("note", Effect.UNSAFE, "text"),
    definition("boom", Effect.UNSAFE),
)


@dataclass
class Recorder(DirectJournal):
    """Keeps what was recorded; given earlier records, it performs nothing that is in them."""

    records: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    requests: dict[str, bytes] = field(default_factory=dict[str, bytes])
    events: list[Event] = field(default_factory=list[Event])
    replaying: bool = False

    async def run(self, key: str, perform: Callable[[], Awaitable[Any]], **options: Any) -> Any:
        digest = options.get("digest", "")
        if self.replaying:
            recorded, result = self.records[key]
            assert recorded == digest, key
            return result
        request = options.get("request")
        if request is not None:
            self.requests[key] = request()
        result = await perform()
        self.records[key] = (digest, result)
        return result

    async def note(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Run:
    """What a run came to: a value or the typed error, and everything that was seen of it."""

    server: LoopbackServer
    journal: Recorder
    ran: list[str]
    value: Any = None
    error: WorkflowError | None = None
    waits_s: list[float] = field(default_factory=list[float])

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.server.requests

    def told(self) -> str:
        """What the model was told last: everything after its last reply, or all if it has none."""
        messages = self.requests[-1]["messages"]
        last = max([i for i, m in enumerate(messages) if m["role"] == "assistant"], default=0)
        return "\n".join(message["content"] for message in messages[last + 1 :])


Runner = Callable[..., Awaitable[Run]]


def context(journal: Recorder) -> ThreadContext:
    start = StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start, journal=journal)


async def handle(call: ToolCall, ran: list[str]) -> str:
    arguments = json.loads(call.arguments)
    ran.append(f"{call.name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})")
    if call.name == "boom":
        raise RuntimeError("bang")
    return str(arguments["a"] + arguments["b"]) if call.name == "add" else "done"


def sent_prefix(body: bytes) -> bytes:
    """A request up to the end of its last message."""
    last = json.loads(body)["messages"][-1]
    encoded = json.dumps(last, ensure_ascii=False, separators=(",", ":")).encode()
    assert encoded in body
    return body[: body.rindex(encoded) + len(encoded)]


def goes_on(earlier: bytes, later: bytes) -> bool:
    """Whether a request begins with all that an earlier one had."""
    return later.startswith(sent_prefix(earlier))


def without_reasoning(body: bytes) -> bytes:
    """A request as it is when the server refuses what it was shown of its own reasoning."""
    request = json.loads(body)
    for message in request["messages"]:
        if message["role"] == "assistant":
            message.pop("reasoning_content", None)
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def check(run: Run) -> None:
    """What holds for every run, however it ends."""
    assert run.server.faults == []
    bodies = run.server.bodies
    changes = [pair for pair in itertools.pairwise(bodies) if not goes_on(*pair)]
    # A server may refuse its own reasoning: then it is left out, once and for all that follows.
    bare = [(without_reasoning(earlier), later) for earlier, later in changes]
    assert all(goes_on(*pair) for pair in bare), "the prefix changed"
    assert len(changes) <= 1, "the prefix changed more than once"
    asked = {key: digest for key, (digest, _) in run.journal.records.items() if "llm/" in key}
    for key, digest in asked.items():
        assert hashlib.sha256(run.journal.requests[key]).hexdigest() == digest
        kept = run.journal.requests[key]  # with the reasoning, also where it was left out
        assert kept in bodies or (changes and without_reasoning(kept) in bodies)
    assert run.error is None or "sk-loopback" not in repr(run.error) + str(vars(run.error))


async def run_adapter(
    make: Callable[[HttpLlm, list[str]], AdapterFn],
    replies: Sequence[Reply | Wire],
    schema: Any,
    profile: Profile | None,
    **settings: Any,
) -> Run:
    waits_s: list[float] = []

    async def sleep(seconds: float) -> None:
        waits_s.append(seconds)
        await anyio.lowlevel.checkpoint()

    def model(provider: LlmProvider) -> HttpLlm:
        return HttpLlm(provider, sleep=sleep)

    async with loopback_server(replies, strict=True) as server:
        run = Run(server, Recorder(), [], waits_s=waits_s)
        provider = server.provider(profile, **{"max_attempts": 3, **settings})
        role = make(model(provider), run.ran)("You count.", schema)
        with anyio.fail_after(20):
            try:
                run.value = await role(context(run.journal))
            except WorkflowError as error:
                run.error = error
    check(run)
    if run.error is None:  # the same again from the records alone, with nobody to ask
        again = Recorder(records=run.journal.records, replaying=True)
        assert await make(model(provider), [])("You count.", schema)(context(again)) == run.value
    return run


@pytest.fixture
def run_react() -> Runner:
    async def run(
        replies: Sequence[Reply | Wire],
        *,
        schema: Any = Answer,
        profile: Profile | None = None,
        dialect: DialectName = "native",
        max_rounds: int = 6,
        **settings: Any,
    ) -> Run:
        def make(llm: HttpLlm, ran: list[str]) -> AdapterFn:
            return create_react_adapter(
                ReactAdapterConfig(
                    llm=llm,
                    tools=TOOLS,
                    tool_handler=lambda call, ctx: handle(call, ran),
                    dialect=dialect,
                    max_rounds=max_rounds,
                )
            )

        return await run_adapter(make, replies, schema, profile, **settings)

    return run


@pytest.fixture
def run_llm() -> Runner:
    async def run(
        replies: Sequence[Reply | Wire],
        *,
        schema: Any,
        profile: Profile | None = None,
        **settings: Any,
    ) -> Run:
        return await run_adapter(
            lambda llm, ran: create_llm_adapter(llm), replies, schema, profile, **settings
        )

    return run
