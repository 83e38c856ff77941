"""Completion as the shells ask for it."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from uwf._completion import model_choices
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
    assert ask(uwf, "uwf run greeter --model rev") == ["review="]
    assert ask(uwf, "uwf run greeter --model review=h") == ["host/m", "host/r"]  # after the `=`
    assert ask(uwf, "uwf run greeter --limit to") == ["tokens="]
    assert ask(uwf, "uwf completion z") == ["zsh"]
    assert ask(uwf, "uwf model pull smol") == ["smollm2-135m"]


CONFIGS = {
    "{models: {default: host/m, review: {model: host/r, seed: 1}}}": ["host/m", "host/r"],
    "{models: {a: {seed: 1}, b: 3, c: [x], d: null, 1: host/m}}": ["host/m"],
    "{models: [a, b]}": [],
    "[models]": [],
    "models": [],
    "": [],
}


@pytest.mark.parametrize("text", CONFIGS)
def test_the_models_of_any_configuration_are_offered_alone_and_after_a_scene(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "workflow.yaml").write_text(text, encoding="utf-8")
    given = argparse.Namespace(home=tmp_path)
    offered = model_choices(prefix="", parsed_args=given)
    assert [each for each in offered if not each.endswith("=")] == CONFIGS[text]
    after = [f"review={model}" for model in CONFIGS[text]]
    assert model_choices(prefix="review=", parsed_args=given) == after


def test_scenes_are_completed_without_what_takes_long_to_import(uwf: Cli) -> None:
    uwf.home.mkdir()
    (uwf.home / "workflow.yaml").write_text("models: {default: local/small}")
    script = (
        "import argparse, pathlib, sys; from uwf._completion import scenes\n"
        f"print(scenes(parsed_args=argparse.Namespace(home=pathlib.Path({str(uwf.home)!r}))))\n"
        "heavy = {'pydantic', 'httpx', 'workflow_register', 'workflow_execute', 'anyio'}\n"
        "print(sorted(heavy & {*sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'default': 'local/small'}\n[]\n"


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
