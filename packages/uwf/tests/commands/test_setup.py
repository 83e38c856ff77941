"""`uwf setup`: what it writes, and what it never writes."""

import msgspec
import pytest

from workflow_reactor import base_url_fault
from workflow_reactor.testing import Wire, http, loopback_server, say
from workflow_register import PRESETS, ModelConfig, load_config, update_config

from ..cli import Cli


async def test_setup_from_the_environment_writes_a_reference_and_never_the_key(uwf: Cli) -> None:
    done = await uwf("setup", OPENAI_API_KEY="sk-environment")
    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")

    assert done.code == 0
    assert "${OPENAI_API_KEY}" in text
    assert "sk-environment" not in text + done.out + done.err


async def test_setup_local_names_a_model_of_the_catalogue(uwf: Cli) -> None:
    assert (
        "models.default = local/smollm2-135m" in (await uwf("setup", "--local", "smollm2-135m")).out
    )
    assert "local/" in (await uwf("setup")).out


async def test_a_key_does_not_follow_a_provider_to_another_url(uwf: Cli) -> None:
    first = ["--base-url", "http://one.test/v1", "--model", "m", "--api-key-env", "MY_KEY"]
    assert (await uwf("setup", "--provider", "p", *first)).code == 0
    second = ["--base-url", "http://two.test/v1", "--model", "m"]
    assert (await uwf("setup", "--provider", "p", *second)).code == 0
    assert (await uwf("setup", "--base-url", "http://[::1]:8000/v1", "--model", "m")).code == 0

    text = (uwf.home / "workflow.yaml").read_text(encoding="utf-8")
    assert "MY_KEY" not in text
    assert "1-8000/m" in text


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "local"])
async def test_each_preset_needs_only_a_model(uwf: Cli, name: str) -> None:
    done = await uwf("setup", "--preset", name, "--model", "vendor/m:1", "--json")

    preset = PRESETS[name]
    provider = load_config(uwf.home).providers[name]
    assert done.lines[0]["model"] == f"{name}/vendor/m:1"
    assert provider.base_url == preset.base_url
    assert provider.api_key == (f"${{{preset.key_variable}}}" if preset.key_variable else None)
    if preset.key_variable:
        assert f"export {preset.key_variable}=…" in done.err


async def test_a_scene_keeps_its_settings_when_it_gets_another_model(uwf: Cli) -> None:
    await uwf("setup", "--preset", "ollama", "--model", "a")
    update_config(uwf.home, {"models": {"default": {"model": "ollama/a", "temperature": 0}}})
    await uwf("setup", "--preset", "ollama", "--model", "b")

    assert load_config(uwf.home).models == {"default": ModelConfig(model="ollama/b", temperature=0)}


async def test_a_scene_is_added_beside_the_others(uwf: Cli) -> None:
    await uwf("setup", "--preset", "ollama", "--model", "a")
    done = await uwf("setup", "--preset", "ollama", "--model", "b", "--scene", "review")
    assert done.out.endswith("models.review = ollama/b\n")
    models = load_config(uwf.home).models
    assert {scene: each.model for scene, each in models.items()} == {
        "default": "ollama/a",
        "review": "ollama/b",
    }
    wrong = await uwf("setup", "--preset", "ollama", "--model", "b", "--scene", "a/b")
    assert (wrong.code, "can't name a scene" in wrong.err) == (2, True)


async def test_the_usual_key_of_a_preset_goes_to_no_other_host(uwf: Cli) -> None:
    elsewhere = ["--preset", "openai", "--base-url", "https://proxy.test/v1", "--model", "m"]
    assert (await uwf("setup", *elsewhere)).code == 0
    assert load_config(uwf.home).providers["openai"].api_key is None
    assert (await uwf("setup", *elsewhere, "--api-key-env", "PROXY_KEY")).code == 0
    assert load_config(uwf.home).providers["openai"].api_key == "${PROXY_KEY}"
    none = ["--preset", "groq", "--model", "m", "--api-key-env", ""]
    assert (await uwf("setup", *none)).code == 0
    assert load_config(uwf.home).providers["groq"].api_key is None


