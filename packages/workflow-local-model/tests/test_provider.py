from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from workflow_local_model import (
    DEFAULT_MODEL,
    LocalModel,
    ModelAbsent,
    UnknownModel,
    find_model,
    is_present,
    open_provider,
)
from workflow_reactor import ProviderUnavailable, Secret, create_llm_fn, user


@pytest.fixture
def smallest() -> LocalModel:
    model = find_model("smollm2-135m")
    if not is_present(model):
        pytest.skip("run this test's model in: uwf model pull smollm2-135m")
    return model


def server_of(model: LocalModel) -> int:
    """The process that serves a model for this one; 0 if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            status = (process / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if f"serve\0{model.name}\0".encode() in command and int(status[1]) == os.getpid():
            return int(process.name)
    return 0


@pytest.mark.model
async def test_a_local_provider_answers(smallest: LocalModel) -> None:
    async with open_provider(smallest.name) as provider:
        assert provider.model == smallest.name
        assert provider.api_key == Secret("local")
        assert provider.profile.dialect == smallest.dialect
        assert provider.profile.forced_tool_choice == "required"
        reply = await create_llm_fn(provider)([user("Say hello.")])
    assert reply.text


@pytest.mark.model
async def test_users_at_the_same_time_share_one_server(smallest: LocalModel) -> None:
    urls: list[str] = []
    first_may_leave, second_may_leave = anyio.Event(), anyio.Event()

    async def use(may_leave: anyio.Event) -> None:
        async with open_provider(smallest.name) as provider:
            urls.append(provider.base_url)
            if len(urls) == 2:
                first_may_leave.set()
            await may_leave.wait()
            assert (await create_llm_fn(provider)([user("Say hello.")])).text
        second_may_leave.set()

    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            group.start_soon(use, first_may_leave)
            group.start_soon(use, second_may_leave)
        async with open_provider(smallest.name) as later:
            pass
    assert urls[0] == urls[1] != later.base_url


@pytest.mark.model
async def test_a_first_user_who_gives_up_does_not_take_the_server_along(
    smallest: LocalModel,
) -> None:
    answered = anyio.Event()

    async def use() -> None:
        async with open_provider(smallest.name) as provider:
            assert (await create_llm_fn(provider)([user("Say hello.")])).text
        answered.set()

    with anyio.fail_after(50):
        async with anyio.create_task_group() as group:
            with anyio.move_on_after(0.05):
                async with anyio.create_task_group() as impatient:
                    impatient.start_soon(use)
                    group.start_soon(use)
            await answered.wait()


@pytest.mark.model
async def test_a_server_that_is_killed_is_started_again_where_its_users_look_for_it(
    smallest: LocalModel,
) -> None:
    with anyio.fail_after(55):
        async with (
            open_provider(smallest.name) as provider,
            open_provider(smallest.name) as same,
            create_llm_fn(provider).session() as llm,
            create_llm_fn(same).session() as other,
        ):
            assert (await llm([user("Say hello.")])).text
            first = server_of(smallest)
            os.kill(first, signal.SIGKILL)
            assert (await llm([user("Say hello.")])).text
            assert (await other([user("Say hello.")])).text
            second = server_of(smallest)
            assert second != first
            async with anyio.create_task_group() as group:
                group.start_soon(llm, [user("Count to a hundred.")])
                group.start_soon(other, [user("Say hello.")])
                await anyio.wait_all_tasks_blocked()
                os.kill(second, signal.SIGKILL)
    assert server_of(smallest) == 0


@pytest.mark.model
async def test_a_server_that_is_killed_again_and_again_is_given_up(
    smallest: LocalModel,
) -> None:
    with anyio.fail_after(55):
        async with open_provider(smallest.name) as provider:
            for _ in range(4):  # the server, and three that are started in its place
                assert (await create_llm_fn(provider)([user("Say hello.")])).text
                os.kill(server_of(smallest), signal.SIGKILL)
            with pytest.raises(ProviderUnavailable):
                await create_llm_fn(replace(provider, max_attempts=4))([user("Say hello.")])
    assert server_of(smallest) == 0


async def test_absent_weights_are_answered_with_the_command_that_fetches_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWF_MODELS", str(cache))
    with pytest.raises(ModelAbsent) as caught:
        async with open_provider():
            pass
    assert str(caught.value).endswith(f"uwf model pull {DEFAULT_MODEL}")
    assert os.listdir(cache) == []


async def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownModel):
        async with open_provider("gpt-9"):
            pass
