"""Questions of a thread that a person answers on the terminal."""

import re

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT, ASKING


async def test_on_a_terminal_the_person_is_asked_at_once(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    replies = [b"what?\n", b"y fine by me\n", b"no\n"]
    drawn = await uwf.on_terminal("run", entry, "x", replies=replies)

    assert "May I build?" in drawn
    assert "build --all" in drawn
    assert "build:True:fine by me push:False:" in drawn


async def test_what_was_typed_before_a_question_was_shown_does_not_answer_it(uwf: Cli) -> None:
    entry = uwf.write("asking.py", ASKING)

    replies = [b"n\nyes\nyes\n", b"n later\n"]
    drawn = await uwf.on_terminal("run", entry, "x", replies=replies, early=b"y\n")

    assert "build:False: push:False:later" in drawn


GUARDED = f"""{AGENT}
from workflow_agent_react import Allow, Ask

def ask_first(call, ctx):
    return Ask("May it write?") if call.name == "write_file" else Allow()

run = create_workflow(
    run.definition,
    AdapterBinding(create_react_adapter(
        ReactAdapterConfig(
            llm="default", toolset=workspace_tools(sandbox="off"), dialect="native",
            guards=[ask_first],
        )
    )),
)
"""

NOISY = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Question

async def turn(ctx):
    said = []
    async def ask():
        said.append(await ctx.journal.ask("go", Question(text="May I?")))
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        number = 0
        while True:
            print("noise", number)
            number += 1
            await anyio.sleep(0.01)
    return said[0].text

run = in_turn(turn, schema=str)
"""


async def test_a_question_names_its_thread_and_role_and_all_other_output_waits(uwf: Cli) -> None:
    entry = uwf.write("noisy.py", NOISY)

    drawn = await uwf.on_terminal("run", entry, "x", replies=[b"y done\n"])

    (data,) = (await uwf("show", "--json")).lines
    _, asked, after = drawn.partition(f"thread {data['thread']}, role role-0: May I?")
    assert asked
    assert "noise" not in after.partition("to decide later: ")[0]
    numbers = re.findall(r"noise (\d+)", drawn)
    assert numbers == [str(number) for number in range(len(numbers))]
    assert '"done"' in after


async def test_a_question_on_the_terminal_is_answered_from_another_process(uwf: Cli) -> None:
    entry = uwf.write("noisy.py", NOISY)

    elsewhere = ["thread", "answer", "latest", "--deny", "--text", "not now"]
    drawn = await uwf.on_terminal("run", entry, "x", replies=[elsewhere])

    assert "uwf: the question was answered elsewhere: denied by " in drawn
    assert "in process" in drawn
    assert '"not now"' in drawn
    again = await uwf("thread", "answer", "latest", "go", "--approve")
    assert again.code == 1
    assert "the question 'go' has an answer already: denied by " in again.err


async def test_a_person_changes_the_arguments_of_a_call_on_the_terminal(uwf: Cli) -> None:
    entry = uwf.write("guarded.py", GUARDED)
    async with uwf.scripted(
        [
            call("write_file", path="a.txt", content="theirs"),
            call("resolve", value="a"),
            call("resolve", value="b"),
        ]
    ):
        replies = [b"{oops\n", b'{"path": "a.txt", "content": "mine"}\n']
        drawn = await uwf.on_terminal("run", entry, "Write.", replies=replies)

    assert "Type other arguments as one JSON object to change the call." in drawn
    assert "This is not one JSON object." in drawn
    assert (uwf.folder / "a.txt").read_text(encoding="utf-8") == "mine"
