"""`--model` and `--limit`: what holds for one run alone."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from uwf.arguments._types import LIMITS
from workflow_execute import Limits
from workflow_reactor.testing import LoopbackServer, Reply, call, loopback_server
from workflow_register import update_config

from ..cli import Cli
from ..entries import AGENT, AGENT_BELOW, ONE


class Two(NamedTuple):
    """The configured model, and one beside it."""

    usual: LoopbackServer
    spare: LoopbackServer


@asynccontextmanager
async def two_models(
    uwf: Cli, usual: Sequence[Reply], spare: Sequence[Reply]
) -> AsyncGenerator[Two]:
    """Two providers; `usual/a` is the default."""
    async with loopback_server(usual) as first, loopback_server(spare) as second:
        providers = {
            name: {"kind": "openai", "base_url": f"http://127.0.0.1:{server.port}/v1",
                   "max_attempts": 1}
            for name, server in (("usual", first), ("spare", second))
        }  # fmt: skip
        update_config(uwf.home, {"providers": providers, "models": {"default": "usual/a"}})
        yield Two(first, second)


def models_asked(server: LoopbackServer) -> list[str]:
    return [json.loads(body)["model"] for body in server.bodies]


TWO_SCENES = f"""{AGENT}
from workflow_register import configured_llm

def agent(llm):
    return create_react_adapter(ReactAdapterConfig(llm=llm, dialect="native"))

run = create_workflow(
    run.definition,
    AdapterBinding(
        adapter=agent(configured_llm()), overrides={{"last": agent(configured_llm("write"))}}
    ),
)
"""

RESULTS = [call("resolve", value="a"), call("resolve", value="b")]


async def test_another_model_serves_all_roles_of_one_run_and_show_tells_it(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, RESULTS, RESULTS) as (usual, spare):
        assert (await uwf("run", entry, "x", "--model", "spare/b")).code == 0
        assert (models_asked(usual), models_asked(spare)) == ([], ["b", "b"])
        (data,) = (await uwf("show", "--json")).lines
        assert data["run_options"] == ["--model spare/b"]
        assert "options    --model spare/b\n" in (await uwf("show")).out
        assert (await uwf("thread", "replay", "latest")).code == 0

        assert (await uwf("run", entry, "x")).code == 0
        assert models_asked(usual) == ["a", "a"]
    (data,) = (await uwf("show", "--json")).lines
    assert data["run_options"] == []


async def test_a_model_for_a_scene_serves_only_the_roles_that_use_it(uwf: Cli) -> None:
    entry = uwf.write("agent.py", TWO_SCENES)
    async with two_models(uwf, RESULTS, RESULTS) as (usual, spare):
        done = await uwf("run", entry, "x", "--model", "write=spare/w")
        assert done.code == 0, done.err
        assert (models_asked(usual), models_asked(spare)) == (["a"], ["w"])


async def test_another_model_serves_the_threads_below_too(uwf: Cli) -> None:
    entry = uwf.write("below.py", AGENT_BELOW)
    async with two_models(uwf, RESULTS, RESULTS) as (usual, spare):
        assert (await uwf("run", entry, "x", "--model", "spare/b")).code == 0
        assert (models_asked(usual), models_asked(spare)) == ([], ["b", "b"])


@pytest.mark.parametrize(
    ("option", "value", "code", "message"),
    [
        ("--model", "spair/b", 1, "no provider is called 'spair'; did you mean 'spare'?"),
        ("--model", "defalt=spare/b", 2, "uses the scene 'defalt'; did you mean 'default'?"),
        ("--model", "spare", 2, "'spare' does not name a model; write PROVIDER/MODEL"),
        ("--model", "spare/", 2, "'spare/' does not name a model"),
        ("--model", "=spare/b", 2, "'=spare/b' does not name a model"),
        ("--limit", "tokns=5", 2, "there is no limit 'tokns'; did you mean 'tokens'?"),
        ("--limit", "xyz=5", 2, "choose one of steps, rounds, tokens, cost, seconds, depth"),
        ("--limit", "steps=0", 2, "steps: '0' is not a whole number of 1 or more"),
        ("--limit", "cost=-1", 2, "cost: '-1' is not a number of the currency of the prices"),
        ("--limit", "seconds", 2, "seconds: '' is not a number of seconds above 0"),
        ("--limit", "depth=none", 2, "depth: 'none' is not a whole number of 1 or more"),
    ],
)
async def test_a_wrong_override_is_refused_before_anything_is_asked_or_kept(
    uwf: Cli, option: str, value: str, code: int, message: str
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, RESULTS, RESULTS) as (usual, spare):
        done = await uwf("run", entry, "x", option, value)
        assert (usual.bodies, spare.bodies) == ([], [])
    assert (done.code, message in done.err) == (code, True), done.err
    assert (await uwf("thread", "list", "--json")).out == ""


def test_every_limit_can_be_set() -> None:
    fields = {name for name in Limits.__dataclass_fields__ if name != "prices"}
    assert {f"max_{name}" for name in LIMITS} == fields


async def test_a_limit_of_one_run_suspends_and_the_next_run_may_have_another(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, RESULTS, []):
        first = await uwf("run", entry, "x", "--limit", "steps=1")
        assert first.code == 3
        (data,) = (await uwf("show", "--json")).lines
        assert (data["run_options"], data["limit"]) == (["--limit steps=1"], "max_steps")
        again = f"uwf thread resume {data['thread']} --limit steps=N"
        assert f"Or raise it for one run: `{again}`" in first.err
        assert (await uwf("thread", "resume", "--limit", "max_steps=none")).code == 0


BOUNDED = """
from workflow_execute import create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import END, START, AdapterBinding, RoleDefinition, WorkflowDefinition, when

