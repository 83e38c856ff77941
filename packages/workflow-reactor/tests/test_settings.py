import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import (
    LlmProvider,
    ModelSettings,
    ProviderConfigError,
    RequestOptions,
    create_llm_fn,
    open_llm,
    user,
)
from workflow_reactor.testing import ScriptedLlm, loopback_server, say

numbers = st.none() | st.floats(min_value=0, max_value=1, allow_nan=False)
some_settings = st.builds(
    ModelSettings,
    temperature=numbers,
    top_p=numbers,
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
)
PROVIDER = LlmProvider(base_url="http://127.0.0.1:9/v1", model="m")
NONE: Mapping[str, Any] = {"temperature": None, "top_p": None, "seed": None}


def sent(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in NONE if name in body}


@given(some_settings, some_settings, some_settings)
def test_a_request_has_the_roles_settings_else_the_models_else_the_fields_of_extra_body(
    role: ModelSettings, model: ModelSettings, extra: ModelSettings
) -> None:
    extra_body = {**extra.fields(), "user": "ada"}
    llm = create_llm_fn(replace(PROVIDER, settings=model, extra_body=extra_body))
    body = llm.frame((), RequestOptions(settings=role)).body([user("a")])

    assert sent(json.loads(body)) == {**extra.fields(), **model.fields(), **role.fields()}
    assert all(body.count(f'"{name}":'.encode()) <= 1 for name in NONE)


async def test_a_turn_has_the_settings_that_it_is_opened_with() -> None:
    async with loopback_server([say("a"), say("b"), say("c")]) as server:
        provider = replace(server.provider(), settings=ModelSettings(temperature=1, seed=2))
        async with open_llm(create_llm_fn(provider), None, ModelSettings(temperature=0)) as llm:
            await llm([user("a")])
            await llm([user("b")], (), RequestOptions(stop=("x",)))
        async with open_llm(create_llm_fn(provider)) as llm:
            await llm([user("c")])
    first, second, third = server.requests

    assert sent(first) == sent(second) == {"temperature": 0, "seed": 2}
    assert second["stop"] == ["x"]
    assert sent(third) == {"temperature": 1, "seed": 2}


async def test_a_scripted_model_shows_the_settings_of_its_requests() -> None:
    scripted = ScriptedLlm([say("a"), say("b")])
    async with open_llm(scripted, None, ModelSettings(top_p=0.5)) as llm:
        await llm([user("a")])
        await scripted([user("b")])

    assert [sent(each) for each in scripted.requests] == [{"top_p": 0.5}, {}]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; it must be 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan; it must be 0 or more"),
        ({"temperature": float("inf")}, "temperature is inf; it must be 0 or more"),
        ({"temperature": "0"}, "temperature is '0'; it must be a number"),
        ({"temperature": True}, "temperature is True; it must be a number"),
        ({"top_p": 1.5}, "top_p is 1.5; it must be 0 to 1"),
        ({"seed": 1.0}, "seed is 1.0; it must be a whole number"),
        ({"seed": 2**63}, "seed is 9223372036854775808; it must be"),
    ],
)
def test_a_value_out_of_its_range_is_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ProviderConfigError) as caught:
        ModelSettings(**settings)

    assert str(caught.value).startswith(fault)


def test_what_is_not_set_is_not_sent() -> None:
    body = json.loads(create_llm_fn(PROVIDER).frame((), RequestOptions()).body([user("a")]))

    assert sent(body) == {}
