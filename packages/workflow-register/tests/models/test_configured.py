import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from workflow_protocol import Event
from workflow_reactor import LlmSource, named_llm, noting_models, open_llm, user
from workflow_reactor.testing import LoopbackServer, loopback_server, say
from workflow_register import (
    Config,
    ConfigError,
    ConfiguredLlm,
    Limits,
    ModelConfig,
    config_path,
    configured_llm,
    effective_config,
    open_provider,
    overriding_models,
    provider_kinds,
    update_config,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "LOOPBACK_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UWF_HOME", str(tmp_path))
    return tmp_path


def point_at(server: LoopbackServer, home: Path, *, model: str) -> None:
    url = f"http://127.0.0.1:{server.port}/v1"
    update_config(
        home,
        {
            "providers": {"loop": {"base_url": url, "api_key": "${LOOPBACK_KEY}"}},
            "models": {"default": f"loop/{model}"},
        },
    )


async def ask(llm: LlmSource) -> str | None:
    heard: list[Event] = []

    async def note(event: Event) -> None:
        heard.append(event)

    async with open_llm(llm, note) as model:
        reply = await model([user("hello")])
    assert heard == []
    return reply.text


async def test_a_scene_is_asked_at_the_endpoint_that_is_configured_when_it_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = configured_llm("review")  # before anything is configured
    async with loopback_server([say("one"), say("two"), say("three"), say("four")]) as server:
        point_at(server, home, model="small")
        monkeypatch.setenv("LOOPBACK_KEY", "sk-loop")
        assert await ask(llm) == "one"
        assert await ask(llm) == "two"
        update_config(home, {"models": {"review": "loop/org/large"}})
        assert await ask(llm) == "three"
        assert await ask(configured_llm("loop/other")) == "four"
    models = [request["model"] for request in server.requests]
    assert models == ["small", "small", "org/large", "other"]


async def test_a_key_is_needed_only_when_a_model_is_asked(home: Path) -> None:
    async with loopback_server([]) as server:
        point_at(server, home, model="m")
        assert effective_config(home).models == {"default": ModelConfig(model="loop/m")}
        with pytest.raises(ConfigError) as caught:
            await ask(configured_llm())
        assert server.requests == []
    assert str(caught.value) == (
        f"{config_path(home)}: providers.loop.api_key: the environment variable LOOPBACK_KEY is "
        "not set, which provider 'loop' needs; export LOOPBACK_KEY=…"
    )


