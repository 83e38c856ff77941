"""From what a YAML file holds to a `Config`, or to everything that is wrong with it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import pydantic

from workflow_reactor import HIDDEN, base_url_fault
from workflow_register._nearest import nearest, suggest
from workflow_register.config._config import (
    DEFAULT_SCENE,
    OPENAI_KIND,
    REFERENCE,
    Config,
    Limits,
    McpServerConfig,
    ModelConfig,
    ModelPrice,
    ProfileOverrides,
    ProviderConfig,
    SupervisorConfig,
)

Place = tuple[str | int, ...]
Tree = dict[str, Any]

_PROVIDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_PLAIN_WORD = re.compile(r"[a-z_]{1,30}|\d{1,4}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")

_adapter = pydantic.TypeAdapter(Config)


class Misfit(NamedTuple):
    """A fault before it is known in which file and line it is."""

    place: Place
    message: str


def check_config(tree: Tree) -> Config | list[Misfit]:
    """Read a configuration from plain data; `None` for a known key is as if it weren't there."""
    present = _without_unset_keys(tree)
    misfits: list[Misfit] = []
    config: Config | None = None
    try:
        config = _adapter.validate_python(_with_models_written_out(present))
    except pydantic.ValidationError as error:
        misfits += [
            _misfit(each["type"], _as_written(each["loc"], present), each["msg"])
            for each in error.errors()
        ]
    misfits += _provider_misfits(_mapping(present.get("providers")))
    models, providers = _mapping(present.get("models")), _mapping(present.get("providers"))
    misfits += _model_misfits(models, providers)
    misfits += _supervisor_misfits(_mapping(present.get("supervisor")), models, providers)
    misfits += _mcp_misfits(_mapping(present.get("mcp")))
    if config is None or misfits:
        return list(dict.fromkeys(misfits))
    return config


def _fields_at(place: Place) -> Mapping[str, dataclasses.Field[Any]]:
    """The fields that may stand at a place; none where keys are free."""
    match place:
        case ():
            owner = Config
        case ("providers", _):
            owner = ProviderConfig
        case ("providers", _, "profile"):
            owner = ProfileOverrides
        case ("models", _):
            owner = ModelConfig
        case ("limits",):
            owner = Limits
        case ("limits", "prices", _):
            owner = ModelPrice
        case ("supervisor",):
            owner = SupervisorConfig
        case ("mcp", _):
            owner = McpServerConfig
        case _:
            return {}
    return {field.name: field for field in dataclasses.fields(owner)}


def _with_models_written_out(tree: Tree) -> Tree:
    """The same with a mapping for each scene whose model is just named."""
    if not isinstance(tree.get("models"), dict):
        return tree
    written: Tree = {
        scene: value if isinstance(value, dict) else {"model": value}
        for scene, value in _mapping(tree["models"]).items()
    }
    return {**tree, "models": written}


def _as_written(place: Place, tree: Tree) -> Place:
    """A place of what was written out as it is in the file."""
    if place[:1] != ("models",) or place[2:] != ("model",):
        return place
    entry = _mapping(tree.get("models")).get(str(place[1]))
    return place if isinstance(entry, dict) else place[:2]


def shown_place(place: Place) -> str:
    """A place for people. A key of the file that is no known one may be a secret: it is `…`."""
    shown: list[str] = []
    for depth, part in enumerate(place):
        known, name = _fields_at(place[:depth]), str(part)
        is_name = not known or name in known or bool(nearest(name, known))
        shown.append(name if is_name or _PLAIN_WORD.fullmatch(name) else HIDDEN)
    return ".".join(shown)


def _without_unset_keys(tree: Tree, place: Place = ()) -> Tree:
    """Drop the known keys that have no value, as a file has them whose lines are commented out."""
    fields = _fields_at(place)
    present: Tree = {}
    for key, value in tree.items():
        here = (*place, key)
        if value is None and (place == ("models",) or key in fields):
            continue
        if value is None and place == ("providers",):
            value = cast("Tree", {})
        if isinstance(value, dict) and here[-1] != "extra_body":
            value = _without_unset_keys(cast("Tree", value), here)
        present[key] = value
    return present


def _misfit(kind: str, place: Place, message: str) -> Misfit:
    if kind == "unexpected_keyword_argument":
        known = _fields_at(place[:-1])
        return Misfit(place, f"unknown key; {suggest(str(place[-1]), known)}")
    if kind == "missing":
        message = "it is missing; add it"
    if kind in {"dataclass_type", "dict_type"}:
        message = "should be a mapping: indented lines of `key: value`"
    field = _fields_at(place[:-1]).get(str(place[-1])) if place else None
    purpose = f" ({field.metadata['description']})" if field is not None else ""
    return Misfit(place, message.replace("Input should", "should", 1) + purpose)


