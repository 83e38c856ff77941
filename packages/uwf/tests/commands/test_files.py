"""`uwf thread changes` and `thread files`, what `show` says of it, and forks with their files."""

import os
import stat
from pathlib import Path

import pytest

from ..cli import Cli

FLOW = """
from uwf import (END, START, AdapterBinding, RoleDefinition, ThreadContext, WorkflowDefinition,
                 create_workflow, function_adapter)

one, two = (RoleDefinition(name=name, schema=str) for name in ("one", "two"))

def first(ctx: ThreadContext) -> str:
    (ctx.start.workspace / "a.txt").write_text("one\\nsame\\n")
    return "done"

def second(ctx: ThreadContext) -> str:
    (ctx.start.workspace / "a.txt").write_text("two\\nsame\\n")
    (ctx.start.workspace / "b\\x1b[31m.txt").write_text("red")
    return "done"

run = create_workflow(
    WorkflowDefinition(table={START: one, one: two, two: END}),
    AdapterBinding(overrides={one: function_adapter(one, first),
                              two: function_adapter(two, second)}),
)
"""


@pytest.fixture
async def thread(uwf: Cli) -> str:
    (uwf.folder / "work").mkdir()
    (uwf.folder / "work" / ".env").write_text("KEY=1")
    done = await uwf("run", uwf.write("flow.py", FLOW), "go", "--workspace", uwf.folder / "work")
    assert done.code == 0, done.err
    assert "are kept in the store (left out: .env): " in done.err
    return (await uwf("thread", "list", "--json")).lines[0]["thread"]


async def test_changes_of_a_step_and_of_the_whole_thread(uwf: Cli, thread: str) -> None:
    second = await uwf("thread", "changes", thread, "2")
    assert second.out.splitlines() == [
        "M a.txt  +1 -1",
        "A b\\x1b[31m.txt  +1 -0",
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -1,2 +1,2 @@",
        "-one",
        "+two",
        " same",
        "--- /dev/null",
        "+++ b/b\\x1b[31m.txt",
        "@@ -0,0 +1 @@",
        "+red",
        "\\ No newline at end of file",
    ]
    (whole,) = (await uwf("thread", "changes", thread, "--names", "--json")).lines
    found = [(each["path"], each["kind"], each["added"], each["diff"]) for each in whole["changes"]]
    assert found == [("a.txt", "added", 2, ""), ("b\x1b[31m.txt", "added", 1, "")]


async def test_show_names_what_each_step_changed(uwf: Cli, thread: str) -> None:
    shown = await uwf("show", thread)
    assert "\n  A a.txt  +2 -0\n" in shown.out
    assert "\n  M a.txt  +1 -1\n" in shown.out
    (data,) = (await uwf("show", thread, "--json")).lines
    assert [len(step["changes"]) for step in data["steps"]] == [1, 2]


async def test_files_are_listed_and_put_back_as_they_were(uwf: Cli, thread: str) -> None:
    listed = await uwf("thread", "files", thread, "1")
    assert listed.out.splitlines() == [".env  (left out: secret name)", "a.txt"]
    done = await uwf("thread", "files", thread, "1", "--to", uwf.folder / "then")
    assert done.code == 0, done.err
    assert {each.name: each.read_text() for each in (uwf.folder / "then").iterdir()} == {
        "a.txt": "one\nsame\n"
    }
    again = await uwf("thread", "files", thread, "1", "--to", uwf.folder / "then")
    assert again.code == 1
    assert "isn't empty" in again.err


async def test_a_fork_has_its_files_and_a_folder_that_goes_with_it(uwf: Cli, thread: str) -> None:
    (fork,) = (await uwf("thread", "fork", thread, "--at-step", "1", "--json")).lines
    folder = Path(fork["workspace"])
    assert folder == uwf.home / "workspaces" / fork["thread"]
    assert (folder / "a.txt").read_text() == "one\nsame\n"
    assert os.listdir(folder) == ["a.txt"]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert (await uwf("thread", "resume", fork["thread"])).code == 0
    assert (folder / "a.txt").read_text() == "two\nsame\n"

    deleted = await uwf("thread", "delete", fork["thread"], "--yes")
    assert deleted.code == 0, deleted.err
    assert fork["thread"] not in os.listdir(uwf.home / "workspaces")
    assert (uwf.folder / "work" / "a.txt").exists()


