"""`setup`: which model to use, written to `workflow.yaml`; as a dialogue or by options."""

from __future__ import annotations

import os
import re

import msgspec

from uwf._errors import Failed, UsageError
from uwf.commands._endpoint import Endpoint, meaning_of, models_of, try_model
from uwf.commands._setup_choice import (
    Choice,
    embedded_choice,
    endpoint_choice,
    find_preset,
    make_endpoint,
)
from uwf.commands._setup_dialogue import choose_all, choose_key_and_model
from uwf.terminal._ask import can_ask
from uwf.terminal._output import Output
from uwf.terminal._style import Styled
from workflow_register import (
    ModelConfig,
    config_path,
    effective_config,
    environment_config,
    find_home,
    load_config,
    update_config,
)


def setup(
    output: Output,
    *,
    preset: str | None,
    local: str | None,
    base_url: str | None,
    model: str | None,
    provider: str | None,
    api_key_env: str | None,
    scene: str,
    test: bool | None,
    list_models: bool,
) -> int:
    """Write a provider and make its model serve a scene. Keys are written as references only."""
    check_scene(scene)
    chosen = None if preset is None else find_preset(preset)
    if local is not None and preset not in {None, "local"}:
        raise UsageError("--local and --preset name two places; give one")
    if local is not None or (chosen is not None and chosen.base_url is None):
        _refuse(base_url=base_url, api_key_env=api_key_env, provider=provider)
        choice = embedded_choice(local or model or "")
        if list_models:
            raise UsageError("the embedded models are listed by `uwf model list`")
    elif base_url is not None or chosen is not None:
        endpoint = make_endpoint(chosen, base_url, provider, api_key_env)
        if list_models:
            return _print_models(output, endpoint)
        choice = _choose(output, endpoint, model, test=test)
    elif model or provider or api_key_env is not None or list_models:
        raise UsageError(
            "--model, --provider, --api-key-env and --list-models need --preset or --base-url"
        )
    elif may_ask(output):
        choice = choose_all(output, test=test)
    else:
        choice = _from_environment() or embedded_choice("")
    if test and not choice.tested:
        choice = _tested(output, choice)
    return _write(output, choice, scene)


def may_ask(output: Output) -> bool:
    """Whether somebody is there to be asked. A program that wants JSON is nobody."""
    return can_ask() and not output.json


def is_configured() -> bool:
    """Whether some model is configured, in the file or in the environment."""
    return bool(effective_config(find_home()).models)


def check_scene(scene: str) -> None:
    """Refuse what can't name a scene.

    Raises:
        UsageError: it has a slash, which is for provider/model, or is empty.
    """
    if not re.fullmatch(r"[\w.-]+", scene):
        raise UsageError(f"{scene!r} can't name a scene: use letters, digits, - and _")


def _choose(output: Output, endpoint: Endpoint, model: str | None, *, test: bool | None) -> Choice:
    if model:
        return endpoint_choice(endpoint, model)
    if may_ask(output):
        return choose_key_and_model(output, endpoint, test=test)
    raise UsageError(
        "name the model with --model; --list-models instead prints those that the endpoint has"
    )


def _refuse(**options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} is not for the embedded model")


def _print_models(output: Output, endpoint: Endpoint) -> int:
    for name in models_of(endpoint):
        output.data({"model": name}, name)
    return 0


def _tested(output: Output, choice: Choice) -> Choice:
    """Make the test call.

    Raises:
        Failed: the model does not reply; the message says what that means.
    """
    endpoint = choice.endpoint
    if endpoint is None:
        raise UsageError("--test is not for the embedded model; `uwf model pull` verifies it")
    if endpoint.lacks_key:
        raise Failed(
            1,
            f"the environment variable {endpoint.key_variable} is not set, so nothing was tested "
            "or written; --no-test writes without a test",
        )
    if (error := try_model(endpoint, choice.model)) is not None:
        raise Failed(
            1,
            f"{meaning_of(error, endpoint)}. Nothing was written; --no-test writes without a "
            f"test.\n{error}",
        )
    output.say([Styled("ok", "good"), f": {choice.model} at {endpoint.place} replies"])
    return msgspec.structs.replace(choice, tested=True)


def _write(output: Output, choice: Choice, scene: str) -> int:
    home = find_home()
    model = f"{choice.provider}/{choice.model}"
    present = load_config(home).models.get(scene)
    has_settings = present is not None and present != ModelConfig(model=present.model)
    changes = {
        "providers": {choice.provider: choice.settings},
        "models": {scene: {"model": model} if has_settings else model},
    }
    written = update_config(home, changes).models[scene].model
    path = str(config_path(home))
    output.data(
        {"path": path, "scene": scene, "model": written, "tested": choice.tested},
        f"{path}: models.{scene} = {written}",
    )
    endpoint = choice.endpoint
    if endpoint is not None and endpoint.key_variable not in {None, *os.environ}:
        preset = endpoint.preset
        where = f" (a key: {preset.keys_url})" if preset and preset.keys_url else ""
        output.say(
            f"The key is not stored. Set it where uwf runs: export {endpoint.key_variable}=…{where}"
        )
    return 0


def _from_environment() -> Choice | None:
    """What OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL say, if they say anything."""
    found = environment_config(os.environ)
    if not found.models:
        return None
    name, _, model = found.models["default"].model.partition("/")
    provider = found.providers[name]
    settings = {"kind": "openai", "base_url": provider.base_url}
    if provider.api_key:
        settings["api_key"] = provider.api_key
    endpoint = Endpoint(
        name=name,
        base_url=provider.base_url or "",
        key_variable="OPENAI_API_KEY" if provider.api_key else None,
    )
    return Choice(provider=name, settings=settings, model=model, endpoint=endpoint)
