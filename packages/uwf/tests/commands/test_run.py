"""`uwf run`: entries, bundles, names, and what a run prints."""

import json
from pathlib import Path

from workflow_reactor.testing import call, say

from ..cli import Cli, example
from ..entries import APPROVED, ENTRY, FACTS, GREETING, ONE, PROJECT


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
    assert '→ read_file  path="README.md"' in shown.out
    assert "Run main.py" in shown.out


async def test_facts_that_nobody_approves_end_with_code_1(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    read = call("read_file", path="README.md")
    again = [read, call("resolve", **FACTS), say('{"approved": false, "reasons": ["thin"]}')]
    async with uwf.scripted(again * 3):
        ran = await uwf("run", example("repo_facts"), "What is it?")

    assert ran.code == 1
    assert "not approved: thin" in ran.err


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
    assert "there is no thread yet" in (await uwf("thread", "list")).err


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


TYPED = """
from dataclasses import dataclass
from workflow_execute import create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import END, START, AdapterBinding, RoleDefinition, WorkflowDefinition

@dataclass
class Ticket:
    id: int
    words: str = ""

async def turn(ctx):
    ticket = ctx.input(Ticket)
    return f"{ticket.id}: {ticket.words}"

role = RoleDefinition(name="role", system_prompt="", schema=str)
run = create_workflow(
    WorkflowDefinition(table={START: role, role: END}, input=Ticket, result=role),
    AdapterBinding(adapter_of(turn)),
)
"""


async def test_an_input_with_a_type_is_given_as_json_or_as_a_file(uwf: Cli) -> None:
    entry = uwf.write("typed.py", TYPED)
    uwf.write("ticket.json", '{\n  "id": 8, "words": "ünïcode"\n}')

    inline = await uwf("run", entry, '{"id": 7}')
    from_file = await uwf("run", entry, "@ticket.json")
    from_stdin = await uwf("run", entry, "-", stdin=b'{"id": 9}')

    assert [json.loads(done.out) for done in (inline, from_file, from_stdin)] == [
        "7: ",
        "8: ünïcode",
        "9: ",
    ]


async def test_a_fork_with_an_input_that_does_not_fit_is_not_made(uwf: Cli) -> None:
    entry = uwf.write("typed.py", TYPED)
    uwf.write("ticket.json", '{"id": 8}')
    await uwf("run", entry, '{"id": 7}')

    wrong = await uwf("thread", "fork", "latest", "--at-step", "0", "--prompt", '{"id": "x"}')
    rows = (await uwf("thread", "list", "--json")).lines
    fork = await uwf("thread", "fork", "latest", "--at-step", "0", "--prompt", "@ticket.json")
    resumed = await uwf("thread", "resume", fork.out.strip())

    assert (wrong.code, wrong.out, len(rows)) == (1, "", 1)
    assert wrong.err.startswith("uwf: the input does not fit Ticket: $.id: ")
    assert json.loads(resumed.out) == "8: "


async def test_an_input_that_does_not_fit_is_one_clear_error_before_anything_begins(
    uwf: Cli,
) -> None:
    entry = uwf.write("typed.py", TYPED)
    (uwf.folder / "odd.json").write_bytes(b"\xff")

    wrong = {
        '{"id": "x"}': "uwf: the input does not fit Ticket: $.id: ",
        "Fix it.": "uwf: the input does not fit Ticket: ",
        "@none.json": "uwf: none.json: No such file or directory",
        "@odd.json": "uwf: odd.json is not valid UTF-8",
    }
    for words, message in wrong.items():
        done = await uwf("run", entry, words)
        assert (done.code != 0, done.out, len(done.err.splitlines())) == (True, "", 1), done.err
        assert done.err.startswith(message)
    assert (await uwf("thread", "list", "--json")).out == ""
