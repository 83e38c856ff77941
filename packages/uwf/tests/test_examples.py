"""The examples that the package brings: short, typed, and run as the pages say."""

import ast
import json
import sys
import tokenize
from pathlib import Path

import anyio
import pytest

from workflow_reactor.testing import Request, call, say

from .cli import Cli, example

EXAMPLES = sorted(example("greet").parent.glob("[a-z]*.py"))


def code_lines(path: Path) -> int:
    """How many lines have code: no blank ones, comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    with path.open("rb") as file:
        lines = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in {*blank, tokenize.ENCODING, tokenize.ENDMARKER}
            for line in range(token.start[0], token.end[0] + 1)
        }
    return len(lines - words)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_imports_the_engine_in_one_statement(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]

    assert modules.count("uwf") == 1
    assert [module for module in modules if module.startswith("workflow_")] == []


@pytest.mark.parametrize(("name", "at_most"), [("weather", 14), ("article", 30), ("overview", 20)])
def test_a_first_workflow_is_short_and_needs_nothing_else(name: str, at_most: int) -> None:
    source = example(name).read_text(encoding="utf-8")

    assert code_lines(example(name)) <= at_most
    assert {"uwf", "pydantic"} >= {
        line.split()[1] for line in source.splitlines() if " import " in line
    }
    assert "cast" not in source
    assert "ignore" not in source


WEATHER = [call("weather", city="Rome"), call("resolve", value="Wear a hat.")]


async def test_the_weather_example_asks_its_tool(uwf: Cli) -> None:
    async with uwf.scripted(WEATHER) as server:
        ran = await uwf("run", example("weather"), "What do I wear in Rome?")

    assert (ran.code, ran.out) == (0, '"Wear a hat."\n'), ran.err
    assert server.requests[1]["messages"][-1]["content"] == "sun, 24 °C"


DRAFT, BETTER = say('{"value": "Clever."}'), say('{"value": "Clever, for they learn."}')
CONTENT = say('{"good": true, "advice": ""}')
ARTICLE = [DRAFT, say('{"good": false, "advice": "Say why."}'), BETTER, CONTENT]


async def test_the_article_example_is_written_again_until_critic_and_person_agree(
    uwf: Cli,
) -> None:
    answer = ["thread", "answer", "latest"]
    async with uwf.scripted([*ARTICLE, BETTER, CONTENT]) as server:
        waiting = await uwf("run", example("article"), "Octopuses")
        await uwf(*answer, "--deny", "--text", "Name one.")
        again = await uwf("thread", "resume", "latest")
        await uwf(*answer, "--approve")
        done = await uwf("thread", "resume", "latest")

    assert (waiting.code, again.code, done.code) == (3, 3, 0), done.err
    assert json.loads(done.out)["approved"] is True
    asked = [request["messages"][-1]["content"] for request in server.requests]
    assert "Say why." in asked[2]
    assert "Name one." in asked[4]
    assert asked[4].rstrip().endswith("Do what the person says.")


async def test_the_article_example_asks_who_runs_it_in_plain_python(uwf: Cli) -> None:
    async with uwf.scripted(ARTICLE):
        ran = await plain_python(uwf, ASKED)

    assert ran == (0, "Publish this? Clever, for they learn.\ncompleted True Critique\n", "")


def about_a_file(request: Request) -> bytes:
    """Read the file that the task names, then say which word was in it."""
    latest = request["messages"][-1]
    if latest["role"] == "tool":
        return call("resolve", value="two" if "two" in latest["content"] else "one")
    return call("read_file", path=latest["content"].split()[3].rstrip("."))


async def test_the_overview_example_has_a_child_thread_for_each_file(uwf: Cli) -> None:
    for name, words in {"a.txt": "one", "b.txt": "two", "c.md": "three"}.items():
        uwf.write(name, words)
    async with uwf.scripted([about_a_file] * 4) as server:
        ran = await uwf("run", example("overview"), "*.txt", "--workspace", uwf.folder)
        replayed = await uwf("thread", "replay", "latest")
        shown = await uwf("show", "latest")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"a.txt": "one", "b.txt": "two"}
    assert (replayed.code, len(server.requests)) == (0, 4), replayed.err
    assert shown.out.count("  child thread ") == 2


ASKED = """
import anyio

from uwf import Answer, Engine, MemoryStore, Question
from uwf.examples.article import critic, run

async def approve(asking):
    print(asking.question.text, asking.question.details)
    return Answer(approved=True)

async def main():
    result = await Engine(MemoryStore(), asker=approve).start(run, "Octopuses")
    print(result.state, result.value.approved, type(result.of(critic)).__name__)

anyio.run(main)
"""


SCRIPT = """
import anyio

from uwf import run_workflow
from uwf.examples.weather import run

async def main():
    result = await run_workflow(run, "What do I wear in Rome?")
    print(result.state, repr(result.value), [step.role for step in result.steps])

anyio.run(main)
"""


async def plain_python(uwf: Cli, script: str, *words: str) -> tuple[int, str, str]:
    """Run a script with the Python of the tests, with the home of `uwf`."""
    path = uwf.write("script.py", script)
    done = await anyio.run_process(
        [sys.executable, str(path), *words], check=False, cwd=uwf.folder, env=uwf.environment
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def test_an_example_runs_in_plain_python_with_the_models_of_the_home(uwf: Cli) -> None:
    async with uwf.scripted(WEATHER) as server:
        ran = await plain_python(uwf, SCRIPT)

    assert ran == (0, "completed 'Wear a hat.' ['adviser']\n", "")
    assert server.requests[0]["model"] == "scripted"


async def test_plain_python_without_a_configuration_says_what_to_do(uwf: Cli) -> None:
    code, out, err = await plain_python(uwf, SCRIPT)

    assert (code, out) == (1, "")
    reason = "models.default: no model serves 'default'; run `uwf setup`, or add this key"
    assert err.splitlines()[-1].startswith("workflow_execute._errors.ThreadNotCompleted: thread ")
    assert err.splitlines()[-1].endswith(f"it is failed: {uwf.home}/workflow.yaml: {reason}")