async def turn(ctx):
    return "done"

worker = RoleDefinition(name="worker", schema=str)
boss = RoleDefinition(name="boss", schema=str)
go_on = when(lambda ctx: ctx.visits(boss) < 5, boss, name="go on")
run = create_workflow(
    WorkflowDefinition(
        table={START: worker, worker: worker, boss: [go_on, END]}, at_limit=boss
    ),
    AdapterBinding(adapter_of(turn)),
)
"""


async def test_a_raised_limit_counts_for_a_thread_that_is_past_its_role_at_a_limit(
    uwf: Cli,
) -> None:
    entry = uwf.write("bounded.py", BOUNDED)
    roles = ["worker"] * 3

    async def shown(code: int, *command: str | Path) -> list[str]:
        assert (await uwf(*command)).code == code
        (data,) = (await uwf("show", "--json")).lines
        return [step["role"] for step in data["steps"]]

    update_config(uwf.home, {"limits": {"max_steps": 2}})
    assert await shown(3, "run", entry, "x") == [*roles, *["boss"] * 3]
    resume = ("thread", "resume")
    assert await shown(3, *resume) == [*roles, *["boss"] * 3], "it has no second allowance"
    assert await shown(3, *resume, "--limit", "steps=7") == [*roles, *["boss"] * 4]
    update_config(uwf.home, {"limits": {"max_steps": 20}})
    assert await shown(0, *resume) == [*roles, *["boss"] * 5]


async def test_a_thread_goes_on_with_another_model_from_where_the_first_has_recorded_nothing(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, [call("resolve", value="a")], [call("resolve", value="b")]) as two:
        assert (await uwf("run", entry, "x")).code == 1  # the model is gone in the second turn
        resumed = await uwf("thread", "resume", "--model", "spare/b")
        assert (resumed.code, json.loads(resumed.out)) == (0, "b")
        assert models_asked(two.spare) == ["b"]
        assert (await uwf("thread", "replay", "latest")).code == 0
        requests = [(await uwf("thread", "request", "latest", n)).out for n in (1, 2)]
        assert [json.loads(each)["model"] for each in requests] == ["a", "b"]
        told = await uwf("show", "--requests")
        assert (told.code, told.err) == (0, "")


async def test_within_a_turn_another_model_is_refused_and_fresh_goes_on_with_it(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, [call("list_files")], RESULTS) as two:
        assert (await uwf("run", entry, "x")).code == 1
        (before,) = (await uwf("show", "--json", "--turns")).lines
        other = await uwf("thread", "resume", "--model", "spare/b")
        assert (other.code, two.spare.bodies) == (1, [])
        again = f"uwf thread resume {before['thread']} --model spare/b --fresh"
        assert f"The thread is as it was. To start its turn again: `{again}`\n" in other.err
        assert (await uwf("show", "--json", "--turns")).lines == [before]

        assert (await uwf("thread", "resume", "--model", "spare/b", "--fresh")).code == 0
        assert models_asked(two.spare) == ["b", "b"]


async def test_a_resume_without_the_models_of_the_run_before_says_how_to_have_them(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, RESULTS, [call("list_files")]) as (usual, _):
        failed = await uwf("run", entry, "x", "--model", "spare/b")
        (before,) = (await uwf("show", "--json")).lines
        thread = before["thread"]
        again = f"`uwf thread resume {thread} --bundle {entry} --model spare/b`"
        assert f"To continue: {again}" in failed.err

        other = await uwf("thread", "resume")
        assert (other.code, usual.bodies) == (1, [])
        assert (
            f"The thread is as it was. To go on with its models of before: `uwf thread resume "
            f"{thread} --model spare/b`. To start its turn again: `uwf thread resume {thread} "
            f"--fresh`\n"
        ) in other.err
        assert (await uwf("show", "--json")).lines == [before]


async def test_a_suspended_thread_stays_so_where_the_configured_model_has_changed(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with two_models(uwf, [call("list_files"), *RESULTS], RESULTS) as (usual, spare):
        assert (await uwf("run", entry, "x", "--limit", "rounds=1")).code == 3
        (before,) = (await uwf("show", "--json", "--turns")).lines
        update_config(uwf.home, {"models": {"default": "spare/b"}})
        other = await uwf("thread", "resume")
        assert (other.code, spare.bodies) == (1, [])
        assert (await uwf("show", "--json", "--turns")).lines == [before]
        update_config(uwf.home, {"models": {"default": "usual/a"}})
        assert (await uwf("thread", "resume")).code == 0
        assert len(usual.bodies) == 3


async def test_a_thread_that_asks_no_model_takes_a_limit(uwf: Cli, tmp_path: Path) -> None:
    uwf.write("one.py", ONE)
    assert (await uwf("run", "one.py", "x", "--limit", "tokens=1", "--limit", "tokens=2")).code == 0
    (data,) = (await uwf("show", "--json")).lines
    assert data["run_options"] == ["--limit tokens=2"]