async def test_the_models_of_an_endpoint_are_printed_and_nothing_is_written(uwf: Cli) -> None:
    async with loopback_server([]) as server:
        server.models = ["b", "a"]
        url = f"http://127.0.0.1:{server.port}/v1"
        named = ["setup", "--base-url", url, "--list-models"]
        assert (await uwf(*named)).out == "a\nb\n"
        keyed = await uwf(*named, "--api-key-env", "MINE_KEY", "--json", MINE_KEY="sk-mine-mine")
        assert keyed.lines == [{"model": "a"}, {"model": "b"}]
        server.models = None
        none = await uwf(*named)
    assert (none.code, "gives no list of models" in none.err) == (1, True)
    assert server.authorizations == ["", "Bearer sk-mine-mine", ""]
    assert not (uwf.home / "workflow.yaml").exists()


async def test_a_tested_model_is_asked_once_for_a_short_reply(uwf: Cli) -> None:
    async with loopback_server([say("")]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        done = await uwf("setup", "--base-url", url, "--model", "m", "--test", "--json")
        (request,) = server.requests
    assert (done.code, done.lines[0]["tested"]) == (0, True), done.err
    assert (request["model"], request["max_tokens"]) == ("m", 256)


FAULTS: list[tuple[int, str, str]] = [
    (401, "bad key", "it does not know the key: check MINE_KEY"),
    (402, "pay", "the account has no credit left"),
    (403, "no", "the key may not do this"),
    (404, "no model", "there is no such model, or the base URL is wrong"),
    (429, "slow down", "too many requests, or the account has no credit"),
    (400, "what?", "it refuses the request: is this a model for chats?"),
    (503, "down", "the endpoint has a fault of its own; try again later"),
    (301, "", "the base URL leads to another place"),
]


@pytest.mark.parametrize(("status", "words", "meaning"), FAULTS)
async def test_a_test_that_fails_says_what_it_means_and_writes_nothing(
    uwf: Cli, status: int, words: str, meaning: str
) -> None:
    body = msgspec.json.encode({"error": {"message": words}})
    async with loopback_server([Wire(data=http(status, body))]) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        named = ["--base-url", url, "--model", "m", "--api-key-env", "MINE_KEY", "--test"]
        done = await uwf("setup", *named, MINE_KEY="sk-mine-mine")
    assert done.code == 1
    assert done.err.startswith(f"uwf: {meaning}")
    assert words in done.err
    assert "sk-mine-mine" not in done.err
    assert len(server.bodies) == 1
    assert not (uwf.home / "workflow.yaml").exists()


WRONG: list[tuple[list[str], str]] = [
    (["--preset", "gorq"], "no preset is called 'gorq'; did you mean 'groq'? There are: openai,"),
    (["--preset", "groq"], "name the model with --model; --list-models instead prints"),
    (["--base-url", "http://h/v1"], "name the model with --model"),
    (["--preset", "groq", "--model", "m", "--api-key-env", "sk-not-a-name"],
     "--api-key-env takes the name of an environment variable"),
    (["--preset", "groq", "--model", "m", "--provider", "a/b"], "can't name a provider"),
    (["--preset", "local", "--base-url", "http://h/v1"], "--base-url is not for the embedded"),
    (["--local", "--preset", "groq"], "--local and --preset name two places"),
    (["--local", "--test"], "--test is not for the embedded model"),
    (["--list-models"], "need --preset or --base-url"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "words"), WRONG)
async def test_options_that_do_not_fit_are_one_clear_line(
    uwf: Cli, options: list[str], words: str
) -> None:
    done = await uwf("setup", *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "sk-not-a-name" not in done.err
    assert not (uwf.home / "workflow.yaml").exists()


async def test_a_test_without_its_key_says_which_variable_to_set(uwf: Cli) -> None:
    done = await uwf("setup", "--preset", "groq", "--model", "m", "--test", GROQ_API_KEY="")
    assert done.code == 1
    assert "the environment variable GROQ_API_KEY is not set" in done.err
    assert not (uwf.home / "workflow.yaml").exists()


def test_presets_are_endpoints_that_can_be_asked() -> None:
    for name, preset in PRESETS.items():
        assert name == preset.name
        if preset.base_url is not None:
            assert base_url_fault(preset.base_url) is None
            assert preset.base_url.startswith("http://localhost:" if preset.is_local else "https:")
            assert (preset.key_variable is None) == preset.is_local
            assert bool(preset.start) == preset.is_local
