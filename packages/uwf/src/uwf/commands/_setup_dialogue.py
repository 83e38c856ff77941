"""The questions of `setup`. Nothing is written before the last one is answered."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from uwf._errors import Failed, UsageError
from uwf.commands._endpoint import Endpoint, meaning_of, models_of, try_model
from uwf.commands._model import model_or_default, require_local_model
from uwf.commands._setup_choice import (
    Choice,
    embedded_choice,
    endpoint_choice,
    find_preset,
    make_endpoint,
)
from uwf.terminal._output import Output, size
from uwf.terminal._prompt import ask_line, ask_secret, ask_until, ask_yes
from uwf.terminal._style import Styled
from workflow_protocol import WorkflowError
from workflow_reactor import ProviderError, Secret, base_url_fault
from workflow_register import PRESETS, Preset

MAX_SHOWN = 20
OTHER = "other"


def choose_all(output: Output, *, test: bool | None) -> Choice:
    """Ask where the models are, then for a key and a model, and try it."""
    output.say([Styled("Where are the models?", "strong"), " Ctrl-C leaves everything as it is."])
    names = [*PRESETS, OTHER]
    for number, name in enumerate(names, 1):
        output.say([f"{number:>4}  ", Styled(f"{name:<11}", "name"), _about(PRESETS.get(name))])
    name = ask_until(output, "Number or name: ", lambda line: _one_of(line, names, "place"))
    if name == "local":
        return _choose_embedded(output)
    preset = PRESETS.get(name)
    endpoint = make_endpoint(preset, _ask_base_url(output, preset), None, None)
    if preset is None:
        variable = ask_until(
            output, "Environment variable of its key (Enter if it needs none): ", _variable
        )
        endpoint = msgspec.structs.replace(endpoint, key_variable=variable or None)
    return choose_key_and_model(output, endpoint, test=test)


def choose_key_and_model(output: Output, endpoint: Endpoint, *, test: bool | None) -> Choice:
    """Ask for what an endpoint lacks yet, and try the model unless `test` is false."""
    endpoint = _with_key(output, endpoint)
    model = _ask_model(output, endpoint)
    while True:
        if test is False or endpoint.lacks_key:
            return endpoint_choice(endpoint, model)
        output.say(f"Asking {model} for one word …")
        error = try_model(endpoint, model)
        if error is None:
            output.say([Styled("ok", "good"), ": it replies"])
            return endpoint_choice(endpoint, model, tested=True)
        output.say([Styled(meaning_of(error, endpoint), "bad"), f"\n  {error}"])
        match ask_until(output, "m: another model, k: another key, w: write it all the same, "
                                "q: quit: ", _next_step):  # fmt: skip
            case "w":
                return endpoint_choice(endpoint, model)
            case "q":
                raise Failed(1, "nothing was written")
            case "k":
                endpoint = _with_key(output, endpoint, again=True)
            case _:
                model = _ask_model(output, endpoint)


def _about(preset: Preset | None) -> str:
    if preset is None:
        return "another OpenAI-compatible endpoint"
    is_set = bool(preset.key_variable and os.environ.get(preset.key_variable, "").strip())
    return preset.title + (f" ({preset.key_variable} is set)" if is_set else "")


def _ask_base_url(output: Output, preset: Preset | None) -> str | None:
    """The base URL, where it isn't always the same."""
    if preset is not None and not preset.is_local:
        return None
    usual = preset.base_url if preset is not None else None

    def read(line: str) -> str:
        url = line or usual or ""
        if fault := base_url_fault(url):
            raise ValueError(f"it {fault}")
        return url

    hint = f" (Enter: {usual})" if usual else ", such as https://host/v1"
    return ask_until(output, f"Base URL{hint}: ", read)


