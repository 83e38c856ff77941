"""What can be done with a thread from the command line, from any process."""

import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from workflow_reactor.testing import LoopbackServer, Reply, call, loopback_server, say
from workflow_register import update_config

AGENT = """
from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_execute import create_workflow
from workflow_protocol import (
    END, START, AdapterBinding, RoleDefinition, Transition, WorkflowDefinition,
)
from workflow_register import configured_llm

role = RoleDefinition(name="agent", description="", system_prompt="PROMPT", schema=str)
last = RoleDefinition(name="last", description="", system_prompt="Sum up.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="work",
        roles=[role, last],
        table={START: [Transition(role)], role: [Transition(last)], last: [Transition(END)]},
    ),
    AdapterBinding(adapter=create_react_adapter(
        ReactAdapterConfig(
            llm=configured_llm(), toolset=workspace_tools(sandbox="off"), dialect="native"
        )
    )),
)
"""

ASKING = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Question

async def turn(ctx):
    said = {}
    async def ask(key):
        question = Question(text=f"May I {key}?", details=f"{key} --all")
        said[key] = await ctx.journal.ask(key, question)
    try:
        async with anyio.create_task_group() as tasks:
            for key in ("build", "push"):
                tasks.start_soon(ask, key)
    except ExceptionGroup as group:
        raise group.exceptions[0]
    return " ".join(f"{key}:{said[key].approved}:{said[key].text}" for key in sorted(said))

run = in_turn(turn, schema=str)
"""

NESTED = """
from workflow_execute import create_workflow, workflow_adapter
from workflow_execute.testing import adapter_of, in_turn
from workflow_protocol import (
    END, START, AdapterBinding, Question, RoleDefinition, Transition, WorkflowDefinition,
)

async def turn(ctx):
    return (await ctx.journal.ask("drop", Question(text="Drop the table?"))).text

role = RoleDefinition(name="developer", description="", system_prompt="Develop.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="nested",
        roles=[role],
        table={START: [Transition(role)], role: [Transition(END)]},
    ),
    AdapterBinding(adapter=workflow_adapter("develop", in_turn(turn, schema=str))),
)
"""

AGENT_BELOW = f"""{AGENT}
from workflow_execute import workflow_adapter

