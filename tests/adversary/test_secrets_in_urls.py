"""A key in a URL, or in the wrong place of the file, is in no error, output, log or repr."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf.commands._doctor import doctor
from uwf.terminal._output import Output
from workflow_agent_react import McpError, McpServer, open_mcp
from workflow_reactor import (
    LlmProvider,
    ProviderConfigError,
    ProviderError,
    create_llm_fn,
    shown_url,
    system,
    user,
    without_keys,
)
from workflow_reactor.testing import loopback_server, say
from workflow_register import ConfigError, configured_llm, load_config, update_config

KEY = "hunter2-Zq9"
REFUSED = [
    f"https://user:{KEY}@host/v1",
    f"https://{KEY}@host/v1",
    f"https://:{KEY}@host:80/v1",
    f"https://u:{KEY}/x@host/v1",
    f"https://u:{KEY}?x@host/v1",
    f"https://u:{KEY}#x@host/v1",
    f"https://u@{KEY}@host/v1",
    f"https://host/v1#{KEY}",
    f"https://host/v1?a=b#{KEY}",
    f"https://user:{KEY}@[::1/v1",
    f"https://host:{KEY}/v1",
    f"//user:{KEY}@host",
    f"ftp://user:{KEY}@host",
    KEY,
    f"{KEY}://host/v1",
    f"https://host\n/v1?{KEY}",
]
QUERIES = [f"?key={KEY}", f"?{KEY}", f"?a=1&b={KEY}&c", f"?a=1;b={KEY}", f"?k={KEY}=={KEY}"]


def chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{error!r} {error} {vars(error)}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("url", REFUSED)
def test_a_base_url_that_holds_a_key_is_refused_with_the_reason_and_not_repeated(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderConfigError) as direct:
        LlmProvider(base_url=url, model="m")
    assert KEY not in "".join(chain(direct.value))

    text = json.dumps({"providers": {"p": {"base_url": url}}, "models": {"default": "p/m"}})
    (tmp_path / "workflow.yaml").write_text(text)
    with pytest.raises(ConfigError) as configured:
        load_config(tmp_path)
    assert KEY not in "".join(chain(configured.value))
    assert [fault.key for fault in configured.value.faults] == ["providers.p.base_url"]
    with pytest.raises(ConfigError) as changed:
        update_config(tmp_path, {"providers": {"q": {"base_url": url}}})
    assert KEY not in "".join(chain(changed.value))

    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as environment:
        anyio.run(_session, tmp_path / "none")
    assert KEY not in "".join(chain(environment.value))


async def _session(home: Path) -> None:
    async with configured_llm(home=home).session():
        pass


@pytest.mark.parametrize("query", QUERIES)
async def test_the_values_of_a_query_are_shown_nowhere(
    query: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    messages = [system("s"), user("u")]
    async with loopback_server([say("hello")]) as server:
        provider = LlmProvider(
            base_url=f"http://127.0.0.1:{server.port}/v1{query}", model="m", max_attempts=1
        )
        async with create_llm_fn(provider).session() as llm:
            assert (await llm(messages)).text == "hello"
    async with create_llm_fn(provider).session() as llm:
        with pytest.raises(ProviderError) as raised:
            await llm(messages)
    assert KEY not in "".join(chain(raised.value)) + repr(provider)
    settings = {"base_url": provider.base_url, "max_attempts": 1}
    text = json.dumps({"providers": {"p": settings}, "models": {"default": "p/m"}})
    (tmp_path / "workflow.yaml").write_text(text)
    assert KEY not in repr(load_config(tmp_path))
    assert KEY not in caplog.text
    assert KEY not in "".join(capfd.readouterr())


@pytest.mark.parametrize("as_json", [False, True])
def test_the_doctor_shows_no_value_of_a_query(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    as_json: bool,
) -> None:
    closed = f"http://127.0.0.1:1/v1?key={KEY}"
    (tmp_path / "workflow.yaml").write_text(
        json.dumps(
            {
                "providers": {"p": {"base_url": closed, "max_attempts": 1}},
                "models": {"default": "p/m"},
            }
        )
    )
    monkeypatch.setenv("UWF_HOME", os.fspath(tmp_path))
    with pytest.raises(Exception, match="does not reply") as failed:
        doctor(Output(json=as_json), "default", write=False, timeout_s=5)
    said = "".join(capfd.readouterr()) + "".join(chain(failed.value))
    assert KEY not in said
    assert "?key=…" in said


async def test_an_mcp_server_is_named_without_the_key_of_its_url() -> None:
    server = McpServer(url=f"http://127.0.0.1:1/mcp?key={KEY}", headers={"token": KEY})
    assert KEY not in repr(server)
    with pytest.raises(McpError) as raised, anyio.fail_after(20):
        async with open_mcp(server):
            pass
    assert KEY not in f"{raised.value} {raised.value!r} {vars(raised.value)}"


@pytest.mark.parametrize(
    "text",
    [
        "providers: {p: {sk-SECRET-12345678: x}}",
        "providers: {p: {Hunter2Secret: x}}",
        "providers: {sk-SECRET-12345678: {base_url: 3}}",
        "Hunter2Secret: 3",
        "providers: {p: {base_url: http://x/v1, profile: {Hunter2Secret: 1}}}",
        "models: {default: sk-SECRET-12345678/m}",
        "models: {sk-SECRET-12345678: [1]}",
        "limits: {prices: {sk-SECRET-12345678: {input: x}}}",
        "supervisor: {every: 1, model: sk-SECRET-12345678}",
        "providers: {p: {base_url: 'http://x/v1', api_key: 'x${Hunter2Secret'}}",
        "providers: {p: {base_url: 'http://x/v1', kind: {Hunter2Secret: 1}}}",
        "providers: [Hunter2Secret]",
        "{Hunter2Secret: 1, Hunter2Secret: 2}",
        "providers: {p: {base_url: 'http://x/v1', extra_body: {sk-SECRET-12345678: 2024-01-01}}}",
    ],
)
def test_a_key_in_the_wrong_place_of_the_file_is_not_repeated(tmp_path: Path, text: str) -> None:
    (tmp_path / "workflow.yaml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path)
    said = "".join(chain(raised.value))
    assert "SECRET" not in said
    assert "Hunter2" not in said
    assert all(fault.line == 1 for fault in raised.value.faults)


SIGNS = st.text("abz09-_.~%!$&'()*+,;=:@/?#[]", min_size=1, max_size=8).map(
    lambda text: f"{text}{KEY}"
)


@given(SIGNS, st.sampled_from(["https", "http", "HTTPS"]), st.sampled_from(["", ":8080"]))
def test_no_user_and_no_query_comes_through(secret: str, scheme: str, port: str) -> None:
    for url in (
        f"{scheme}://{secret}@host{port}/v1",
        f"{scheme}://u:{secret}@host{port}/v1?x=1",
        f"{scheme}://host{port}/v1?k={secret.replace('&', '').replace(';', '')}",
        f"{scheme}://host{port}/v1#{secret}",
    ):
        assert KEY not in shown_url(url)
        assert KEY not in without_keys(f"asked {url.replace(chr(39), '')}: no")


def test_what_is_no_secret_is_shown() -> None:
    assert shown_url("https://host:8080/v1/x?api-version=3&b") == (
        "https://host:8080/v1/x?api-version=…&…"
    )
    assert without_keys("see https://host/docs/keys for sk-learn") == (
        "see https://host/docs/keys for sk-learn"
    )
    assert shown_url(str(httpx.URL("http://[::1]:80/v1"))) == "http://[::1]/v1"
