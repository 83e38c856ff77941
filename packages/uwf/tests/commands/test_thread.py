"""`uwf thread`: what can be done with a thread that exists, from any process."""

import json
import re

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT, ASKING, NESTED, ONE
from ..terminal.test_ask import GUARDED


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
    assert replayed.out == ("identical: 2 steps, 4 recorded results, 3 requests\n")
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


async def test_threads_that_do_not_exist_are_told(uwf: Cli) -> None:
    for words in (["pause"], ["cancel"], ["fork"], ["replay"], ["answer", "--deny"]):
        done = await uwf("thread", words[0], "01NONE", *words[1:])
        assert (done.code, "there is no thread" in done.err) == (1, True)
    unnamed = await uwf("thread", "answer", "01NONE")
    assert (unnamed.code, "--approve" in unnamed.err) == (2, True)


async def test_questions_are_shown_answered_once_in_any_order_and_the_thread_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("asking.py", ASKING)
    ran = await uwf("run", entry, "x")
    assert ran.code == 3
    assert "uwf thread answer 01" in ran.err

    shown = await uwf("show")
    assert "question   build: May I build?" in shown.out
    assert "question   push: May I push?\n           push --all" in shown.out
    (data,) = (await uwf("show", "--json")).lines
    assert [each["key"] for each in data["questions"]] == ["build", "push"]

    several = await uwf("thread", "answer", "latest", "--approve")
    assert (several.code, "open questions: 'build', 'push'" in several.err) == (1, True)
    denied = await uwf("thread", "answer", "latest", "push", "--deny", "--text", "not today")
    assert (denied.code, denied.out) == (0, "denied\n")
    again = await uwf("thread", "answer", "latest", "push", "--approve")
    assert (again.code, "has an answer already" in again.err) == (1, True)
    assert (await uwf("thread", "answer", "latest", "--approve")).out == "approved\n"

    resumed = await uwf("thread", "resume")
    assert json.loads(resumed.out) == "build:True: push:False:not today"
    late = await uwf("thread", "answer", "latest", "push", "--approve")
    assert late.code == 1
    assert "the question 'push' has an answer already: denied by " in late.err
    assert late.err.endswith(": not today; no question is open\n")
    shown = (await uwf("show", "--turns")).out
    assert re.search(r"denied by .+ at \d\d:\d\d:\d\d: not today\n", shown)


async def test_a_child_is_named_answered_shown_and_replayed_and_its_parent_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("nested.py", NESTED)
    ran = await uwf("run", entry, "x")
    (parent,) = (await uwf("show", "--json")).lines
    (waiting,) = [
        each
        for each in (await uwf("thread", "list", "--children", "--json")).lines
        if each["thread"] != parent["thread"]
    ]
    child = waiting["thread"]
    assert (ran.code, parent["state"], waiting["state"]) == (3, "suspended", "suspended")
    assert f"child thread {child} (develop) waits: Drop the table?" in ran.err
    assert f"To answer: `uwf thread answer {child} --approve|--deny`" in ran.err
    assert f"To continue: `uwf thread resume {parent['thread']}`\n" in ran.err

    answered = await uwf("thread", "answer", child, "--approve", "--text", "yes")
    assert answered.err == f"To continue: `uwf thread resume {parent['thread']}`\n"
    resumed = await uwf("thread", "resume", "latest")
    assert (resumed.code, json.loads(resumed.out)) == (0, "yes")
    assert f"  child thread {child}\n" in (await uwf("show")).out
    assert f"parent     {parent['thread']}\n" in (await uwf("show", child)).out
    (data,) = (await uwf("show", "--json")).lines
    assert [step["child_threads"] for step in data["steps"]] == [[child]]
    for thread_id in (parent["thread"], child):
        replayed = await uwf("thread", "replay", thread_id)
        assert replayed.out.startswith("identical: 1 step")


async def test_a_child_can_be_resumed_alone(uwf: Cli) -> None:
    entry = uwf.write("nested.py", NESTED)
    uwf.home.mkdir()
    config = uwf.home / "workflow.yaml"
    config.write_text("limits: {max_depth: 0}\n", encoding="utf-8")
    too_deep = await uwf("run", entry, "x")
    assert "the limit of 0 levels of child threads" in too_deep.err
    config.write_text("limits: {max_depth: 1}\n", encoding="utf-8")
    assert (await uwf("thread", "resume")).code == 3
    (data,) = (await uwf("show", "--json")).lines
    listed = (await uwf("thread", "list", "--children", "--json")).lines
    (child,) = [each["thread"] for each in listed if each["thread"] != data["thread"]]
    await uwf("thread", "answer", child, "--approve", "--text", "yes")

    assert json.loads((await uwf("thread", "resume", child)).out) == "yes"
    assert json.loads((await uwf("thread", "resume")).out) == "yes"


async def test_the_arguments_of_a_call_are_changed_from_another_process(uwf: Cli) -> None:
    entry = uwf.write("guarded.py", GUARDED)
    write = call("write_file", path="a.txt", content="theirs")
    async with uwf.scripted([write, call("resolve", value="a"), call("resolve", value="b")]):
        assert (await uwf("run", entry, "Write.")).code == 3
        wrong = await uwf("thread", "answer", "latest", "--arguments", "[1]")
        assert (wrong.code, wrong.err) == (2, "uwf: --arguments takes one JSON object, not '[1]'\n")
        both = await uwf("thread", "answer", "latest", "--deny", "--arguments", "{}")
        assert (both.code, "not allowed with" in both.err) == (2, True)
        mine = json.dumps({"path": "a.txt", "content": "mine"})
        answered = await uwf("thread", "answer", "latest", "--arguments", mine)
        assert (answered.code, answered.out) == (0, "approved\n")
        assert (await uwf("thread", "resume")).code == 0
    assert (uwf.folder / "a.txt").read_text(encoding="utf-8") == "mine"


async def test_a_question_that_is_not_about_a_call_takes_no_arguments(uwf: Cli) -> None:
    assert (await uwf("run", uwf.write("asking.py", ASKING), "x")).code == 3
    done = await uwf("thread", "answer", "latest", "push", "--arguments", "{}")
    assert (done.code, "is not about a tool call" in done.err) == (2, True)


async def test_a_thread_is_deleted_only_when_somebody_says_so(uwf: Cli) -> None:
    assert (await uwf("run", uwf.write("one.py", ONE), "Say one.")).code == 0
    nobody = await uwf("thread", "delete", "latest")
    assert (nobody.code, "add --yes" in nobody.err) == (2, True)

    words = ("thread", "delete", "latest")
    drawn = await uwf.on_terminal(*words, replies=[b"\n"], asks=b"[y/N]", code=1)
    assert "one: Say one." in drawn
    assert "nothing was deleted" in drawn
    drawn = await uwf.on_terminal(*words, replies=[b"y\n"], asks=b"[y/N]")
    assert "is deleted" in drawn
    assert "there is no thread yet" in (await uwf("thread", "list")).err
