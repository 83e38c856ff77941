"""A thread of known bytes that another process, locale or Python version can replay.

    python scenario.py run|replay FOLDER

Both print one line of JSON about the thread. `replay` has no model that could be asked.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter
from workflow_cas import open_store
from workflow_execute import Engine, ReplayedRequest, Workflow, create_workflow, find_thread
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Condition,
    Effect,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
    when,
)
from workflow_reactor import ToolCall, ToolDefinition
from workflow_reactor.testing import Reply, ScriptedLlm, call, function, say


@dataclass
class Report:
    title: str
    words: list[str]
    ratio: float


WRITER = RoleDefinition(name="writer", system_prompt="Write a “report”: ßİ\u0131.", schema=Report)
JUDGE = RoleDefinition(name="judge", system_prompt="Judge.", schema=bool)
GOOD = Condition(name="good", description="approved", check=lambda ctx: ctx.meta(JUDGE) is True)


def names(text: str) -> set[str]:
    """A set, whose order changes with the hash seed."""
    return set(text.split())


async def handle(call: ToolCall, ctx: ThreadContext) -> str:
    """Results that are recorded, so that they need not be the same twice."""
    words = names("İstanbul \u0131l\u0131k straße naïve " + call.arguments)
    return f"{call.name}: {' '.join(words)}"


TOOLS = Toolset(
    tuple(
        ToolDefinition(
            name=name,
            description=f"{name} the text",
            parameters={"type": "object", "properties": {"text": {"type": "string"}}},
            effect=effect,
        )
        for name, effect in (("read", Effect.READ), ("send", Effect.UNSAFE))
    ),
    handle,
)


def report(words: int) -> dict[str, Any]:
    return {"title": "ıİ ß", "words": ["w"] * words, "ratio": 0.1 + 0.2}


REPLIES: list[Reply] = [
    say("I look. 🙂", function("read", text="a"), function("read", id="k2", text="b")),
    call("send", text="ü" * 50),
    say("no call at all"),
    call("resolve", **report(1)),
    call("resolve", value=False),
    call("read", text="again"),
    call("resolve", **report(2)),
    call("read", text="more"),
    call("resolve", value=True),
]


def workflow(replies: list[Reply]) -> Workflow:
    adapter = create_react_adapter(ReactAdapterConfig(llm=ScriptedLlm(replies), toolset=TOOLS))
    return create_workflow(
        WorkflowDefinition(
            description="write until it is good",
            table={
                START: WRITER,
                WRITER: JUDGE,
                JUDGE: [when(GOOD, END), WRITER],
            },
        ),
        AdapterBinding(adapter),
    )


async def main(what: str, folder: Path) -> dict[str, Any]:
    """Run the thread, or replay it without a model."""
    async with open_store(folder / "store.sqlite3", read_only=what == "replay") as store:
        engine = Engine(store)
        if what == "run":
            done = await engine.start(workflow(REPLIES), "Schreib, İ!", workspace=folder)
            if done.error is not None:
                raise done.error
        requests: list[ReplayedRequest] = []
        replay = await engine.replay(
            workflow([]), await find_thread(store, "latest"), on_request=requests.append
        )
    return {
        "steps": replay.steps,
        "requests": replay.requests,
        "completion": str(replay.completion),
        "bytes": hashlib.sha256(b"\n".join(each.data for each in requests)).hexdigest(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(main, sys.argv[1], Path(sys.argv[2]))))
