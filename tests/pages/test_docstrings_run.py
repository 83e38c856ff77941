"""The examples in the docstrings of what an author starts from. They run as they stand."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import uwf
from workflow_reactor.testing import Request, call, loopback_server, say
from workflow_register import update_config

from .run_blocks import run_blocks

START_FROM = {
    "Engine", "agent_to_adapter", "command_adapter", "create_llm_adapter", "create_react_adapter",
    "create_workflow", "function_adapter", "open_store", "run_workflow", "tool", "workflow_adapter",
}  # fmt: skip
"""What has an example at least."""
RUN_IT = """
if "run" in globals():
    done = await run_workflow(run, "Do it.")
    assert done.state == "completed", done.summary
"""


def examples() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in uwf.__all__:
        words = getattr(uwf, name).__doc__ or ""
        for block in re.findall(r"^( *)```python\n(.*?)^ *```$", words, re.DOTALL | re.MULTILINE):
            found[name] = textwrap.dedent(block[1])
    return found


def answer(request: Request) -> bytes:
    """Whatever is asked: a text."""
    tools = [each["function"]["name"] for each in request.get("tools", [])]
    return call("resolve", value="Wear a hat.") if "resolve" in tools else say('"A text."')


def test_what_an_author_starts_from_has_an_example() -> None:
    assert START_FROM - examples().keys() == set()


@pytest.mark.parametrize("name", examples())
async def test_an_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UWF_HOME", str(tmp_path / "home"))
    names = f"from uwf import {', '.join(uwf.__all__)}"

    async with loopback_server([answer] * 4) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        providers: dict[str, Any] = {"loopback": {"kind": "openai", "base_url": url}}
        models = {"default": "loopback/scripted"}
        update_config(tmp_path / "home", {"providers": providers, "models": models})
        code = [names, examples()[name], RUN_IT]
        await run_blocks(name, [{"line": 1, "code": each, "prints": None} for each in code])
