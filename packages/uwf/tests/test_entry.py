"""How the command starts and how an interrupt ends it, whatever became of the interrupt."""

import sys
from types import ModuleType

import anyio
import pytest

from uwf import main

from .cli import Cli


async def test_help_and_a_fresh_start_are_quick_and_import_nothing_heavy(uwf: Cli) -> None:
    script = (
        "import sys, uwf\n"
        "heavy = {'httpx', 'pydantic', 'rich', 'ruamel', 'anyio'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    done = await anyio.run_process([sys.executable, "-c", script], env=uwf.environment)
    assert done.stdout.strip() == b"[]"
    helped = await uwf("run", "--help")
    assert helped.code == 0
    assert "130 cancelled" in helped.out


async def test_a_command_that_asks_no_model_imports_no_http_client(uwf: Cli) -> None:
    script = (
        "import sys, uwf, workflow_reactor\n"
        "uwf.main(['thread', 'list']); uwf.main(['workflow', 'list'])\n"
        "provider = workflow_reactor.LlmProvider(base_url='http://127.0.0.1:9', model='m')\n"
        "workflow_reactor.create_llm_fn(provider)\n"
        "heavy = {'httpx', 'email.message', 'importlib.metadata', 'pydantic', 'rich', 'ruamel'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = await anyio.run_process([sys.executable, "-c", script], env=uwf.environment)
    assert done.stdout.splitlines()[-1] == b"[]"


def test_an_interrupt_that_came_out_as_another_error_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `class C: x = Descriptor()` raises RuntimeError from it in Python 3.11."""
    module = ModuleType("uwf._main")

    def run_command(argv: object) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    vars(module)["run_command"] = run_command
    monkeypatch.setitem(sys.modules, "uwf._main", module)
    assert main([]) == 130
    assert capsys.readouterr().err == "uwf: cancelled\n"


def test_on_windows_it_says_so_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    assert main(["run", "x", "y"]) == 1
    assert capsys.readouterr().err == (
        "uwf: runs on Linux and macOS; on Windows, use it inside WSL\n"
    )
