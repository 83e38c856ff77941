from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_reactor import Profile
from workflow_register import (
    Config,
    ConfigError,
    ModelConfig,
    ProfileOverrides,
    ProviderConfig,
    environment_config,
    make_provider,
    profile_for,
    resolve_model,
)


def models(named: dict[str, str]) -> dict[str, ModelConfig]:
    return {scene: ModelConfig(model=model) for scene, model in named.items()}


OPENAI = ProviderConfig(base_url="https://api.openai.com/v1", api_key="${OPENAI_API_KEY}")
CONFIG = Config(
    providers={"openai": OPENAI, "local": ProviderConfig(kind="local")},
    models=models(
        {"default": "openai/gpt-4.1-mini", "extract": "local", "review": "openai/org/model"}
    ),
)


def test_a_scene_has_its_own_model_and_others_have_the_default() -> None:
    extract = resolve_model(CONFIG, "extract")
    assert (extract.scene, extract.provider_name, extract.kind, extract.model) == (
        "extract",
        "local",
        "local",
        None,
    )
    other = resolve_model(CONFIG, "summarize")
    assert (other.scene, other.provider_name, other.kind, other.model) == (
        "default",
        "openai",
        "openai",
        "gpt-4.1-mini",
    )
    assert other == resolve_model(CONFIG)
    assert other.provider is OPENAI


def test_a_provider_and_its_model_may_stand_where_a_scene_does() -> None:
    found = resolve_model(CONFIG, "openai/org/large")
    assert (found.provider_name, found.model) == ("openai", "org/large")
    assert found.scene == "openai/org/large"
    assert resolve_model(CONFIG, "local/").model is None
    named = Config(providers=CONFIG.providers, models=models({"a/b": "openai/x"}))
    assert resolve_model(named, "a/b").model == "x"


@settings(deadline=None)
@given(st.text(min_size=1))
def test_a_model_is_all_that_follows_the_first_slash(model: str) -> None:
    config = Config(providers={"p": OPENAI}, models=models({"default": f"p/{model}"}))
    assert resolve_model(config).model == model


