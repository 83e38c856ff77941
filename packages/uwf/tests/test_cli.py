"""The command as a person uses it: real processes, a real store, a loopback model."""

import inspect
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from uwf import main
from uwf._parser import make_parser
from workflow_reactor.testing import LoopbackServer, Reply, Wire, call, http, loopback_server, say
from workflow_register import update_config

GREETING = '{"greeting": "Bonjour, Ada !", "language": "French"}'
PROJECT = "# A project\n\nRun main.py; test with pytest.\n"
FACTS = {
    "language": "Python",
    "entry_point": "main.py",
    "test_command": "pytest",
    "evidence": ["README.md"],
}
APPROVED = say('{"approved": true, "reasons": []}')

ENTRY = """
from workflow_agent_llm import create_llm_adapter
from workflow_execute import create_workflow
from workflow_protocol import (
    END, START, AdapterBinding, RoleDefinition, Transition, WorkflowDefinition,
)
from workflow_register import configured_llm

from words import PROMPT

role = RoleDefinition(name="greeter", description="", system_prompt=PROMPT, schema=str)
run = create_workflow(
    WorkflowDefinition(
        description="greet",
        roles=[role],
        table={START: [Transition(role)], role: [Transition(END)]},
    ),
    AdapterBinding(adapter=create_llm_adapter(configured_llm())),
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

    async def __call__(self, *words: object, stdin: bytes = b"", **variables: str) -> Done:
        done = await anyio.run_process(
            [sys.executable, "-m", "uwf", *map(str, words)],
            input=stdin,
            check=False,
            cwd=self.folder,
            env=self.environment | variables,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def use(self, server: LoopbackServer) -> None:
        """Make its model the default, as `uwf setup` does; one retry, for the waits grow."""
        url = f"http://127.0.0.1:{server.port}/v1"
        providers = {"loopback": {"kind": "openai", "base_url": url, "max_attempts": 2}}
        models = {"default": "loopback/scripted"}
        update_config(self.home, {"providers": providers, "models": models})

    @asynccontextmanager
    async def scripted(self, replies: Sequence[Reply]) -> AsyncGenerator[LoopbackServer]:
        async with loopback_server(replies) as server:
            self.use(server)
            yield server

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def uwf(tmp_path: Path) -> Cli:
    (tmp_path / "work").mkdir()
    return Cli(tmp_path / "home", tmp_path / "work")


@pytest.fixture
def entry(uwf: Cli) -> Path:
    uwf.write("words.py", 'PROMPT = "Greet."\n')
    return uwf.write("hello.py", ENTRY)


def example(name: str) -> Path:
    return Path(__file__).parent.parent / "src" / "uwf" / "examples" / f"{name}.py"


async def test_setup_bundle_add_run_show(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')]) as server:
        bundled = await uwf("bundle", "hello.py")
        assert bundled.code == 0
        path = Path(bundled.out.strip())
        assert path.parent == uwf.home / "bundles"
        assert "bundled 2 modules; roles: greeter" in bundled.err
        await anyio.Path(entry).unlink()

        added = await uwf("add", "say-hello", path)
        assert (added.code, added.out) == (0, "say-hello\n")
        assert (await uwf("list")).out.startswith("say-hello\t")

        ran = await uwf("run", "say-hello", "Greet Ada.")
        assert (ran.code, ran.out) == (0, '"Salut"\n')
        assert "greeter (step 1)" in ran.err
        assert "completed (0)" in ran.err

        shown = await uwf("show")
        assert shown.code == 0
        assert "state      completed (return code 0)" in shown.out
        assert "prompt     Greet Ada." in shown.out
        assert "tokens     10 in (0 cached), 5 out, 1 model calls" in shown.out

    assert "Greet." in server.requests[0]["messages"][0]["content"]


async def test_every_command_speaks_json(uwf: Cli, entry: Path) -> None:
    async with loopback_server([say('{"value": "Salut"}')]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        setup = await uwf("setup", "--json", "--base-url", url, "--model", "m", "--provider", "p")
        assert setup.lines == [
            {"path": str(uwf.home / "workflow.yaml"), "default": "p/m"},
        ]
        (bundle,) = (await uwf("bundle", "hello.py", "--output", "out", "--json")).lines
        assert bundle["modules"] == ["hello.py", "words.py"]
        assert (uwf.folder / bundle["path"]).name == f"{bundle['hash']}.zip"
        added = (await uwf("add", "say-hello", "hello.py", "--json")).lines
        assert added == [{"name": "say-hello", "hash": bundle["hash"]}]
        (listed,) = (await uwf("list", "--json")).lines
        assert (listed["name"], listed["roles"]) == ("say-hello", ["greeter"])

        events = (await uwf("run", "say-hello", "Greet.", "--json")).lines
        assert [event["event"] for event in events] == [
            "ThreadStarted", "RoleStarted", "RoundStarted", "ModelReplied", "RoleFinished",
            "ThreadEnded",
        ]  # fmt: skip
        (thread,) = (await uwf("show", "--json", "--turns")).lines
        assert thread["thread"] == events[0]["thread_id"]
        assert thread["steps"][0]["value"] == "Salut"
        assert thread["steps"][0]["turn"][0]["key"] == "llm/0"
        (row,) = (await uwf("thread", "list", "--json")).lines
        assert (row["thread"], row["state"], row["steps"]) == (thread["thread"], "completed", 1)
    models = (await uwf("model", "list", "--json")).lines
    assert sum(model["default"] for model in models) == 1


async def test_the_greet_example_runs_from_its_path(uwf: Cli) -> None:
    async with uwf.scripted([say(GREETING)]):
        ran = await uwf("run", example("greet"), "-", stdin=b"Greet Ada in French.")

    assert json.loads(ran.out)["language"] == "French"


async def test_the_repo_facts_example_reads_reviews_and_is_sent_back_once(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    replies = [
        call("read_file", path="README.md"),
        call("resolve", **{**FACTS, "evidence": ["README.md", "main.py"]}),
        call("resolve", **{**FACTS, "test_command": "make check"}),
        call("resolve", **FACTS),
        say('{"approved": false, "reasons": ["what does it do?"]}'),
        call("read_file", path="./README.md"),
        call("resolve", **{**FACTS, "evidence": [str(uwf.folder / "README.md")]}),
        APPROVED,
    ]
    async with uwf.scripted(replies) as server:
        ran = await uwf("run", example("repo_facts"), "What is it?")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"approved": True, "reasons": []}
    assert '✓ read_file {"path": "README.md"}' in ran.err
    assert "completed (0): Python; starts with main.py; tests: pytest" in ran.err
    refused = server.requests[2]["messages"][-1]["content"]
    assert "evidence names 'main.py', which you have not read" in refused
    refused = server.requests[3]["messages"][-1]["content"]
    assert "test_command is 'make check', which is in none of the files" in refused
    second_reading = server.requests[5]["messages"][1]["content"]
    assert "what does it do?" in second_reading
    shown = await uwf("show", "--turns")
    assert "tool/0/0" in shown.out
    assert "Run main.py" in shown.out


async def test_facts_that_nobody_approves_end_with_code_1(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    read = call("read_file", path="README.md")
    again = [read, call("resolve", **FACTS), say('{"approved": false, "reasons": ["thin"]}')]
    async with uwf.scripted(again * 3):
        ran = await uwf("run", example("repo_facts"), "What is it?")

    assert ran.code == 1
    assert "not approved: thin" in ran.err


async def test_quickstart_prints_each_command_and_does_the_whole_job(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with uwf.scripted(replies):
        done = await uwf("quickstart")

    assert done.code == 0, done.err
    commands = [line for line in done.err.splitlines() if line.startswith("$ uwf ")]
    assert [line.split()[2] for line in commands] == ["bundle", "add", "run", "show"]
    assert "state      completed" in done.out


async def test_quickstart_takes_the_provider_of_the_environment(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with loopback_server(replies) as server:
        done = await uwf(
            "quickstart",
            OPENAI_API_KEY="sk-environment",
            OPENAI_BASE_URL=f"http://127.0.0.1:{server.port}/v1",
            OPENAI_MODEL="m",
        )

    assert done.code == 0, done.err
    assert not (uwf.home / "workflow.yaml").exists()
    assert "sk-environment" not in done.out + done.err


async def test_a_quickstart_that_fails_stops_there_with_the_code_of_the_step(uwf: Cli) -> None:
    async with uwf.scripted([]):
        done = await uwf("quickstart", "--json")

    assert done.code == 1
    assert "the script has 0 replies" in done.err
    assert done.lines[-1]["event"] == "ThreadEnded"
    assert "uwf show" not in done.err


async def test_setup_from_the_environment_writes_a_reference_and_never_the_key(uwf: Cli) -> None:
    done = await uwf("setup", OPENAI_API_KEY="sk-environment")
    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")

    assert done.code == 0
    assert "${OPENAI_API_KEY}" in text
    assert "sk-environment" not in text + done.out + done.err


async def test_setup_local_names_a_model_of_the_catalogue(uwf: Cli) -> None:
    assert (
        "models.default = local/smollm2-135m" in (await uwf("setup", "--local", "smollm2-135m")).out
    )
    assert "local/" in (await uwf("setup")).out


BAD_ENTRIES: list[tuple[str, str | None, str]] = [
    ("none.py", None, "none.py"),
    ("notes.txt", "hello", "notes.txt"),
    ("empty.py", "", "it is empty"),
    ("norun.py", "x = 1", "it has no `run`"),
    ("number.py", "run = 3", "its `run` is of type int, not a workflow"),
    ("broken.py", "def (", "broken.py:1"),
    ("missing.py", "import not_a_module_anywhere", "not_a_module_anywhere"),
    ("raises.py", "\nraise ValueError('at import')", "raises.py:2"),
    ("environ.py", "import os\nos.environ['SOME_KEY_OF_MINE']", "without environment variables"),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD_ENTRIES, ids=lambda each: str(each)[:12])
async def test_a_bad_entry_is_one_clear_line_and_leaves_nothing(
    uwf: Cli, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        uwf.write(name, text)
    for command in (["bundle", name], ["add", "some-name", name], ["run", f"./{name}", "x"]):
        done = await uwf(*command)
        assert done.code == 1
        assert words in done.err
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) == 1
        assert done.out == ""
    assert not (uwf.home / "bundles").exists()
    assert (await uwf("list")).out == ""


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "no-such-flow", "x"], 1, "no-such-flow"),
        (["run", "hello.py", "  "], 2, "the prompt is empty"),
        (["run", "hello.py", "x", "--workspace", "nowhere"], 2, "is not a folder"),
        (["show"], 1, "there is no thread 'latest'"),
        (["show", "01ABC"], 1, "there is no thread"),
        (["thread", "resume"], 1, "there is no thread"),
        (["setup", "--model", "m"], 2, "go with --base-url"),
        (["setup", "--base-url", "http://h/v1"], 2, "--base-url needs --model"),
        (["setup", "--base-url", "nonsense", "--model", "m"], 2, "is no URL"),
        (["setup", "--base-url", "http://[h/v1", "--model", "m"], 2, "is no URL"),
        (["setup", "--base-url", "http://h", "--model", "m\udcff"], 2, "model is not UTF-8 text"),
        (["thread", "answer", "01", "--deny", "--text", "a\udcff"], 2, "text is not UTF-8 text"),
        (["thread", "list"], 0, "there is no thread yet; begin with `uwf run`"),
        (["run", "notes.txt", "x"], 1, "there is no such file; check the path"),
        (["setup", "--local", "no-such-model"], 1, "no-such-model"),
        (["model", "pull", "no-such-model"], 1, "no-such-model"),
        (["add", "Bad Name", "hello.py"], 1, "Bad Name"),
        (["run", "a" * 300, "x"], 1, "can't name a workflow"),
        (["--home", "", "list"], 2, "it is empty; name a folder"),
        (["doctor", "--timeout", "nan"], 2, "'nan' is no number of seconds above 0"),
        (["thread", "fork", "latest", "--prompt", " "], 2, "the prompt is empty"),
        (["frobnicate"], 2, "invalid choice"),
        ([], 2, "COMMAND"),
    ],
)
async def test_wrong_use_is_told_with_a_code(
    uwf: Cli, entry: Path, words: list[str], code: int, message: str
) -> None:
    done = await uwf(*words)

    assert (done.code, message in done.err) == (code, True), done.err
    assert "Traceback" not in done.err


def test_every_command_takes_what_its_parser_gives() -> None:
    """No type checker sees it: commands are named by words, and called with names."""
    found = 0
    waiting: list[Any] = [make_parser()]  # of any type: argparse shows its actions to nobody
    while waiting:
        parser = waiting.pop()
        names = {each.dest for each in parser._actions} - {"help", "json", "home", "version"}
        for each in parser._actions:
            waiting += getattr(each.choices, "values", list)()
        if (command := parser.get_default("command")) is not None:
            module, _, function = command.partition(":")
            takes = inspect.signature(getattr(import_module(f"uwf.commands.{module}"), function))
            assert set(takes.parameters) == {"output", *names}
            found += 1
    assert found > 15


async def test_the_version_is_that_of_the_package(uwf: Cli) -> None:
    assert (await uwf("--version")).out == f"uwf {version('uwf')}\n"


async def test_common_options_may_stand_before_the_command(uwf: Cli) -> None:
    elsewhere = uwf.folder / "elsewhere"
    done = await uwf("--json", "--home", elsewhere, "setup", "--local")
    assert done.lines[0]["path"] == str(elsewhere / "workflow.yaml")


@pytest.mark.parametrize("kind", ["pipe", "folder"])
async def test_what_is_no_file_is_refused_at_once(uwf: Cli, entry: Path, kind: str) -> None:
    uwf.home.mkdir()
    make = os.mkfifo if kind == "pipe" else os.mkdir
    make(uwf.home / "workflow.yaml")
    make(uwf.folder / "bundle.zip")
    make(uwf.folder / "odd.py")
    uwf.write(entry.name, f"import odd\n{ENTRY}")
    reason = "this is no regular file" if kind == "pipe" else "Is a directory"
    with anyio.fail_after(30):
        for words, place in (
            (["add", "a-name", "odd.py"], "odd.py"),
            (["bundle", "hello.py"], str(uwf.folder / "odd.py")),
            (["add", "a-name", "bundle.zip"], "bundle.zip"),
            (["setup", "--local"], str(uwf.home / "workflow.yaml")),
            (["run", "greet", "x"], str(uwf.home / "workflow.yaml")),
        ):
            done = await uwf(*words)
            assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
            assert place in done.err
            assert words[-1] == "odd.py" or reason in done.err


async def test_a_folder_that_was_deleted_is_told_and_what_to_do(uwf: Cli, entry: Path) -> None:
    gone = uwf.folder / "gone"
    command = f"cd {gone}; rmdir {gone}; {sys.executable} -P -m uwf"
    for words in ("run ../hello.py x", f"add a-name {entry}", "bundle ../hello.py", "run a-name x"):
        gone.mkdir()
        done = await anyio.run_process(
            ["sh", "-c", f"{command} {words}"], check=False, env=uwf.environment
        )
        if "add" not in words:  # an absolute path needs no current folder
            assert done.returncode == 1
            said = "the current folder was deleted; `cd` to another one and run this again\n"
            assert done.stderr.decode().endswith(f": {said}")


async def test_a_home_that_cannot_be_used_is_named_with_the_way_out(uwf: Cli, entry: Path) -> None:
    uwf.home.write_text("a file", encoding="utf-8")
    done = await uwf("bundle", "hello.py")
    assert done.code == 1
    assert done.err.startswith(f"uwf: {uwf.home}/bundles/")
    assert done.err.endswith(
        f": Not a directory; uwf keeps its files in {uwf.home}: mend it, or name another folder "
        "with --home\n"
    )


async def test_a_wrong_config_key_names_the_file_the_line_and_the_nearest_key(
    uwf: Cli, entry: Path
) -> None:
    uwf.home.mkdir()
    path = uwf.home / "workflow.yaml"
    path.write_text("providers:\n  p:\n    base_ulr: http://h/v1\n", encoding="utf-8")
    done = await uwf("run", "hello.py", "x")

    assert done.code == 1
    assert "workflow.yaml:3" in done.err
    assert "base_url" in done.err


async def test_no_configuration_at_all_says_uwf_setup(uwf: Cli, entry: Path) -> None:
    done = await uwf("run", "hello.py", "x")

    assert done.code == 1
    assert "run `uwf setup`" in done.err
    assert "uwf thread resume 01" in done.err


async def test_an_unreachable_provider_is_named_and_the_thread_can_go_on_later(
    uwf: Cli, entry: Path
) -> None:
    uwf.home.mkdir()
    config = "providers:\n  p: {base_url: 'http://127.0.0.1:9/v1', max_attempts: 1}\n"
    path = uwf.home / "workflow.yaml"
    path.write_text(config + "models: {default: p/m}\n", encoding="utf-8")
    failed = await uwf("run", "hello.py", "Greet.")
    assert failed.code == 1
    assert "'m' at http://127.0.0.1:9/v1 failed" in failed.err
    assert "failed" in (await uwf("thread", "list")).out

    async with uwf.scripted([say('{"value": "Salut"}')]):
        resumed = await uwf("thread", "resume")
    assert (resumed.code, resumed.out) == (0, '"Salut"\n')
    assert "completed" in (await uwf("thread", "resume")).err


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("signals", "code", "state"),
    [
        (signal.SIGINT, 130, "cancelled"),
        (signal.SIGTERM, 130, "cancelled"),
        (signal.SIGKILL, -9, "interrupted"),
    ],
)
async def test_a_run_that_is_ended_from_outside_says_so_and_can_be_resumed(
    uwf: Cli, entry: Path, signals: signal.Signals, code: int, state: str
) -> None:
    asked = anyio.Event()

    async def stall(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            asked.set()
            await anyio.sleep_forever()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    url = f"http://127.0.0.1:{port}/v1"
    assert (await uwf("setup", "--base-url", url, "--model", "m")).code == 0
    command = [sys.executable, "-m", "uwf", "run", "hello.py", "Greet."]
    with anyio.fail_after(30):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, stall)
            async with await anyio.open_process(
                command, cwd=uwf.folder, env=uwf.environment
            ) as process:
                await asked.wait()
                assert "running" in (await uwf("thread", "list")).out
                process.send_signal(signals)
                assert await process.wait() == code
            tasks.cancel_scope.cancel()
    assert f"state      {state}" in (await uwf("show")).out

    async with uwf.scripted([say('{"value": "Salut"}')]):
        assert (await uwf("thread", "resume")).out == '"Salut"\n'


ONE = """
from workflow_execute.testing import in_turn