def _with_key(output: Output, endpoint: Endpoint, *, again: bool = False) -> Endpoint:
    """Let a key be typed for the questions to the endpoint, where its variable is not set."""
    variable = endpoint.key_variable
    if again and variable is None:
        variable = ask_until(output, "Environment variable of its key: ", _variable) or None
        endpoint = msgspec.structs.replace(endpoint, key_variable=variable)
    if variable is None or not (again or endpoint.lacks_key):
        return endpoint
    preset = endpoint.preset
    where = f" Get one at {preset.keys_url}." if preset and preset.keys_url else ""
    if not again:
        output.say(f"The environment variable {variable} is not set.{where}")
    output.say("A key typed here is used for this setup only: it is neither shown nor stored.")
    key = ask_secret("Key (Enter goes on without): ")
    return msgspec.structs.replace(endpoint, typed_key=Secret(key)) if key else endpoint


def _ask_model(output: Output, endpoint: Endpoint) -> str:
    try:
        models = models_of(endpoint)
    except WorkflowError as error:
        has_none = isinstance(error, ProviderError) and error.status in {200, 404, 405, 501}
        words = "it gives no list of its models" if has_none else meaning_of(error, endpoint)
        output.say([Styled(words, "warn"), f"\n  {error}"])
        models = []
    else:
        output.say(f"{endpoint.place} has {len(models) or 'no'} models.")
    if not models:
        return ask_until(output, "Name of the model: ", _not_empty)
    return _pick_model(output, models)


def _pick_model(output: Output, models: Sequence[str]) -> str:
    shown = models
    while True:
        for number, name in enumerate(shown[:MAX_SHOWN], 1):
            output.say([f"{number:>4}  ", Styled(name, "name")])
        if len(shown) > MAX_SHOWN:
            output.say(f"      … {len(shown) - MAX_SHOWN} more; type a part of the name")
        line = ask_line("Model (number, name or a part of it): ")
        if line in models:
            return line
        if line.isascii() and line.isdecimal() and 1 <= int(line) <= len(shown[:MAX_SHOWN]):
            return shown[int(line) - 1]
        found = [name for name in models if line.lower() in name.lower()]
        if len(found) == 1:
            output.say(f"  {found[0]}")
            return found[0]
        if found:
            shown = found
        elif ask_yes(f"  No model in the list is called like that. Use {line!r}?", default=False):
            return line


def _choose_embedded(output: Output) -> Choice:
    require_local_model()
    from workflow_local_model import CATALOGUE, DEFAULT_MODEL, default_cache, is_present

    names = list(CATALOGUE)
    for number, model in enumerate(CATALOGUE.values(), 1):
        marks = ["default"] if model.name == DEFAULT_MODEL else []
        marks += ["is here"] if is_present(model, default_cache()) else []
        about = ", ".join([size(model.size_bytes), *marks])
        output.say([f"{number:>4}  ", Styled(f"{model.name:<20}", "name"), about])
    name = ask_until(
        output,
        f"Number or name (Enter: {DEFAULT_MODEL}): ",
        lambda line: _one_of(line or DEFAULT_MODEL, names, "model"),
    )
    if not is_present(model_or_default(name), default_cache()):
        output.say(f"To download it: uwf model pull {name}")
    return embedded_choice(name)


def _one_of(line: str, names: Sequence[str], what: str) -> str:
    """The name that a number or a word stands for.

    Raises:
        ValueError: none.
    """
    if line.isascii() and line.isdecimal() and 1 <= int(line) <= len(names):
        return names[int(line) - 1]
    if line.lower() in names:
        return line.lower()
    if what == "place" and line and not line.isdecimal():
        try:
            find_preset(line)
        except UsageError as error:
            raise ValueError(str(error)) from None
    raise ValueError(f"type a number from 1 to {len(names)}, or a name of the list")


def _variable(line: str) -> str:
    """The name of a variable, or nothing.

    Raises:
        ValueError: it can't be one; a key that was typed by mistake is not repeated.
    """
    name = line.strip("${}")
    if name and not (name.isidentifier() and name.isascii()):
        raise ValueError("this is not the name of a variable, such as MY_KEY")
    return name


def _not_empty(line: str) -> str:
    if not line:
        raise ValueError("the endpoint needs a name; its documentation lists them")
    return line


def _next_step(line: str) -> str:
    if line.lower() not in {"m", "k", "w", "q"}:
        raise ValueError("type m, k, w or q")
    return line.lower()