agent = run
developer = RoleDefinition(name="developer", description="", system_prompt="Develop.", schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="an agent below",
        roles=[developer],
        table={{START: [Transition(developer)], developer: [Transition(END)]}},
    ),
    AdapterBinding(adapter=workflow_adapter("develop", agent)),
)
"""


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Cli:
    home: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "UWF_"))}
        return {**kept, "UWF_HOME": str(self.home)}

    async def __call__(self, *words: object) -> Done:
        command = [sys.executable, "-m", "uwf", *map(str, words)]
        done = await anyio.run_process(
            command, check=False, cwd=self.folder, env=self.environment, input=b""
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @asynccontextmanager
    async def scripted(self, replies: Sequence[Reply]) -> AsyncGenerator[LoopbackServer]:
        """A model with these replies as the default, with one retry, for the waits grow."""
        async with loopback_server(replies) as server:
            url = f"http://127.0.0.1:{server.port}/v1"
            providers = {"loopback": {"kind": "openai", "base_url": url, "max_attempts": 2}}
            models = {"default": "loopback/scripted"}
            update_config(self.home, {"providers": providers, "models": models})
            yield server

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def uwf(tmp_path: Path) -> Cli:
    (tmp_path / "work").mkdir()
    return Cli(tmp_path / "home", tmp_path / "work")


async def test_questions_are_shown_answered_once_in_any_order_and_the_thread_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("asking.py", ASKING)
    ran = await uwf("run", entry, "x")
    assert ran.code == 1
    assert "uwf thread answer 01" in ran.err

    shown = await uwf("show")
    assert "question   build: May I build?" in shown.out
    assert "question   push: May I push?\n           push --all" in shown.out
    (data,) = (await uwf("show", "--json")).lines
    assert [each["key"] for each in data["questions"]] == ["build", "push"]

    several = await uwf("thread", "answer", "latest", "--approve")
    assert (several.code, "it asks 'build', 'push'" in several.err) == (1, True)
    denied = await uwf("thread", "answer", "latest", "push", "--deny", "--text", "not today")
    assert (denied.code, denied.out) == (0, "denied\n")
    again = await uwf("thread", "answer", "latest", "push", "--approve")
    assert (again.code, "is answered already" in again.err) == (1, True)
    assert (await uwf("thread", "answer", "latest", "--approve")).out == "approved\n"

    resumed = await uwf("thread", "resume")
    assert json.loads(resumed.out) == "build:True: push:False:not today"
    assert "answer" in (await uwf("show", "--turns")).out


async def test_a_child_is_named_answered_shown_and_replayed_and_its_parent_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("nested.py", NESTED)
    ran = await uwf("run", entry, "x")
    (parent,) = (await uwf("show", "--json")).lines
    (waiting,) = [
        each
        for each in (await uwf("thread", "list", "--json")).lines
        if each["thread"] != parent["thread"]
    ]
    child = waiting["thread"]
    assert (ran.code, parent["state"], waiting["state"]) == (1, "suspended", "suspended")
    assert f"child thread {child} (develop) waits: Drop the table?" in ran.err
    assert f"`uwf thread answer {child} --approve|--deny` answers" in ran.err
    assert f"`uwf thread resume {parent['thread']}` goes on" in ran.err

    answered = await uwf("thread", "answer", child, "--approve", "--text", "yes")
    assert answered.err == f"`uwf thread resume {parent['thread']}` goes on\n"
    resumed = await uwf("thread", "resume", "latest")
    assert (resumed.code, json.loads(resumed.out)) == (0, "yes")
    assert f"  child thread {child}\n" in (await uwf("show")).out
    assert f"parent     {parent['thread']}\n" in (await uwf("show", child)).out
    (data,) = (await uwf("show", "--json")).lines
    assert [step["child_threads"] for step in data["steps"]] == [[child]]
    for thread_id in (parent["thread"], child):
        replayed = await uwf("thread", "replay", thread_id)
        assert replayed.out.startswith("the same again: 1 step")


async def test_a_child_can_be_resumed_alone(uwf: Cli) -> None:
    entry = uwf.write("nested.py", NESTED)
    uwf.home.mkdir()
    config = uwf.home / "workflow.yaml"
    config.write_text("limits: {max_depth: 0}\n", encoding="utf-8")
    too_deep = await uwf("run", entry, "x")
    assert "the limit of 0 child threads" in too_deep.err
    config.write_text("limits: {max_depth: 1}\n", encoding="utf-8")
    assert (await uwf("thread", "resume")).code == 1
    (data,) = (await uwf("show", "--json")).lines
    listed = (await uwf("thread", "list", "--json")).lines
    (child,) = [each["thread"] for each in listed if each["thread"] != data["thread"]]
    await uwf("thread", "answer", child, "--approve", "--text", "yes")

    assert json.loads((await uwf("thread", "resume", child)).out) == "yes"
    assert json.loads((await uwf("thread", "resume")).out) == "yes"


async def talk(uwf: Cli, entry: Path, replies: Sequence[bytes], *, early: bytes = b"") -> str:
    """Run an entry on a terminal, answer what it asks, and give all that is drawn."""

    def run() -> str:
        ours, theirs = pty.openpty()
        os.write(ours, early)
        process = subprocess.Popen(
            [sys.executable, "-m", "uwf", "run", str(entry), "x"],
            stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=uwf.folder, env={**uwf.environment, "TERM": "xterm", "COLUMNS": "120"},
        )  # fmt: skip
        os.close(theirs)
        drawn, asked = b"", 0
        while True:
            ready, _, _ = select.select([ours], [], [], 20)
            assert ready, f"the command hangs: {drawn.decode()}"
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux: the other side is closed
                break
            drawn += part
            if drawn.count(b"to decide later: ") > asked:
                os.write(ours, replies[asked])
                asked += 1
        os.close(ours)
        assert process.wait(timeout=10) == 0, drawn.decode()
        return drawn.decode()

    return await anyio.to_thread.run_sync(run)


async def test_on_a_terminal_the_person_is_asked_at_once(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    drawn = await talk(uwf, entry, [b"what?\n", b"y fine by me\n", b"no\n"])

    assert "May I build?" in drawn
    assert "build --all" in drawn
    assert "build:True:fine by me push:False:" in drawn


async def test_what_was_typed_before_a_question_was_shown_does_not_answer_it(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    drawn = await talk(uwf, entry, [b"n\nyes\nyes\n", b"n later\n"], early=b"y\n")

    assert "build:False: push:False:later" in drawn


async def test_a_request_is_printed_as_it_was_sent_and_a_replay_needs_no_model(uwf: Cli) -> None:
    uwf.write("a.txt", "hello\n")
    entry = uwf.write("agent.py", AGENT)
    replies = [
        call("read_file", path="a.txt"),
        call("resolve", value="read"),
        call("resolve", value="summed"),
    ]
    async with uwf.scripted(replies) as server:
        assert (await uwf("run", entry, "Read ä.")).code == 0
    sent = server.bodies

    replayed = await uwf("thread", "replay", "latest")
    assert replayed.out == (
        "the same again: 2 steps, 4 recorded results, 3 requests byte for byte\n"
    )
    for number, body in enumerate(sent, 1):
        printed = await uwf("thread", "request", "latest", number)
        assert printed.out.encode() == body
    (data,) = (await uwf("thread", "request", "latest", 2, "--json")).lines
    assert (data["step"], data["key"]) == (0, "llm/1")
    none = await uwf("thread", "request", "latest", 4)
    assert (none.code, "has 3 requests" in none.err) == (2, True)


async def test_a_fork_goes_on_from_a_step_with_another_task(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value="one"), call("resolve", value="two")]):
        await uwf("run", entry, "First task.")
    forked = await uwf("thread", "fork", "latest", "--at-step", "1", "--prompt", "Second task.")
    assert forked.code == 0
    fork_id = forked.out.strip()

    async with uwf.scripted([call("resolve", value="three")]) as server:
        resumed = await uwf("thread", "resume", fork_id)
    assert json.loads(resumed.out) == "three"
    assert "Second task." in server.bodies[0].decode()
    (data,) = (await uwf("thread", "show", fork_id, "--json")).lines
    assert [step["value"] for step in data["steps"]] == ["one", "three"]
    assert (data["prompt"], data["origin"] is not None) == ("Second task.", True)
    rows = (await uwf("thread", "list", "--json")).lines
    assert [(row["steps"], row["state"]) for row in rows] == [(2, "completed")] * 2
    wrong = await uwf("thread", "fork", fork_id, "--at-step", "9")
    assert (wrong.code, "has 2 steps" in wrong.err) == (1, True)


async def test_another_bundle_is_refused_where_a_request_differs_and_fresh_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("list_files")]):  # then the server fails
        assert (await uwf("run", entry, "Look.")).code == 1
    changed = uwf.write("agent2.py", AGENT.replace("PROMPT", "PROMPT, but friendly"))

    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        other = await uwf("thread", "resume", "latest", "--bundle", changed)
        assert other.code == 1
        assert "'llm/0' can't be used for this turn" in other.err
        assert ", but friendly" in other.err
        assert "where it was " in other.err
        fresh = await uwf("thread", "resume", "latest", "--bundle", changed, "--fresh")
    assert json.loads(fresh.out) == "b"
    assert (await uwf("thread", "replay", "latest")).code == 0


async def test_limits_of_the_configuration_suspend_and_raising_them_goes_on(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("list_files"), call("resolve", value="a"), call("resolve", value="b")]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}limits: {{max_rounds: 1}}\n", encoding="utf-8")
        stopped = await uwf("run", entry, "Look.")
        assert (stopped.code, "limit of 1 model calls" in stopped.err) == (1, True)
        config.write_text(f"{plain}limits: {{max_tokens: 100}}\n", encoding="utf-8")
        stopped = await uwf("thread", "resume")
        assert (stopped.code, "limit of 100 tokens" in stopped.err) == (1, True)
        prices = "prices: {scripted: {input: 1, output: 1}}"
        config.write_text(f"{plain}limits: {{max_cost: 0.5, {prices}}}\n", encoding="utf-8")
        assert json.loads((await uwf("thread", "resume")).out) == "b"


async def test_a_supervisor_of_the_configuration_stops_a_thread_that_goes_in_circles(
    uwf: Cli,
) -> None:
    entry = uwf.write(
        "agent.py", AGENT.replace("last: [Transition(END)]", "last: [Transition(role)]")
    )
    words = [call("resolve", value=word) for word in "abcd"]
    go_on = call("resolve", decision="continue", reason="fine")
    stop = call("resolve", decision="stop", reason="they repeat themselves")
    async with uwf.scripted([*words[:2], go_on, *words[2:], call("read_step", number=4), stop]):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        watch = "supervisor: {every: 2, model: loopback/watcher, prompt: Stop at d.}\n"
        prices = "limits: {prices: {watcher: {input: 1000, output: 0}}}\n"
        config.write_text(f"{plain}{watch}{prices}", encoding="utf-8")
        ran = await uwf("run", entry, "Talk.")
    assert ran.code == 1
    assert "completed (1): stopped by the supervisor: they repeat themselves" in ran.err

    shown = await uwf("show", "--turns")
    assert "state      completed (return code 1)" in shown.out
    assert "summary    stopped by the supervisor: they repeat themselves" in shown.out
    assert "tokens     70 in (0 cached), 35 out, 7 model calls" in shown.out
    assert "cost       0.0300" in shown.out
    assert "\nsupervisor\n    supervisor/4/llm/0" in shown.out
    (data,) = (await uwf("show", "--json")).lines
    assert (data["return_code"], len(data["steps"]), data["usage"]["calls"]) == (1, 4, 7)

    replayed = await uwf("thread", "replay", "latest")
    assert (replayed.code, replayed.out.startswith("the same again: 4 steps")) == (0, True)
    resumed = await uwf("thread", "resume")
    assert (resumed.code, "is completed; fork it" in resumed.err) == (1, True)


async def test_a_resumed_thread_is_supervised_too(uwf: Cli) -> None:
    entry = uwf.write(
        "agent.py", AGENT.replace("last: [Transition(END)]", "last: [Transition(role)]")
    )
    stop = call("resolve", decision="stop", reason="enough")
    async with uwf.scripted([call("resolve", value="a"), say(""), stop]) as server:
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}limits: {{max_steps: 1}}\n", encoding="utf-8")
        assert (await uwf("run", entry, "Talk.")).code == 1
        config.write_text(f"{plain}supervisor: {{every: 1}}\n", encoding="utf-8")
        resumed = await uwf("thread", "resume")
    assert "completed (1): stopped by the supervisor: enough" in resumed.err
    assert {request["model"] for request in server.requests} == {"scripted"}


async def test_a_supervisor_that_fails_is_told_in_a_line_and_stops_nothing(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        other = "\n  other: {base_url: 'http://x/v1', api_key: '${NO_SUCH_KEY}'}\n"
        plain = plain.replace("providers:\n", f"providers:{other}")
        watch = "supervisor: {every: 1, model: other/m}\n"
        config.write_text(f"{plain}{watch}", encoding="utf-8")
        ran = await uwf("run", entry, "Talk.")
    assert (ran.code, json.loads(ran.out)) == (0, "b")
    assert "Traceback" not in ran.err
    (line,) = (line for line in ran.err.splitlines() if "supervisor" in line)
    assert line.startswith("uwf: the supervisor of thread 01")
    assert "the environment variable NO_SUCH_KEY is not set" in line


async def test_a_supervisor_that_cannot_be_is_refused_before_anything_runs(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    uwf.home.mkdir()
    config = uwf.home / "workflow.yaml"
    config.write_text("supervisor:\n  every: 2\n  model: cheap\n", encoding="utf-8")
    ran = await uwf("run", entry, "Talk.")
    assert ran.code == 1
    assert ran.err == (
        f"uwf: {config}:3: supervisor.model: no scene and no PROVIDER/MODEL is 'cheap'; "
        "there is none yet\n"
    )


async def test_what_an_unfinished_turn_took_is_in_the_totals(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("list_files"), call("list_files"), call("resolve", value="a")]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        prices = "prices: {scripted: {input: 1000, output: 2000}}"
        config.write_text(f"{plain}limits: {{max_rounds: 2, {prices}}}\n", encoding="utf-8")
        assert (await uwf("run", entry, "Look.")).code == 1
        shown = await uwf("show")
        assert "tokens     20 in (0 cached), 10 out, 2 model calls" in shown.out
        assert "cost       0.0400" in shown.out
        config.write_text(f"{plain}limits: {{max_steps: 1, {prices}}}\n", encoding="utf-8")
        assert (await uwf("thread", "resume")).code == 1
    (data,) = (await uwf("show", "--json")).lines
    assert data["usage"] == {"input_tokens": 30, "output_tokens": 15, "calls": 3}
    assert (data["cost"], len(data["steps"])) == (0.06, 1)


@pytest.mark.parametrize(("what", "state"), [("pause", "suspended"), ("cancel", "cancelled")])
async def test_a_shell_command_of_another_process_is_stopped_with_its_whole_tree(
    uwf: Cli, what: str, state: str
) -> None:
    entry = uwf.write("agent.py", AGENT)
    tree = "sh -c 'sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; echo $$ >> pids; wait'"
    replies = [
        call("shell_exec", command=tree),
        call("resolve", value="a"),
        call("resolve", value="b"),
    ]
    async with uwf.scripted(replies):
        with anyio.fail_after(60):
            command = [sys.executable, "-m", "uwf", "run", str(entry), "Sleep."]
            async with await anyio.open_process(
                command, cwd=uwf.folder, env=uwf.environment
            ) as process:
                pids = await lines(uwf.folder / "pids", 3)
                stopping = time.monotonic()
                stopped = await uwf("thread", what, "latest")
                took_s = time.monotonic() - stopping
                assert (stopped.code, stopped.err) == (0, "")
                assert await process.wait() == (130 if what == "cancel" else 1)
        assert not any(map(alive, pids))
        assert took_s < 10  # far from 300, however long the command takes to start
        (data,) = (await uwf("show", "--json")).lines
        assert (data["state"], data["role"]) == (state, "agent")

        resumed = await uwf("thread", "resume")
        assert json.loads(resumed.out) == "b"


@pytest.mark.parametrize(
    ("what", "whom", "state"), [("pause", "top", "suspended"), ("cancel", "child", "cancelled")]
)
async def test_a_thread_and_its_child_are_stopped_together_from_another_process(
    uwf: Cli, what: str, whom: str, state: str
) -> None:
    entry = uwf.write("below.py", AGENT_BELOW)
    replies = [
        call("shell_exec", command="echo $$ >> pids; sleep 300"),
        call("resolve", value="a"),
        call("resolve", value="b"),
    ]
    async with uwf.scripted(replies):
        with anyio.fail_after(60):
            command = [sys.executable, "-m", "uwf", "run", str(entry), "Sleep."]
            async with await anyio.open_process(
                command, cwd=uwf.folder, env=uwf.environment
            ) as process:
                pids = await lines(uwf.folder / "pids", 1)
                child, top = [
                    each["thread"] for each in (await uwf("thread", "list", "--json")).lines
                ]
                busy = await uwf("thread", "resume", child)
                assert (busy.code, f"thread {top} is being run elsewhere" in busy.err) == (1, True)
                stopped = await uwf("thread", what, top if whom == "top" else child)
                assert (stopped.code, stopped.err) == (0, "")
                assert await process.wait() == (130 if what == "cancel" else 1)
        assert not any(map(alive, pids))
        listed = (await uwf("thread", "list", "--json")).lines
        assert [each["state"] for each in listed] == [state] * 2

        resumed = await uwf("thread", "resume", top)
        assert json.loads(resumed.out) == "b"
        (data,) = (await uwf("show", "--json")).lines
        assert (data["usage"].get("calls", 0), data["tree"]["usage"]["calls"]) == (0, 3)
        assert ", 3 model calls, its child threads included\n" in (await uwf("show")).out
        (data,) = (await uwf("show", child, "--json")).lines
        assert (data["usage"]["calls"], data["tree"]) == (3, None)


async def test_a_workspace_that_is_gone_is_named_and_another_one_can_be_given(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    first, second = uwf.folder / "first", uwf.folder / "second"
    first.mkdir()
    async with uwf.scripted([call("resolve", value="a")]):  # then the server fails
        assert (await uwf("run", entry, "Look.", "--workspace", first)).code == 1
    (data,) = (await uwf("show", "--json")).lines
    first.rmdir()
    gone = await uwf("thread", "resume")
    assert gone.code == 2
    assert gone.err == (
        f"uwf: the workspace '{first}' of thread {data['thread']} is gone; create it again, or go "
        f"on in another: `uwf thread resume {data['thread']} --workspace DIR`\n"
    )
    wrong = await uwf("thread", "resume", "--workspace", second)
    assert (wrong.code, f"'{second}' is not a folder" in wrong.err) == (2, True)

    second.mkdir()
    async with uwf.scripted(
        [call("write_file", path="b.txt", content="b"), call("resolve", value="b")]
    ):
        resumed = await uwf("thread", "resume", "--workspace", second)
    assert json.loads(resumed.out) == "b"
    assert [path.name for path in second.iterdir()] == ["b.txt"]
    (data,) = (await uwf("show", "--json")).lines
    assert (data["workspace"], len(data["steps"])) == (str(second), 2)
    assert (await uwf("thread", "replay", "latest")).code == 0


async def two_threads(uwf: Cli) -> list[str]:
    """The ids of two threads that are completed."""
    entry = uwf.write("agent.py", AGENT)
    ids: list[str] = []
    for word in ("first", "second"):
        async with uwf.scripted([call("resolve", value=word), call("resolve", value=word)]):
            assert (await uwf("run", entry, word)).code == 0
        ids += [(await uwf("show", "--json")).lines[0]["thread"]]
    return ids


async def test_damage_is_listed_with_the_threads_that_it_concerns(uwf: Cli) -> None:
    nothing = await uwf("cas", "verify")
    assert (nothing.code, "nothing is stored" in nothing.err) == (0, True)
    ids = await two_threads(uwf)
    whole = await uwf("cas", "verify")
    assert (whole.code, whole.out.endswith(": no problems\n")) == (0, True)

    (data,) = (await uwf("show", ids[0], "--json")).lines
    hash = data["steps"][0]["hash"]
    with sqlite3.connect(uwf.home / "store.sqlite3") as database:
        update = "UPDATE object SET data = 'x' WHERE id = (SELECT id FROM name WHERE hash = ?)"
        assert database.execute(update, (bytes.fromhex(hash),)).rowcount == 1
    database.close()
    damaged = await uwf("cas", "verify", "--json")
    assert damaged.code == 1
    problem, concerned, total = damaged.lines
    assert (problem["kind"], problem["place"]) == ("damaged", hash)
    assert concerned == {"threads": [ids[0]]}
    assert total["problems"] == 1
    assert f"threads    {ids[0]}\n" in (await uwf("cas", "verify")).out

    shown = await uwf("show", ids[0])
    assert (shown.code, "`uwf cas verify` lists all damage" in shown.err) == (1, True)
    assert (await uwf("show", ids[1])).code == 0


async def test_what_is_deleted_frees_its_space(uwf: Cli) -> None:
    nothing = await uwf("cas", "gc")
    assert (nothing.code, "nothing is stored" in nothing.err) == (0, True)
    ids = await two_threads(uwf)

    wrong = await uwf("thread", "delete", "0000")
    assert (wrong.code, "there is no thread '0000'" in wrong.err) == (1, True)
    deleted = await uwf("thread", "delete", ids[0], "--json")
    assert (deleted.code, deleted.lines) == (0, [{"thread": ids[0], "deleted": [ids[0]]}])
    assert ids[0] not in (await uwf("thread", "list")).out
    young = await uwf("cas", "gc")
    assert (young.code, young.out.startswith("removed 0 objects, 0 bytes; ")) == (0, True)
    dry = await uwf("cas", "gc", "--older-than", "0", "--dry-run")
    assert dry.out.startswith("would remove ")
    removed = await uwf("cas", "gc", "--older-than", "0")
    assert removed.out == dry.out.replace("would remove", "removed")
    again = await uwf("cas", "gc", "--older-than", "0", "--json")
    assert again.lines == [
        {"removed": 0, "bytes": 0, "kept": again.lines[0]["kept"], "dry_run": False}
    ]

    assert (await uwf("cas", "verify")).code == 0
    assert (await uwf("thread", "replay", ids[1])).code == 0
    assert (await uwf("cas", "gc", "--older-than", "0.0")).code == 0
    for wrong_age in ("nan", "-1", "x"):
        assert (await uwf("cas", "gc", "--older-than", wrong_age)).code == 2


async def lines(path: Path, count: int) -> list[int]:
    """Wait until a file has so many lines."""
    while True:
        try:
            found = (await anyio.Path(path).read_text(encoding="utf-8")).split()
        except FileNotFoundError:
            found = []
        if len(found) == count:
            return [int(each) for each in found]
        await anyio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


WAITING = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Metered, Usage

async def turn(ctx):
    async def ask():
        await anyio.sleep(60)
        return 1

    metered = Metered(
        model="m", at_most=lambda: Usage(output_tokens=100), used=lambda value: Usage(calls=1)
    )
    return await ctx.journal.run("llm/0", ask, type=int, metered=metered)

run = in_turn(turn)
"""


async def test_a_call_that_was_cut_off_is_shown_as_such(uwf: Cli) -> None:
    uwf.home.mkdir()
    (uwf.home / "workflow.yaml").write_text("limits: {max_seconds: 0.5}\n", encoding="utf-8")
    ran = await uwf("run", uwf.write("waiting.py", WAITING), "Ask.")
    assert (ran.code, "the limit of 0.5 seconds is reached" in ran.err) == (1, True)
    shown = await uwf("show", "--turns")
    assert "llm/0      (cut off before its reply, counted as its worst case)" in shown.out


async def test_threads_that_do_not_exist_are_told(uwf: Cli) -> None:
    for words in (["pause"], ["cancel"], ["fork"], ["replay"], ["answer", "--deny"]):
        done = await uwf("thread", words[0], "01NONE", *words[1:])
        assert (done.code, "there is no thread" in done.err) == (1, True)
    unnamed = await uwf("thread", "answer", "01NONE")
    assert (unnamed.code, "--approve" in unnamed.err) == (2, True)