async def test_a_home_can_be_given_instead_of_the_users(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UWF_HOME", str(home / "other"))
    monkeypatch.setenv("LOOPBACK_KEY", "sk-loop")
    async with loopback_server([say("here")]) as server:
        point_at(server, home, model="m")
        assert await ask(configured_llm(home=home)) == "here"


async def test_without_a_file_the_environment_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_MODEL", "env-model")
    async with loopback_server([say("env")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
        assert await ask(configured_llm("any")) == "env"
        update_config(home, {"limits": {"max_steps": 3}})
        config = effective_config(home)
    assert config.models == {"default": ModelConfig(model="openai/env-model")}
    assert config.limits == Limits(max_steps=3)
    async with open_provider() as provider:
        assert provider.api_key.reveal() == "sk-env"


async def test_with_nothing_configured_it_says_what_to_run(home: Path) -> None:
    assert effective_config(home) == Config()
    with pytest.raises(ConfigError, match="no model serves 'default'; run `uwf setup`"):
        async with configured_llm().session():
            raise AssertionError("it must not open")


async def test_a_file_that_cannot_be_read_is_not_taken_for_none(home: Path) -> None:
    (home / "file").write_text("")
    with pytest.raises(ConfigError, match="it can't be read"):
        effective_config(home / "file")


def install_plugin(folder: Path, entry_points: Sequence[str], code: str = "") -> None:
    """Lay out an installed distribution that registers kinds of providers."""
    metadata = folder / "acme_models-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-models\nVersion: 1.0\n")
    lines = ["[workflow_register.providers]", *entry_points]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (folder / "acme_models.py").write_text(code)


PLUGIN = """
import os
from contextlib import asynccontextmanager
from workflow_reactor import LlmProvider, Profile

opened = []

@asynccontextmanager
async def open_provider(model_name):
    opened.append(model_name)
    yield LlmProvider(
        base_url=os.environ["ACME_URL"],
        model=model_name or "acme-default",
        extra_body={"seed": 1},
        profile=Profile(dialect="json", max_tokens=100),
    )
    opened.append("closed")
"""


async def test_another_kind_of_provider_comes_from_an_installed_package(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, ["acme = acme_models:open_provider"], PLUGIN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert provider_kinds().keys() >= {"openai", "acme"}
    update_config(
        home,
        {
            "providers": {
                "mine": {
                    "kind": "acme",
                    "extra_body": {"temperature": 0},
                    "profile": {"max_tokens": 7},
                }
            },
            "models": {"default": "mine", "big": "mine/large"},
        },
    )
    async with loopback_server([say("one"), say("two")]) as server:
        monkeypatch.setenv("ACME_URL", f"http://127.0.0.1:{server.port}/v1")
        assert await ask(configured_llm()) == "one"
        async with configured_llm("big").session() as llm:
            assert llm.profile.dialect == "json"
            assert (await llm([user("hello")])).text == "two"
    shown = [
        (request["model"], request["seed"], request["temperature"], request["max_tokens"])
        for request in server.requests
    ]
    assert shown == [("acme-default", 1, 0, 7), ("large", 1, 0, 7)]

    plugin = cast("Any", sys.modules["acme_models"])
    assert plugin.opened == [None, "closed", "large", "closed"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("acmee", "no installed package provides 'acmee'; did you mean 'acme'?"),
        (
            "broken",
            "'acme_nowhere:open_provider', which provides 'broken', can't be imported: "
            "No module named 'acme_nowhere'",
        ),
    ],
)
async def test_a_kind_that_nothing_provides_says_what_to_do(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, message: str
) -> None:
    install_plugin(
        tmp_path, ["acme = acme_models:open_provider", "broken = acme_nowhere:open_provider"]
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    update_config(home, {"providers": {"x": {"kind": kind}}, "models": {"default": "x"}})
    with pytest.raises(ConfigError) as caught:
        async with open_provider():
            raise AssertionError("it must not open")
    assert str(caught.value) == f"{config_path(home)}: providers.x.kind: {message}"


def test_the_local_kind_says_which_extra_it_needs(home: Path, tmp_path: Path) -> None:
    update_config(home, {"providers": {"x": {"kind": "local"}}, "models": {"default": "x"}})
    installed = tmp_path / "installed"  # all that is installed here but the one package
    installed.mkdir()
    folders = [Path(path) for path in sys.path if Path(path).name == "site-packages"]
    names = {each.name: each for folder in reversed(folders) for each in folder.iterdir()}
    for name, each in names.items():
        if not name.startswith("workflow_local_model"):
            (installed / name).symlink_to(each)
    sources = [path for path in sys.path if Path(path).name == "src"]
    code = f"""
import sys
sys.path[:] = [*{sources!r}, {str(installed)!r}, *sys.path]
import anyio
from workflow_register import open_provider, ConfigError
async def main():
    async with open_provider():
        pass
try:
    anyio.run(main)
except ConfigError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"UWF_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        f"{config_path(home)}: providers.x.kind: no installed package provides 'local'; "
        "run `uv pip install 'uwf[local]'`\n",
        "",
    )


async def test_a_name_is_that_of_a_scene_or_a_model_of_the_configuration(home: Path) -> None:
    model = named_llm("review")  # before anything is configured
    with pytest.raises(ConfigError, match="run `uwf setup`"):
        async with model.session():
            pass
    found = model.find()

    assert isinstance(found, ConfiguredLlm)
    assert found.scene == "review"


def test_a_model_is_checked_without_being_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with noting_models() as noted:
        models = [configured_llm(), configured_llm("cheap")]
    configured_llm("not noted")
    assert noted == models
    with pytest.raises(ConfigError, match="run `uwf setup`"):
        models[0].check()
    provider = {"base_url": "http://127.0.0.1:9/v1", "api_key": "${LOOPBACK_KEY}"}
    update_config(home, {"providers": {"loop": provider}, "models": {"default": "loop/m"}})
    with pytest.raises(ConfigError, match="LOOPBACK_KEY is not set"):
        models[1].check()
    monkeypatch.setenv("LOOPBACK_KEY", "k")
    assert models[1].check().model == "m"
    headers = {"X-Team": "${NO_SUCH_TEAM}"}
    update_config(home, {"providers": {"loop": {**provider, "headers": headers}}})
    with pytest.raises(ConfigError, match="NO_SUCH_TEAM is not set"):
        models[0].check()
    config_path(home).write_text(
        "providers: {loop: {kind: nowhere}}\nmodels: {default: loop/m}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="no installed package provides 'nowhere'"):
        models[0].check()


async def test_a_scene_may_say_how_its_model_chooses_its_words(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPBACK_KEY", "sk-x")
    async with loopback_server([say("a"), say("b"), say("c")]) as server:
        point_at(server, home, model="m")
        changes = {"model": "loop/m", "temperature": 0.5, "top_p": 1, "seed": 7}
        update_config(home, {"models": {"poems": changes}})
        await ask(configured_llm("poems"))
        await ask(configured_llm("default"))
        with overriding_models({"": "loop/other"}):
            await ask(configured_llm("poems"))
    poems, default, overridden = server.requests
    names = ("model", "temperature", "top_p", "seed")

    assert [poems.get(name) for name in names] == ["m", 0.5, 1, 7]
    assert [default.get(name) for name in names] == ["m", None, None, None]
    assert [overridden.get(name) for name in names] == ["other", 0.5, 1, 7]


async def test_settings_go_over_what_a_plug_in_asks_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, ["acme = acme_models:open_provider"], PLUGIN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    models = {
        "default": {"model": "mine/m", "temperature": 0},
        "dice": {"model": "mine", "seed": 6},
    }
    update_config(home, {"providers": {"mine": {"kind": "acme"}}, "models": models})
    async with loopback_server([say("one"), say("two")]) as server:
        monkeypatch.setenv("ACME_URL", f"http://127.0.0.1:{server.port}/v1")
        await ask(configured_llm())
        await ask(configured_llm("dice"))
    shown = [(request.get("temperature"), request["seed"]) for request in server.requests]

    assert shown == [(0, 1), (None, 6)]
