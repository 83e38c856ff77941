from __future__ import annotations

import os
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
from workflow_reactor import Secret, create_llm_fn, user


@pytest.fixture
def smallest() -> LocalModel:
    model = find_model("smollm2-135m")
    if not is_present(model):
        pytest.skip("run this test's model in: uwf model pull smollm2-135m")
    return model


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
