"""Scripted developers: what a model replies, as a function of the request alone."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workflow_reactor.testing import Reply, Request, ScriptedLlm, call, say

Actions = Sequence[bytes]
"""The calls of a coder, before it resolves."""

CALC = '''"""Sums."""


def add(a, b):
    """Add two numbers."""
    return a - b
'''
MENDED = CALC.replace("a - b", "a + b")
TESTS = """import unittest

from calc import add


class Calc(unittest.TestCase):
    def test_nothing_added(self):
        self.assertEqual(add(2, 0), 2)
"""
NEW_TEST = TESTS.replace("nothing_added", "two_numbers").replace("(2, 0), 2", "(2, 3), 5")
ISSUE = "add(2, 3) in calc.py gives -1 and should give 5."


def git(folder: Path, *words: str) -> str:
    """Run git with no settings of this machine."""
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "@1 +0000",
        "GIT_COMMITTER_DATE": "@1 +0000",
    }
    who = ("-c", "user.name=A", "-c", "user.email=a@localhost")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    """Make a repository of a folder, with all its files in one commit."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Begin")
    return git(folder, "rev-parse", "HEAD")


def make_project(folder: Path) -> str:
    """A repository with a fault that its test doesn't find. Its commit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "calc.py").write_text(CALC)
    (folder / "test_calc.py").write_text(TESTS)
    return commit_all(folder)


def write(path: str, content: str) -> bytes:
    """The call that writes a file."""
    return call("write_file", path=path, content=content)


def shell(command: str) -> bytes:
    """The call that runs a command."""
    return call("shell_exec", command=command)


def developer(
    *attempts: Actions,
    phases: int = 1,
    approve: Callable[[str], bool] = lambda diff: True,
    seen: list[Request] | None = None,
) -> ScriptedLlm:
    """A model for all roles. The last of the coder's attempts is repeated.

    It keeps nothing in mind, so another process that goes on with the thread has the same.
    """
    plan = {
        "phases": [{"title": f"Part {n + 1}", "acceptance": ["it adds"]} for n in range(phases)]
    }

    def reply(request: Request) -> bytes:
        if seen is not None:
            seen.append(request)
        messages: list[Mapping[str, object]] = request["messages"]
        role = _role(str(messages[0]["content"]))
        thread = str(messages[1]["content"])
        spoken = sum(message["role"] == "assistant" for message in messages)
        match role:
            case "planner":
                return call("resolve", **plan)
            case "coder":
                progress = thread.partition("## Progress\n\n")[2].partition("\n\n")[0]
                attempt = progress.count("coder")
                actions = attempts[min(attempt, len(attempts) - 1)]
                if spoken < len(actions):
                    return actions[spoken]
                return call("resolve", summary="All is done and tested, commit 1a2b3c4d5e6f.")
            case "reviewer":
                good = approve(thread)
                reasons = [] if good else ["it does not add"]
                return say(json.dumps({"approved": good, "reasons": reasons}))
            case _:
                return say(json.dumps({"subject": "Add instead of subtracting", "body": ""}))

    replies: list[Reply] = [reply] * 2_000
    return ScriptedLlm(replies)


def _role(prompt: str) -> str:
    words = {
        "You plan": "planner",
        "You change": "coder",
        "You review": "reviewer",
        "You word": "writer",
    }
    return next(role for beginning, role in words.items() if prompt.startswith(beginning))