@pytest.mark.parametrize("step", ["0", "4", "-1"])
async def test_a_step_that_is_not_there_is_a_clear_error(uwf: Cli, thread: str, step: str) -> None:
    done = await uwf("thread", "changes", thread, "--", step)
    assert done.code == 2
    assert "has 2 steps" in done.err


async def test_a_thread_that_changed_nothing_says_so(uwf: Cli) -> None:
    flow = FLOW.replace("write_text", "joinpath")
    done = await uwf("run", uwf.write("flow.py", flow), "go", "--workspace", uwf.folder)
    assert done.code == 0, done.err
    changes = await uwf("thread", "changes", "latest")
    assert (changes.code, changes.out) == (0, "no file changed\n")


async def test_a_resume_on_other_files_says_so_and_can_put_them_back(uwf: Cli) -> None:
    work, go = uwf.folder / "work", uwf.folder / "go"
    work.mkdir()
    flow = FLOW.replace(
        "def second(ctx: ThreadContext) -> str:\n",
        f"def second(ctx: ThreadContext) -> str:\n    open({str(go)!r}).close()\n",
    )
    assert (await uwf("run", uwf.write("flow.py", flow), "go", "--workspace", work)).code == 1
    (data,) = (await uwf("show", "--json")).lines
    (work / "a.txt").write_text("mine")
    (work / "x\x1b[31m.txt").write_text("mine too")

    plain = await uwf("thread", "resume")
    command = f"uwf thread resume {data['thread']} --restore-files"
    assert plain.code == 1
    line = "not as the thread left them: 2 files (a.txt, "
    (told,) = [each for each in plain.err.splitlines() if line in each]
    assert told.endswith(f"To put them back: `{command}`")
    assert "\x1b" not in plain.err
    assert (work / "a.txt").read_text() == "mine"

    go.touch()
    again = await uwf("thread", "resume", "--restore-files")
    assert again.code == 0, again.err
    assert sorted(os.listdir(work)) == ["a.txt", "b\x1b[31m.txt"]
    assert "put back as the thread left them: 2 files" in again.err
    words = again.err.partition("As they were: `uwf ")[2].partition("DIR`")[0].split()
    then = await uwf(*words, uwf.folder / "then")
    assert then.code == 0, then.err
    assert (uwf.folder / "then" / "a.txt").read_text() == "mine"
    both = await uwf(*words[:3], "1", *words[3:-1])
    assert (both.code, "not both" in both.err) == (2, True)


ODD = """
import os
from uwf import (END, START, AdapterBinding, RoleDefinition, ThreadContext, WorkflowDefinition,
                 create_workflow, function_adapter)

only = RoleDefinition(name="only", schema=str)

def write(ctx: ThreadContext) -> str:
    for name in (b"a\\nD b", b"c\\xff", b"d\\te", b"f" * 255):
        with open(os.path.join(os.fsencode(ctx.start.workspace), name), "wb") as file:
            file.write(b"one\\x0c-two\\n")
    return "done"

run = create_workflow(WorkflowDefinition(table={START: only, only: END}),
                      AdapterBinding(overrides={only: function_adapter(only, write)}))
"""


async def test_an_odd_name_is_one_line_for_people_and_exact_for_programs(uwf: Cli) -> None:
    (uwf.folder / "work").mkdir()
    done = await uwf("run", uwf.write("flow.py", ODD), "go", "--workspace", uwf.folder / "work")
    assert done.code == 0, done.err
    thread = (await uwf("thread", "list", "--json")).lines[0]["thread"]
    names = ["a\\nD b", "c\\xff", "d\\te", "f" * 255]
    assert (await uwf("thread", "files", thread)).out.splitlines() == names
    shown = (await uwf("thread", "changes", thread)).out.split("\n")
    assert shown[:4] == [f"A {name}  +1 -0" for name in names]
    assert [each for each in shown if each.startswith("+one")] == ["+one\\x0c-two"] * 4
    assert not [each for each in shown if each.startswith(("D", "-two"))]
    exact = ["a\nD b", "c\udcff", "d\te", "f" * 255]
    for words, key in ((("changes", thread, "1"), "changes"), (("files", thread), "files")):
        (told,) = (await uwf("thread", *words, "--json")).lines
        assert [each["path"] for each in told[key]] == exact