async def turn(ctx):
    return 1

run = in_turn(turn)
"""

WAITING = """
import anyio
from workflow_execute.testing import in_turn

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    with anyio.fail_after(20):
        while not (ctx.start.workspace / "go").exists():
            await anyio.sleep(0.02)
    return 1

run = in_turn(turn)
"""


SLOW_TO_END = """
import anyio
import uwf.terminal._signals
from workflow_execute.testing import in_turn

uwf.terminal._signals.AGAIN_S = 60.0  # however long the machine takes over sending the signals

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    try:
        await anyio.sleep(20)
    finally:
        with anyio.CancelScope(shield=True), anyio.fail_after(20):
            while not (ctx.start.workspace / "go").exists():
                await anyio.sleep(0.02)

run = in_turn(turn)
"""

STUBBORN = """
import time
from workflow_execute.testing import in_turn

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    time.sleep(20)
    return 1

run = in_turn(turn)
"""


@asynccontextmanager
async def running(uwf: Cli, code: str, *, ignoring: str = "") -> AsyncGenerator[anyio.abc.Process]:
    """A run of one role that has begun; a signal may have been ignored before."""
    uwf.write("waiting.py", code)
    trap = f"trap '' {ignoring};" if ignoring else ""
    command = f"{trap} exec {sys.executable} -m uwf run waiting.py x"
    async with await anyio.open_process(
        ["sh", "-c", command], cwd=uwf.folder, env=uwf.environment
    ) as process:
        await anyio.to_thread.run_sync(lambda: wait_for((uwf.folder / "begun").exists))
        yield process


async def ended(process: anyio.abc.Process) -> tuple[int, bytes]:
    """Its exit code, and what it said after that the role had begun."""
    assert process.stderr is not None
    said = b"".join([part async for part in process.stderr])
    return await process.wait(), said


async def test_under_nohup_a_terminal_that_goes_away_ends_nothing(uwf: Cli) -> None:
    async with running(uwf, WAITING, ignoring="HUP") as process:
        process.send_signal(signal.SIGHUP)
        (uwf.folder / "go").touch()
        assert await process.wait() == 0


async def test_a_background_job_of_a_script_can_be_ended(uwf: Cli) -> None:
    """It ignores SIGINT."""
    async with running(uwf, WAITING, ignoring="INT") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        code, said = await ended(process)
        assert (code, b"Traceback" in said) == (130, False)
    assert "state      cancelled" in (await uwf("show")).out


async def test_signals_that_come_again_do_not_break_the_end(uwf: Cli) -> None:
    """As when a terminal is closed: SIGHUP comes from the system and from the shell."""
    async with running(uwf, SLOW_TO_END) as process:
        for _ in range(10):
            for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
                process.send_signal(number)
                await anyio.sleep(0.005)
        (uwf.folder / "go").touch()
        code, said = await ended(process)
        assert (code, b"Traceback" in said) == (130, False)
    assert "state      cancelled" in (await uwf("show")).out


ENDED_AT_ITS_START = """
import atexit, os, signal, sys
from uwf import _main
from uwf._entry import main

