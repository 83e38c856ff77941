import sys
from pathlib import Path
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from workflow_register import (
    keep_providers_open,
    open_provider,
    update_config,
)

PLUGIN = """
from contextlib import asynccontextmanager
import anyio
from workflow_reactor import LlmProvider

events = []

@asynccontextmanager
async def open_provider(model_name):
    if model_name == "broken":
        raise ValueError("it does not start")
    async with anyio.create_task_group() as group:  # has to be left by the task that entered it
        group.start_soon(anyio.sleep_forever)
        events.append(f"open {model_name}")
        yield LlmProvider(base_url="http://127.0.0.1:1/v1", model=model_name)
        events.append(f"close {model_name}")
        group.cancel_scope.cancel()
"""


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the plug-in `kept` did."""
    name = f"kept_{tmp_path.name}"
    metadata = tmp_path / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[workflow_register.providers]\nkept = {name}:open_provider\n"
    )
    (tmp_path / f"{name}.py").write_text(PLUGIN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("UWF_HOME", str(tmp_path))
    models = {"default": "k/small", "big": "k/big", "broken": "k/broken"}
    update_config(tmp_path, {"providers": {"k": {"kind": "kept"}}, "models": models})
    return cast("list[str]", __import__(name).events)


async def use(scene: str = "default") -> None:
    async with open_provider(scene):
        await anyio.lowlevel.checkpoint()


async def test_an_endpoint_ends_with_its_turn_unless_it_is_kept(events: list[str]) -> None:
    await use()
    await use()
    assert events == ["open small", "close small"] * 2


async def test_a_kept_endpoint_is_opened_once_by_whichever_task_is_first(
    events: list[str],
) -> None:
    with anyio.fail_after(5):
        async with keep_providers_open():
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(use)
            await use("big")
            await use()
            assert events == ["open small", "open big"]
    assert sorted(events[2:]) == ["close big", "close small"]


async def test_what_the_block_raises_comes_out_as_it_is(events: list[str]) -> None:
    async def run() -> None:
        async with keep_providers_open():
            await use()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await run()
    assert events == ["open small", "close small"]


async def test_an_endpoint_that_does_not_start_fails_its_turn_alone(events: list[str]) -> None:
    with anyio.fail_after(5):
        async with keep_providers_open():
            with pytest.raises(ValueError, match="it does not start"):
                await use("broken")
            await use()
    assert events == ["open small", "close small"]


async def test_a_cancelled_run_ends_what_was_kept(events: list[str]) -> None:
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with keep_providers_open():
            await use()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert events == ["open small"]  # the plug-in's task was cancelled, not asked to close
