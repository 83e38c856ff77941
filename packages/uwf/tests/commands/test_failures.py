"""What is said of a run that failed, was stopped or could not begin, and how to go on."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from ..cli import Cli, until
from ..entries import ENTRY, WAITING

FAILING = """
from workflow_execute.testing import in_turn

def check(number):
    if number:
        raise ValueError("no good")

async def turn(ctx):
    check(1)

run = in_turn(turn)
"""

TWO_FAULTS = """
from workflow_execute import create_workflow
from workflow_protocol import START, RoleDefinition, WorkflowDefinition

role = RoleDefinition(name="a", system_prompt="", schema=str)
WorkflowDefinition(
    table={START: role, role: "b"}
)
"""


async def test_a_failure_names_its_type_its_line_and_the_command_that_goes_on(uwf: Cli) -> None:
    entry = uwf.write("failing.py", FAILING)
    ran = await uwf("run", entry, "x")
    (data,) = (await uwf("show", "--json")).lines
    place = f"{entry}:6 in check"
    assert ran.code == 1
    assert "failed (1): ValueError: no good (failing.py:6 in check)\n" in ran.err
    again = f"uwf thread resume {data['thread']} --bundle {entry}"
    assert f"To continue: `{again}` (--fresh starts the unfinished turn again)\n" in ran.err
    assert f"For the traceback: `uwf show {data['thread']} --traceback`\n" in ran.err
    assert "Traceback" not in ran.err
    assert (data["error"], data["raised_in"]) == ("ValueError", place)
    assert f"raised in  {place}\n" in (await uwf("show")).out
    for shown in (await uwf("show", "--traceback"), await uwf("show", UWF_TRACEBACK="1")):
        assert "Traceback (most recent call last):" in shown.out
        assert shown.out.endswith("ValueError: no good\n")
    assert "Traceback" not in (await uwf("show", UWF_TRACEBACK="0")).out
    resumed = await uwf("thread", "resume", "--traceback")
    assert "in turn\n    check(1)\n" in resumed.err
    assert f"`uwf thread resume {data['thread']}` (--fresh" in resumed.err

    mended = uwf.write("mended.py", FAILING.replace("check(1)", "return 1"))
    assert (await uwf("thread", "resume", "--bundle", mended)).out == "1\n"


async def test_an_error_of_the_command_has_a_traceback_where_one_is_wanted(uwf: Cli) -> None:
    plain = await uwf("run", "nowhere", "x")
    full = await uwf("run", "nowhere", "x", "--traceback")
    assert "Traceback" not in plain.err
    assert full.err.startswith("Traceback (most recent call last):")
    assert full.err.endswith(plain.err)


@pytest.mark.parametrize("words", [["run", "faults.py", "x"], ["add", "faults", "faults.py"]])
async def test_the_faults_of_a_definition_have_a_line_each(uwf: Cli, words: list[str]) -> None:
    entry = uwf.write("faults.py", TWO_FAULTS)
    done = await uwf(*words)
    first, *faults = done.err.splitlines()
    assert first.startswith(f"uwf: {entry}:6: DefinitionError: ")
    assert len(faults) >= 1
    assert all(each.startswith("  ") for each in faults)


async def test_without_its_key_a_model_is_refused_before_there_is_a_thread(
    uwf: Cli, entry: Path
) -> None:
    uwf.home.mkdir()
    provider = "{base_url: 'http://127.0.0.1:9/v1', api_key: '${NO_SUCH_KEY}'}"
    text = f"providers: {{p: {provider}}}\nmodels: {{default: p/m}}\n"
    (uwf.home / "workflow.yaml").write_text(text, encoding="utf-8")
    done = await uwf("run", entry, "x")
    assert done.code == 1
    assert "the environment variable NO_SUCH_KEY is not set" in done.err
    assert "there is no thread yet" in (await uwf("thread", "list")).err
    unused = uwf.write("unused.py", ENTRY.replace('"default"', '"p/other"'))
    assert "NO_SUCH_KEY is not set" in (await uwf("run", unused, "x")).err


async def test_ctrl_c_names_the_command_that_goes_on(uwf: Cli) -> None:
    entry = uwf.write("waiting.py", WAITING)
    with anyio.fail_after(40):
        async with await uwf.start("run", entry, "x") as process:
            await until((uwf.folder / "begun").exists)
            os.kill(process.pid, signal.SIGINT)
            assert await process.wait() == 130
            assert process.stderr is not None
            said = b"".join([part async for part in process.stderr]).decode()
    (data,) = (await uwf("show", "--json")).lines
    assert f"To continue: `uwf thread resume {data['thread']}`\nuwf: cancelled\n" in said


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["thread", "resume", "--help"]])
async def test_the_help_says_all_exit_codes(uwf: Cli, words: list[str]) -> None:
    said = " ".join((await uwf(*words)).out.split())
    for each in ("0 done", "1 failed", "2 wrong", "3 the thread waits", "130 cancelled", "141 the"):
        assert each in said
