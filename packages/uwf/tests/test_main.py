"""The command from its start to its exit code: common options, streams and errors."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import anyio
import pytest

from workflow_reactor.testing import say

from .cli import Cli
from .entries import ENTRY


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "no-such-flow", "x"], 1, "no-such-flow"),
        (["run", "hello.py", "  "], 2, "the prompt is empty"),
        (["run", "hello.py", "x", "--workspace", "nowhere"], 2, "is not a folder"),
        (["show"], 1, "there is no thread 'latest'"),
        (["show", "01ABC"], 1, "there is no thread"),
        (["thread", "resume"], 1, "there is no thread"),
        (["setup", "--model", "m"], 2, "need --preset or --base-url"),
        (["setup", "--base-url", "http://h/v1"], 2, "name the model with --model"),
        (["setup", "--base-url", "nonsense", "--model", "m"], 2, "should be an http(s) URL"),
        (["setup", "--base-url", "http://[h/v1", "--model", "m"], 2, "should be an http(s) URL"),
        (["setup", "--base-url", "http://h", "--model", "m\udcff"], 2, "model is not valid UTF-8"),
        (["thread", "answer", "01", "--deny", "--text", "a\udcff"], 2, "text is not valid UTF-8"),
        (["thread", "list"], 0, "there is no thread yet; start one with `uwf run`"),
        (["run", "notes.txt", "x"], 1, "there is no such file; check the path"),
        (["setup", "--local", "no-such-model"], 1, "no-such-model"),
        (["model", "pull", "no-such-model"], 1, "no-such-model"),
        (["add", "Bad Name", "hello.py"], 1, "Bad Name"),
        (["run", "a" * 300, "x"], 1, "can't name a workflow"),
        (["--home", "", "workflow", "list"], 2, "the path is empty; name a folder"),
        (["doctor", "--timeout", "nan"], 2, "'nan' is not a number of seconds above 0"),
        (["thread", "fork", "latest", "--prompt", " "], 2, "the prompt is empty"),
        (["frobnicate"], 2, "there is no command 'frobnicate'"),
    ],
)
async def test_wrong_use_is_told_with_a_code(
    uwf: Cli, entry: Path, words: list[str], code: int, message: str
) -> None:
    done = await uwf(*words)

    assert (done.code, message in done.err) == (code, True), done.err
    assert "Traceback" not in done.err


async def test_the_version_is_that_of_the_package(uwf: Cli) -> None:
    assert (await uwf("--version")).out == f"uwf {version('uwf')}\n"


async def test_common_options_may_stand_before_the_command(uwf: Cli) -> None:
    elsewhere = uwf.folder / "elsewhere"
    done = await uwf("--json", "--home", elsewhere, "setup", "--local")
    assert done.lines[0]["path"] == str(elsewhere / "workflow.yaml")


async def test_a_home_that_cannot_be_used_is_named_with_the_way_out(uwf: Cli, entry: Path) -> None:
    uwf.home.write_text("a file", encoding="utf-8")
    done = await uwf("bundle", "hello.py")
    assert done.code == 1
    assert done.err.startswith(f"uwf: {uwf.home}/bundles/")
    assert done.err.endswith(
        f": Not a directory; {uwf.home} is the folder for the files of uwf. Repair it, or choose "
        "another one with --home\n"
    )


async def test_a_folder_that_was_deleted_is_told_and_what_to_do(uwf: Cli, entry: Path) -> None:
    gone = uwf.folder / "gone"
    for words in ("run ../hello.py x", f"add a-name {entry}", "bundle ../hello.py", "run a-name x"):
        gone.mkdir()
        done = await uwf.shell(f"cd {gone}; rmdir {gone}; {sys.executable} -P -m uwf {words}")
        if "add" not in words:  # an absolute path needs no current folder
            assert done.code == 1
            said = "the current folder was deleted; `cd` to another one and run this again\n"
            assert done.err.endswith(f": {said}")


@pytest.mark.parametrize("kind", ["pipe", "folder"])
async def test_what_is_no_file_is_refused_at_once(uwf: Cli, entry: Path, kind: str) -> None:
    uwf.home.mkdir()
    make = os.mkfifo if kind == "pipe" else os.mkdir
    make(uwf.home / "workflow.yaml")
    make(uwf.folder / "bundle.zip")
    make(uwf.folder / "odd.py")
    uwf.write(entry.name, f"import odd\n{ENTRY}")
    reason = "this is not a regular file" if kind == "pipe" else "Is a directory"
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


async def test_looking_creates_nothing(uwf: Cli) -> None:
    for words in (["workflow", "list"], ["thread", "list"], ["show"], ["cas", "verify"]):
        await uwf(*words)
    assert not await anyio.Path(uwf.home).exists()


@pytest.mark.parametrize("prompt", ["a\udcff", "-"])
async def test_a_prompt_that_is_no_text_is_one_clear_line(
    uwf: Cli, entry: Path, prompt: str
) -> None:
    done = await uwf("run", "hello.py", prompt, stdin=b"\xff\xfe")

    assert (done.code, done.err) == (2, "uwf: the prompt is not valid UTF-8\n")


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
    assert (done.code, "uwf: code of the workflow called sys.exit(0); " in done.err) == (1, True)


async def test_streams_that_are_closed_stop_nothing(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')] * 2):
        for closed in (">&- 2>&-", "<&- 2>&-"):
            done = await uwf.shell(f"$UWF run hello.py x {closed}")
            assert (done.code, done.err) == (0, "")
    for words in ("--version", "--help", "workflow list"):
        done = await uwf.shell(f"$UWF {words} | true")
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("into", "code", "said"),
    [("| true", 141, ""), (">/dev/full", 1, "uwf: No space left on device\n")],
)
async def test_an_error_that_nobody_can_read_is_no_traceback(
    uwf: Cli, into: str, code: int, said: str
) -> None:
    for words in ("setup --local --json", "show 01NONE --json"):
        done = await uwf.shell(f"($UWF {words}; echo $? >code) {into}")
        found = int(await anyio.Path(uwf.folder / "code").read_text())
        if words.startswith("setup"):
            assert (found, done.err) == (code, said)
        else:
            assert (found, done.err) == (code, "uwf: there is no thread '01NONE'\n")


async def test_a_stream_of_errors_that_goes_away_is_no_error_of_its_own(uwf: Cli) -> None:
    await uwf.shell("($UWF show 01NONE; echo $? >code) 2>&1 >/dev/null | true")
    assert await anyio.Path(uwf.folder / "code").read_text() == "141\n"


async def test_a_reader_that_goes_away_is_no_error(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')]):
        await uwf("run", "hello.py", "Greet.")
    assert (await uwf.shell("$UWF show --turns | true")).err == ""


async def test_a_reader_of_events_that_goes_away_does_not_stop_the_thread(
    uwf: Cli, entry: Path
) -> None:
    async with uwf.scripted([say('{"value": "Salut"}')]):
        done = await uwf.shell("$UWF run hello.py Greet. --json | head -1")

    assert "Traceback" not in done.err
    assert "state      completed" in (await uwf("show")).out


async def test_a_locale_without_utf8_loses_nothing(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "Salut, Zoé \u202e"}')]) as server:
        ran = await uwf.process(
            "run", "hello.py", "Greet Zoé.", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
        )
        shown = await uwf.process("show", LC_ALL="C", PYTHONIOENCODING="ascii")

    assert "Greet Zoé." in server.requests[0]["messages"][1]["content"]
    assert ran.out == '"Salut, Zo\\xe9 \\u202e"\n'
    assert "prompt     Greet Zo\\xe9." in shown.out