@pytest.mark.parametrize(
    ("config", "scene", "message"),
    [
        (
            Config(),
            "default",
            "models.default: no model serves 'default'; run `uwf setup`, or add this key",
        ),
        (
            Config(providers={"a": OPENAI}, models=models({"x": "a/b", "y": "a/c"})),
            "extract",
            "models.default: no model serves 'extract' (there are: x, y); "
            "run `uwf setup`, or add this key",
        ),
        (
            Config(providers={"openai": OPENAI}, models=models({"default": "opeani/x"})),
            "default",
            "models.default: no provider is called 'opeani'; did you mean 'openai'?",
        ),
        (
            Config(providers={"openai": OPENAI}, models=models({"default": "openai"})),
            "default",
            "models.default: write `openai/MODEL`",
        ),
        (CONFIG, "opeani/x", "opeani/x: no provider is called 'opeani'; did you mean 'openai'?"),
    ],
)
def test_a_scene_that_no_model_serves_says_what_to_add(
    config: Config, scene: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(config, scene)
    assert str(caught.value) == message


def test_the_key_is_looked_up_when_it_is_needed() -> None:
    environment: dict[str, str] = {}
    provider = make_provider(resolve_model(CONFIG), environment)
    environment["OPENAI_API_KEY"] = " sk-secret\n"
    assert provider.api_key.reveal() == "sk-secret"
    assert (provider.base_url, provider.model) == ("https://api.openai.com/v1", "gpt-4.1-mini")
    assert "sk-secret" not in repr(provider)


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": " "}])
def test_a_key_that_is_not_set_names_the_provider_and_the_variable(
    environment: dict[str, str],
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_provider(resolve_model(CONFIG), environment).api_key.reveal()
    assert str(caught.value) == (
        "providers.openai.api_key: the environment variable OPENAI_API_KEY is not set, "
        "which provider 'openai' needs; export OPENAI_API_KEY=…"
    )


@settings(deadline=None)
@given(st.text(min_size=1).map(str.strip).filter(bool))
def test_a_key_is_sent_or_refused_without_being_shown(key: str) -> None:
    environment = {"OPENAI_API_KEY": key}
    if key.isascii() and key.isprintable() and " " not in key:
        assert make_provider(resolve_model(CONFIG), environment).api_key.reveal() == key
        return
    with pytest.raises(ConfigError) as caught:
        make_provider(resolve_model(CONFIG), environment).api_key.reveal()
    assert str(caught.value) == (
        "providers.openai.api_key: the environment variable OPENAI_API_KEY has spaces or "
        "characters that a key never has; copy it again"
    )


def test_a_provider_may_have_a_key_in_clear_or_none() -> None:
    clear = ProviderConfig(base_url="http://x/v1", api_key="sk-clear")
    keyless = ProviderConfig(base_url="http://x/v1")
    for config, key in ((clear, "sk-clear"), (keyless, "")):
        resolved = resolve_model(Config(providers={"p": config}, models=models({"default": "p/m"})))
        assert make_provider(resolved, {}).api_key.reveal() == key


def test_what_the_configuration_says_is_on_top_of_what_the_endpoint_is_known_for() -> None:
    config = ProviderConfig(
        base_url="https://api.deepseek.com/v1",
        timeout_s=3.5,
        max_attempts=1,
        extra_body={"temperature": 0},
        profile=ProfileOverrides(dialect="json", forced_tool_choice="none"),
    )
    resolved = resolve_model(Config(providers={"p": config}, models=models({"default": "p/m"})))
    provider = make_provider(resolved, {})
    assert (provider.timeout_s, provider.max_attempts) == (3.5, 1)
    assert provider.extra_body == {"temperature": 0}
    assert provider.profile == Profile(
        dialect="json", response_format="json_object", forced_tool_choice="none"
    )


def test_an_unknown_endpoint_is_taken_for_an_openai_compatible_one() -> None:
    assert profile_for("http://127.0.0.1:8080/v1", "any") == Profile()
    assert profile_for("https://api.openai.com.evil.test/v1", "gpt-4.1") == Profile()
    assert profile_for("https://evil.test/api.openai.com", "gpt-4.1") == Profile()


OPENAI_PROFILE = Profile(
    strict_schemas=True, union_at_root=False, max_tokens_field="max_completion_tokens"
)


@pytest.mark.parametrize(
    ("base_url", "model", "profile"),
    [
        ("https://api.openai.com/v1", "gpt-4.1-mini", OPENAI_PROFILE),
        ("https://API.OpenAI.com:443/v1/", "gpt-4o", OPENAI_PROFILE),
        ("https://api.openai.com/v1", "o4-mini", replace(OPENAI_PROFILE, stop=False)),
        (
            "https://api.openai.com/v1",
            "gpt-4-turbo",
            replace(OPENAI_PROFILE, strict_schemas=False, response_format="json_object"),
        ),
        (
            "https://api.anthropic.com/v1/",
            "claude",
            Profile(response_format="none", forced_tool_choice="none"),
        ),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "gemini",
            Profile(refs=False, union_at_root=False),
        ),
        ("https://api.deepseek.com", "deepseek-chat", Profile(response_format="json_object")),
        (
            "https://api.mistral.ai/v1",
            "mistral-large-latest",
            Profile(echo_reasoning=False, union_at_root=False),
        ),
        (
            "https://api.groq.com/openai/v1",
            "openai/gpt-oss-120b",
            Profile(union_at_root=False, max_tokens_field="max_completion_tokens"),
        ),
        (
            "https://api.groq.com/openai/v1",
            "llama-3.3-70b-versatile",
            Profile(
                union_at_root=False,
                max_tokens_field="max_completion_tokens",
                response_format="json_object",
            ),
        ),
        ("http://localhost:11434/v1", "qwen3", Profile(forced_tool_choice="none")),
        ("https://openrouter.ai/api/v1", "openai/gpt-5", Profile()),
    ],
)
def test_what_an_endpoint_can_do_is_known_by_its_host_and_model(
    base_url: str, model: str, profile: Profile
) -> None:
    assert profile_for(base_url, model) == profile


def test_every_part_of_a_profile_can_be_overridden() -> None:
    overrides = ProfileOverrides(
        dialect="json",
        response_format="none",
        strict_schemas=True,
        refs=False,
        union_at_root=False,
        forced_tool_choice="required",
        parallel_tool_calls=False,
        stop=False,
        max_tokens=9,
        max_tokens_field="n",
        echo_reasoning=False,
        echo_call_ids=False,
        text_tool_calls=True,
    )
    profile_fields = [field.name for field in fields(Profile)]
    assert [field.name for field in fields(ProfileOverrides)] == profile_fields
    config = ProviderConfig(base_url="http://x/v1", profile=overrides)
    resolved = resolve_model(Config(providers={"p": config}, models=models({"default": "p/m"})))
    profile = make_provider(resolved, {}).profile
    for name in profile_fields:
        assert getattr(profile, name) == getattr(overrides, name)
        assert getattr(profile, name) != getattr(Profile(), name)


def test_the_environment_alone_can_configure_a_model() -> None:
    assert environment_config({}) == Config()
    assert environment_config({"OPENAI_MODEL": "x"}) == Config()
    assert environment_config({"OPENAI_API_KEY": "sk-x"}) == Config(
        providers={"openai": OPENAI}, models=models({"default": "openai/gpt-4.1-mini"})
    )
    assert environment_config({"OPENAI_BASE_URL": "http://x/v1", "OPENAI_MODEL": "a/b"}) == Config(
        providers={"openai": ProviderConfig(base_url="http://x/v1")},
        models=models({"default": "openai/a/b"}),
    )


def test_the_environment_has_to_name_a_model_of_another_endpoint() -> None:
    with pytest.raises(ConfigError) as caught:
        environment_config({"OPENAI_BASE_URL": "http://x/v1"})
    assert str(caught.value) == (
        "OPENAI_MODEL: it is not set; name a model of http://x/v1: export OPENAI_MODEL=…"
    )


def headers_of(written: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    config = ProviderConfig(base_url="http://x/v1", headers=written)
    assert not any(value in repr(config) for value in written.values())
    resolved = resolve_model(Config(providers={"p": config}, models=models({"default": "p/m"})))
    provider = make_provider(resolved, environment)
    assert not any(value in repr(provider) for value in environment.values())
    return provider.revealed_headers()


def test_headers_may_hold_references_anywhere_in_a_value() -> None:
    environment = {"A": "sk-first-key", "B": "second"}
    written = {"api-key": "${A}", "x-auth": "Bearer ${A}:${B}", "x-plain": "as it is"}

    assert headers_of(written, environment) == {
        "api-key": "sk-first-key",
        "x-auth": "Bearer sk-first-key:second",
        "x-plain": "as it is",
    }
    with pytest.raises(ConfigError, match=r"providers\.p\.headers\.api-key: .*A is not set"):
        headers_of({"api-key": "${A}"}, {})