def _provider_misfits(providers: Tree) -> Iterator[Misfit]:
    for name, value in providers.items():
        place = ("providers", name)
        if not _PROVIDER_NAME.fullmatch(name):
            yield Misfit(place, "a provider's name has letters, digits, '.', '_' and '-' only")
        if not isinstance(value, dict):
            continue
        provider = cast("Tree", value)
        kind = provider.get("kind", OPENAI_KIND)
        if not isinstance(kind, str):
            continue
        check = _endpoint_misfits if kind == OPENAI_KIND else _plugin_misfits
        for key, message in check(provider):
            yield Misfit((*place, *key.split(".")), message)


def _endpoint_misfits(provider: Tree) -> Iterator[tuple[str, str]]:
    base_url = provider.get("base_url")
    unknown = provider.keys() - _fields_at(("providers", ""))
    if base_url is None and not nearest("base_url", unknown):
        yield "base_url", "it is missing; write `base_url: https://host/v1`"
    elif isinstance(base_url, str) and (message := base_url_fault(base_url)):
        yield "base_url", message
    api_key = provider.get("api_key")
    if isinstance(api_key, str) and "$" in api_key and not REFERENCE.fullmatch(api_key):
        yield "api_key", "a reference must be the whole value, such as ${OPENAI_API_KEY}"
    yield from _header_misfits(_mapping(provider.get("headers")))


def _header_misfits(headers: Tree) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield "headers", "the name of a header has letters, digits and '-' only"
        elif isinstance(value, str) and "$" in REFERENCE.sub("", value):
            yield f"headers.{name}", "write a reference in it as ${HOST_KEY}"


def _plugin_misfits(provider: Tree) -> Iterator[tuple[str, str]]:
    for key in ("base_url", "api_key", "headers"):
        if key in provider:
            yield (
                key,
                f"a provider of kind {provider['kind']!r} finds its endpoint itself; "
                f"remove {key}, or the kind",
            )


def _model_misfits(models: Tree, providers: Tree) -> Iterator[Misfit]:
    for scene, value in models.items():
        place, named = ("models", scene), value
        if entry := _mapping(value):
            place, named = ("models", scene, "model"), entry.get("model")
        if isinstance(named, str) and (fault := _target_fault(named, scene, providers)):
            yield Misfit(place, fault)


def _supervisor_misfits(supervisor: Tree, models: Tree, providers: Tree) -> Iterator[Misfit]:
    model = supervisor.get("model", DEFAULT_SCENE)
    if not isinstance(model, str) or model == DEFAULT_SCENE or model in models:
        return
    if "/" in model:
        fault = _target_fault(model, "model", providers)
    else:
        fault = f"{model!r} is neither a scene nor PROVIDER/MODEL; {suggest(model, models)}"
    if fault:
        yield Misfit(("supervisor", "model"), fault)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _mcp_misfits(servers: Tree) -> Iterator[Misfit]:
    for name, value in servers.items():
        place = ("mcp", name)
        if not _PROVIDER_NAME.fullmatch(name):
            yield Misfit(place, "a server's name has letters, digits, '.', '_' and '-' only")
        if not isinstance(value, dict):
            continue
        server = cast("Tree", value)
        if bool(server.get("command")) == bool(server.get("url")):
            yield Misfit(place, "give either `command: [PROGRAM, …]` or `url: https://host/mcp`")
        url = server.get("url")
        if isinstance(url, str) and not url.startswith("${") and not _is_http(url):
            yield Misfit((*place, "url"), "should be an http(s) URL such as https://host/mcp")
        wrong = ("headers",) if server.get("command") else ("env", "folder")
        for key in wrong:
            if server.get(key):
                yield Misfit((*place, key), "it doesn't go with the other keys; remove it")
        for key in ("env", "headers"):
            for variable, each in _mapping(server.get(key)).items():
                if isinstance(each, str) and "${" in REFERENCE.sub("", each):
                    message = "a reference looks like ${MY_TOKEN}"
                    yield Misfit((*place, key, variable), message)


def _target_fault(target: str, key: str, providers: Tree) -> str | None:
    """What is wrong with a `provider/model` that is the value of a key."""
    provider, _, model = target.partition("/")
    if provider not in providers:
        return f"no provider is called {provider!r}; {suggest(provider, providers)}"
    if not model and _mapping(providers[provider]).get("kind", OPENAI_KIND) == OPENAI_KIND:
        return f"no model is named; write `{key}: {provider}/MODEL`"
    return None


def _mapping(value: object) -> Tree:
    return cast("Tree", value) if isinstance(value, dict) else {}
