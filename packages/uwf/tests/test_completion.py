"""Completion as the shells ask for it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workflow_register import find_home, store_path, update_config

from .cli import Cli
from .entries import ONE

ASK_BASH = """
eval "$(uwf completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDS=($1)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete uwf
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_FISH = 'uwf completion fish | source; complete -C "$argv[1]"'


def ask(uwf: Cli, line: str, *, shell: str = "bash") -> list[str]:
    """What a real shell offers after a line, sorted. It has to be silent otherwise."""
    script = ASK_BASH if shell == "bash" else ASK_FISH
    words = [shell, "-c", script, *(["bash"] if shell == "bash" else []), line]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words, cwd=uwf.folder, env={**uwf.environment, "PATH": path}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return sorted(each.rstrip() for each in done.stdout.splitlines() if each)


@pytest.mark.slow
async def test_bash_completes_commands_options_and_the_names_that_there_are(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    uwf.write("notes.txt", "")
    assert (await uwf("add", "greeter", "one.py")).code == 0
    assert (await uwf("run", "one.py", "x")).code == 0
    (row,) = (await uwf("thread", "list", "--json")).lines
    update_config(
        uwf.home,
        {
            "providers": {"host": {"kind": "openai", "base_url": "http://127.0.0.1:9/v1"}},
            "models": {"default": "host/m", "review": "host/r"},
        },
    )

    assert ask(uwf, "uwf thr") == ["thread"]
    assert ask(uwf, "uwf thread re") == ["replay", "request", "resume"]
    assert ask(uwf, "uwf run --work") == ["--workspace"]
    assert ask(uwf, "uwf run gr") == ["greeter"]
    assert ask(uwf, "uwf run on") == ["one.py"]
    assert ask(uwf, "uwf workflow show g") == ["greeter"]
    assert ask(uwf, f"uwf show {row['thread'][:4]}") == [row["thread"]]
    assert ask(uwf, "uwf thread fork la") == ["latest"]
    assert ask(uwf, "uwf doctor re") == ["review"]
    assert ask(uwf, "uwf run greeter --model h") == ["host/m", "host/r"]
    assert ask(uwf, "uwf run greeter --limit to") == ["tokens="]
    assert ask(uwf, "uwf completion z") == ["zsh"]
    assert ask(uwf, "uwf model pull smol") == ["smollm2-135m"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
async def test_fish_shows_the_state_of_a_thread_beside_its_id(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    assert (await uwf("run", "one.py", "x")).code == 0
    (row,) = (await uwf("thread", "list", "--json")).lines
    assert ask(uwf, "uwf show 0", shell="fish") == [f"{row['thread']}\tcompleted"]


@pytest.mark.parametrize("line", ["uwf show 0", "uwf run g", "uwf doctor d", "uwf --b"])
def test_completion_makes_no_home_and_says_nothing(uwf: Cli, line: str) -> None:
    assert ask(uwf, line) == []
    assert not uwf.home.exists()


async def test_completion_says_nothing_of_a_store_or_a_configuration_that_is_broken(
    uwf: Cli,
) -> None:
    uwf.home.mkdir()
    (uwf.home / "store.sqlite3").write_bytes(b"no database")
    (uwf.home / "workflow.yaml").write_text("models: [", encoding="utf-8")
    assert ask(uwf, "uwf show 0") == []
    assert ask(uwf, "uwf doctor d") == []
    assert (uwf.home / "store.sqlite3").read_bytes() == b"no database"


def test_completion_looks_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the place by itself, because what knows it takes long to import."""
    monkeypatch.delenv("UWF_HOME", raising=False)
    assert find_home() == Path.home() / ".uwf"
    assert store_path(find_home()).name == "store.sqlite3"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_the_script_of_each_shell_is_printed_whole(uwf: Cli, shell: str) -> None:
    script = (await uwf("completion", shell)).out
    assert "_ARGCOMPLETE" in script
    (data,) = (await uwf("completion", shell, "--json")).lines
    assert data == {"shell": shell, "script": script.removesuffix("\n")}
    assert json.dumps(data)
