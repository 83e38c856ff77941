"""The two metrics of model calls."""

from __future__ import annotations

from workflow_cas import MemoryStore
from workflow_execute import Engine
from workflow_reactor.testing import ScriptedLlm, Wire, call, http, loopback_server, say

from .traced import Traced, react


async def test_tokens_and_duration_are_counted_by_model() -> None:
    traced = Traced()
    llm = ScriptedLlm([say("no call", usage=(7, 3)), call("resolve", value=1)])

    await Engine(MemoryStore(), observer=traced.observer).start(react(llm=llm), "p")

    points = {
        str((each.attributes or {})["gen_ai.token.type"]): each
        for each in traced.points("gen_ai.client.token.usage")
    }
    assert {kind: (each.count, each.sum) for kind, each in points.items()} == {
        "input": (2, 17),
        "output": (2, 8),
    }
    assert (
        dict(points["input"].attributes or {}).items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "scripted",
        }.items()
    )
    assert points["input"].explicit_bounds[:3] == (1, 4, 16)


async def test_a_call_without_usage_counts_no_tokens_but_its_time() -> None:
    traced = Traced()
    llm = ScriptedLlm([say("1", usage=None), call("resolve", value=1)])

    await Engine(MemoryStore(), observer=traced.observer).start(react(llm=llm), "p")

    (duration,) = traced.points("gen_ai.client.operation.duration")
    assert duration.count == 2
    assert duration.explicit_bounds[0] == 0.01


async def test_a_failed_call_is_counted_with_its_error() -> None:
    traced = Traced()
    async with loopback_server([Wire(data=http(401))]) as server:
        await Engine(MemoryStore(), observer=traced.observer).start(
            react(provider=server.provider()), "p"
        )

    (duration,) = traced.points("gen_ai.client.operation.duration")
    assert (duration.attributes or {})["error.type"] == "ProviderRefused"
    assert traced.points("gen_ai.client.token.usage") == []
