"""The list of models that an endpoint gives."""

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import (
    ProviderRefused,
    ProviderUnavailable,
    Secret,
    list_models,
)
from workflow_reactor.http._models import model_names
from workflow_reactor.testing import Wire, http, loopback_server


async def test_the_names_come_sorted_and_with_the_key_sent() -> None:
    async with loopback_server([]) as server:
        server.models = ["zeta", "alpha", "org/model:free"]
        names = await list_models(server.provider())
        server.models = []
        assert await list_models(server.provider(api_key=Secret(""))) == []
    assert names == ["alpha", "org/model:free", "zeta"]
    assert server.authorizations == ["Bearer sk-loopback", ""]
    assert server.bodies == []


async def test_a_query_of_the_base_url_stays_behind_the_path() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"data": [{"id": "m"}]})

    async with loopback_server([]) as server:
        provider = server.provider(base_url="http://host.test/v1/?version=2")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        assert await list_models(provider, client=client) == ["m"]
    (request,) = seen
    assert (request.method, str(request.url)) == ("GET", "http://host.test/v1/models?version=2")
    assert "content-length" not in request.headers


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (404, b"<html>no</html>", ProviderRefused, "gives no list of models"),
        (401, b'{"error": {"message": "bad key sk-loopback"}}', ProviderRefused, "bad key …"),
        (429, b"{}", ProviderUnavailable, "429"),
        (503, b"{}", ProviderUnavailable, "503"),
        (200, b"<html>a page</html>", ProviderRefused, "the reply is no list of models"),
        (200, b'{"error": "x"}', ProviderRefused, "the reply is no list of models"),
        (302, b"", ProviderRefused, "302"),
    ],
)
async def test_what_is_no_list_is_an_error_with_its_status(
    status: int, body: bytes, error: type[Exception], words: str
) -> None:
    async with loopback_server([]) as server:
        server.models = Wire(data=http(status, body))
        with pytest.raises(error, match=words) as caught:
            await list_models(server.provider())
    assert getattr(caught.value, "status") == status  # noqa: B009 - of two types
    assert "sk-loopback" not in str(caught.value)


async def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    async with loopback_server([]) as server:
        server.models = Wire(then="stall")
        with pytest.raises(ProviderUnavailable, match=r"no reply within 0\.05 s"):
            await list_models(server.provider(), timeout_s=0.05)
    with pytest.raises(ProviderUnavailable, match="the connection failed"):
        await list_models(server.provider())


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ([{"id": "b"}, {"id": "a"}, {"id": "a"}], ["a", "b"]),
        ({"models": [{"name": "m"}, {"model": "n"}]}, ["m", "n"]),
        ({"data": ["plain"], "models": []}, ["plain"]),
        ({"data": [{}, None, {"id": 1}, {"id": "a\nb"}, {"id": "x" * 301}]}, []),
        ({"data": None}, None),
        (3, None),
    ],
)
def test_each_usual_form_of_a_list_is_read(value: object, names: list[str] | None) -> None:
    assert model_names(msgspec.json.encode(value)) == names


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.sampled_from(["data", "id", "models", "name"]), each, max_size=3)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=40) | JSON.map(msgspec.json.encode))
def test_any_body_is_a_list_of_names_or_none(body: bytes) -> None:
    names = model_names(body)
    assert names is None or (names == sorted(names) and all(names))