def end(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)

atexit.register(end)
_main.parse = end
sys.exit(main([]))
"""

SHIELDED = """
import os, signal
import anyio
from uwf.terminal._loop import run_async

async def main():
    with anyio.CancelScope(shield=True):
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep(0.05)
        print("came to its end")
    await anyio.sleep(20)

run_async(main)
"""


DROPPED = """
import os, signal
import anyio
from uwf import _main
from uwf._entry import main
from uwf.terminal._loop import run_async

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

async def work():
    await anyio.sleep(20)

def carry_out(arguments):
    del Last.last
    run_async(work)

Last.last = Last()
_main.parse = carry_out
raise SystemExit(main([]))
"""


def test_signals_that_come_again_before_and_after_the_work_are_one() -> None:
    ended = run_python(ENDED_AT_ITS_START)
    assert (ended.returncode, ended.stderr) == (130, "uwf: cancelled\n")


def test_a_signal_that_was_raised_where_python_drops_it_is_followed() -> None:
    ended = run_python(DROPPED)
    assert ended.returncode == 130
    assert "Exception ignored in: <function Last.__del__" in ended.stderr
    assert ended.stderr.endswith("\nuwf: cancelled\n")


def test_a_signal_lets_what_is_shielded_come_to_its_end() -> None:
    ended = run_python(SHIELDED)
    assert (ended.stdout, "KeyboardInterrupt" in ended.stderr) == ("came to its end\n", True)


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


async def press_ctrl_c(pid: int) -> None:
    """Again and again, since nobody is told when a process has heard the first."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, signal.SIGINT)
            await anyio.sleep(0.2)


async def test_a_second_ctrl_c_ends_what_the_first_could_not(uwf: Cli) -> None:
    async with running(uwf, STUBBORN) as process:
        code, said = 0, b""
        with anyio.fail_after(15):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(press_ctrl_c, process.pid)
                code, said = await ended(process)
                tasks.cancel_scope.cancel()
        assert (code, b"Traceback" in said) == (130, False)
        assert b"uwf: ended at once, as the first Ctrl-C did not end it" in said
    assert "state      interrupted" in (await uwf("show")).out


async def test_a_file_of_the_same_name_does_not_hide_a_workflow(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    assert (await uwf("add", "build", "one.py")).code == 0
    uwf.write("build", "something else")
    assert (await uwf("run", "build", "x")).out == "1\n"


async def test_a_bundle_is_run_under_the_name_of_its_entry(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    path = (await uwf("bundle", "one.py")).out.strip()
    assert (await uwf("run", path, "x")).code == 0
    assert "workflow   one\n" in (await uwf("show")).out


async def test_streams_that_are_closed_stop_nothing(uwf: Cli, entry: Path) -> None:
    command = f"{sys.executable} -m uwf"
    async with uwf.scripted([say('{"value": "Salut"}')] * 2):
        for closed in (">&- 2>&-", "<&- 2>&-"):
            done = await anyio.run_process(
                ["sh", "-c", f"{command} run hello.py x {closed}"],
                check=False, cwd=uwf.folder, env=uwf.environment,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, b"")
    for words in ("--version", "--help", "list"):
        gone = f"{command} {words} 2>err | true; cat err"
        done = await anyio.run_process(
            ["sh", "-c", gone], cwd=uwf.folder, env=uwf.environment, check=False
        )
        assert b"Traceback" not in done.stdout


@pytest.mark.parametrize(
    ("into", "code", "said"),
    [("| true", 141, b""), (">/dev/full", 1, b"uwf: No space left on device\n")],
)
async def test_an_error_that_nobody_can_read_is_no_traceback(
    uwf: Cli, into: str, code: int, said: bytes
) -> None:
    for words in ("setup --local --json", "show 01NONE --json"):
        command = f"({sys.executable} -m uwf {words}; echo $? >code) {into}"
        done = await anyio.run_process(
            ["sh", "-c", command], check=False, cwd=uwf.folder, env=uwf.environment
        )
        found = int(await anyio.Path(uwf.folder / "code").read_text())
        if words.startswith("setup"):
            assert (found, done.stderr) == (code, said)
        else:
            assert (found, done.stderr) == (code, b"uwf: there is no thread '01NONE'\n")


async def test_a_stream_of_errors_that_goes_away_is_no_error_of_its_own(uwf: Cli) -> None:
    command = f"({sys.executable} -m uwf show 01NONE; echo $? >code) 2>&1 >/dev/null | true"
    await anyio.run_process(["sh", "-c", command], cwd=uwf.folder, env=uwf.environment)
    assert await anyio.Path(uwf.folder / "code").read_text() == "141\n"


async def test_looking_creates_nothing(uwf: Cli) -> None:
    for words in (["list"], ["thread", "list"], ["show"], ["cas", "verify"]):
        await uwf(*words)
    assert not await anyio.Path(uwf.home).exists()


def test_an_interrupt_that_came_out_as_another_error_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `class C: x = Descriptor()` raises RuntimeError from it in Python 3.11."""
    module = ModuleType("uwf._main")

    def run_command(argv: object) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    vars(module)["run_command"] = run_command
    monkeypatch.setitem(sys.modules, "uwf._main", module)
    assert main([]) == 130
    assert capsys.readouterr().err == "uwf: cancelled\n"


async def test_a_reader_that_goes_away_is_no_error(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')]):
        await uwf("run", "hello.py", "Greet.")
    command = f"{sys.executable} -m uwf show --turns | true"
    done = await anyio.run_process(
        ["sh", "-c", command], check=False, env=uwf.environment, cwd=uwf.folder
    )

    assert done.stderr == b""


async def test_a_terminal_gets_a_live_view(uwf: Cli, entry: Path) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with uwf.scripted(replies):
        text = await anyio.to_thread.run_sync(
            lambda: in_terminal(uwf, "run", str(example("repo_facts")), "What is it?")
        )

    assert "✓ read_file" in text
    assert "reader" in text
    assert "30 in, 15 out" in text
    assert "completed (0)" in text


def in_terminal(uwf: Cli, *words: str) -> str:
    """Run the command with a terminal as its streams and return what it drew."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "uwf", *words],
        stdin=theirs, stdout=theirs, stderr=theirs,
        cwd=uwf.folder, env={**uwf.environment, "TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(theirs)
    drawn = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 20)
        assert ready, "the command hangs"
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        drawn += part
    assert process.wait(timeout=10) == 0, drawn.decode()
    os.close(ours)
    return drawn.decode()


async def test_help_and_a_fresh_start_are_quick_and_import_nothing_heavy(uwf: Cli) -> None:
    script = (
        "import sys, uwf\n"
        "heavy = {'httpx', 'pydantic', 'rich', 'ruamel', 'anyio'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    done = await anyio.run_process([sys.executable, "-c", script], env=uwf.environment)
    assert done.stdout.strip() == b"[]"
    helped = await uwf("run", "--help")
    assert helped.code == 0
    assert "130 cancelled" in helped.out


@pytest.mark.parametrize("prompt", ["a\udcff", "-"])
async def test_a_prompt_that_is_no_text_is_one_clear_line(
    uwf: Cli, entry: Path, prompt: str
) -> None:
    done = await uwf("run", "hello.py", prompt, stdin=b"\xff\xfe")

    assert (done.code, done.err) == (2, "uwf: the prompt is not UTF-8 text\n")


async def test_a_locale_without_utf8_loses_nothing(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut, Zoé \u202e"}')]) as server:
        ran = await uwf(
            "run", "hello.py", "Greet Zoé.", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
        )
        shown = await uwf("show", LC_ALL="C", PYTHONIOENCODING="ascii")

    assert "Greet Zoé." in server.requests[0]["messages"][1]["content"]
    assert ran.out == '"Salut, Zo\\xe9 \\u202e"\n'
    assert "prompt     Greet Zo\\xe9." in shown.out


async def test_what_a_model_says_can_not_steer_the_terminal(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "\\u001b[31mred\\u009b31m"}')]):
        ran = await uwf("run", "hello.py", "Greet \x1b[31mAda.")
    shown = await uwf("show", "--turns")

    for text in (ran.out, ran.err, shown.out):
        assert "\x1b" not in text
        assert "\x9b" not in text


async def test_what_a_provider_says_can_not_steer_the_terminal(uwf: Cli, entry: Path) -> None:
    refusal = Wire(data=http(503, b'{"error": {"message": "\\u001b[31mbusy\\nuwf: all is well"}}'))
    async with loopback_server([refusal, say('{"value": "Salut"}')]) as server:
        uwf.use(server)
        ran = await uwf("run", "hello.py", "x")
    assert ran.code == 0
    (line,) = (line for line in ran.err.splitlines() if "busy" in line)
    assert line.startswith("  waiting ")
    assert line.endswith("busy uwf: all is well")
    assert "\x1b" not in ran.err


async def test_a_reader_of_events_that_goes_away_does_not_stop_the_thread(
    uwf: Cli, entry: Path
) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')]):
        command = f"{sys.executable} -m uwf run hello.py Greet. --json | head -1"
        done = await anyio.run_process(
            ["sh", "-c", command], check=False, env=uwf.environment, cwd=uwf.folder
        )

    assert b"Traceback" not in done.stderr
    assert "state      completed" in (await uwf("show")).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import asyncio\nasync def f(): ...\nasyncio.run(f())\n", "running event loop"),
        ("class Odd(BaseException): ...\nraise Odd('odd')\n", "Odd: odd"),
        ("raise SystemExit\n", "must not end the process"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine")
async def test_an_import_with_side_effects_is_refused_alike_by_every_command(
    uwf: Cli, text: str, words: str
) -> None:
    uwf.write("odd.py", text)
    for command in (["bundle", "odd.py"], ["add", "odd-one", "odd.py"], ["run", "odd.py", "x"]):
        done = await uwf(*command)
        assert (done.code, words in done.err) == (1, True), done.err
        assert "Traceback" not in done.err


async def test_what_an_entry_prints_is_not_mixed_with_the_events(uwf: Cli, entry: Path) -> None:
    uwf.write("loud.py", "print('HELLO')\n" + ENTRY)
    async with uwf.scripted([say('{"value": "Salut"}')]):
        done = await uwf("run", "loud.py", "x", "--json")

    assert done.lines[0]["event"] == "ThreadStarted"
    assert "HELLO" in done.err


async def test_what_a_role_prints_is_not_mixed_with_the_data(uwf: Cli) -> None:
    uwf.write("loud.py", ONE.replace("return 1", "print('HELLO')\n    return 1"))
    done = await uwf("run", "loud.py", "x")
    assert (done.out, "HELLO\n" in done.err) == ("1\n", True)
    replayed = await uwf("thread", "replay", "latest", "--json")
    assert (replayed.lines[0]["steps"], replayed.err) == (1, "HELLO\n")


LEAVES = """
import sys
import anyio
from workflow_execute.testing import in_turn

async def tool():
    sys.exit(0)

async def turn(ctx):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tool)

run = in_turn(turn)
"""


async def test_what_ends_the_process_is_no_success(uwf: Cli) -> None:
    done = await uwf("run", uwf.write("leaves.py", LEAVES), "x")
    assert (done.code, "uwf: something that was run called sys.exit(0)\n" in done.err) == (1, True)


async def test_events_go_to_standard_output_also_beside_a_terminal(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    ours, theirs = pty.openpty()
    done = await anyio.run_process(
        [sys.executable, "-m", "uwf", "run", "one.py", "x", "--json"],
        cwd=uwf.folder, env={**uwf.environment, "TERM": "xterm"}, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    drawn = os.read(ours, 65_536).decode()
    os.close(ours)
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events == ["ThreadStarted", "RoleStarted", "RoleFinished", "ThreadEnded"]
    assert "completed (0)" in drawn
    assert "RoleFinished" not in drawn


async def test_a_key_does_not_follow_a_provider_to_another_url(uwf: Cli) -> None:
    first = ["--base-url", "http://one.test/v1", "--model", "m", "--api-key-env", "MY_KEY"]
    assert (await uwf("setup", "--provider", "p", *first)).code == 0
    second = ["--base-url", "http://two.test/v1", "--model", "m"]
    assert (await uwf("setup", "--provider", "p", *second)).code == 0
    assert (await uwf("setup", "--base-url", "http://[::1]:8000/v1", "--model", "m")).code == 0

    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")
    assert "MY_KEY" not in text
    assert "1-8000/m" in text


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_check_that_is_interrupted_leaves_no_process(uwf: Cli, end: signal.Signals) -> None:
    marker = uwf.folder.parent / "started"
    lines = [
        "import os, time",
        f"open('{marker}.new', 'w').write(str(os.getpid()))",
        f"os.rename('{marker}.new', '{marker}')",
        "time.sleep(1000)",
    ]
    uwf.write("hang.py", "\n".join(lines))
    command = [sys.executable, "-m", "uwf", "bundle", "hang.py"]
    with anyio.fail_after(40):
        async with await anyio.open_process(
            command, cwd=uwf.folder, env=uwf.environment
        ) as process:
            await anyio.to_thread.run_sync(lambda: wait_for(marker.exists))
            process.send_signal(end)
            assert await process.wait() == 130
    child = int(marker.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
