"""What `setup` may choose, by its options as by its answers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from uwf._errors import UsageError
from uwf.commands._endpoint import Endpoint
from uwf.commands._model import model_or_default, require_local_model
from workflow_reactor import base_url_fault, shown_url
from workflow_register import PRESETS, Preset

Changes = Mapping[str, object]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is written: a provider's settings, and its model for a scene."""

    provider: str
    settings: Changes
    model: str
    endpoint: Endpoint | None = None
    """`None` where there is nothing to ask, as for the embedded model."""
    tested: bool = False


def find_preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        UsageError: there is none.
    """
    if (found := PRESETS.get(name.lower())) is not None:
        return found
    near = difflib.get_close_matches(name.lower(), PRESETS, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"no preset is called {name!r}; {guess}There are: {', '.join(PRESETS)}")


def make_endpoint(
    preset: Preset | None, base_url: str | None, provider: str | None, api_key_env: str | None
) -> Endpoint:
    """The endpoint that options or answers describe.

    Raises:
        UsageError: the base URL or the variable can't be one.
    """
    url = base_url or (preset.base_url if preset is not None else None) or ""
    if fault := base_url_fault(url):
        raise UsageError(f"--base-url {shown_url(url)} {fault}")
    if provider is not None and (not provider.strip() or "/" in provider):
        raise UsageError(f"{provider!r} can't name a provider: leave out the slash")
    # A key of the preset's own host goes to no other one, unless it is said to.
    is_its_own = preset is not None and urlsplit(url).netloc == urlsplit(preset.base_url).netloc
    usual = preset.key_variable if preset is not None and is_its_own else None
    variable = usual if api_key_env is None else api_key_env.strip().strip("${}")
    if variable and not _VARIABLE.fullmatch(variable):
        raise UsageError(
            "--api-key-env takes the name of an environment variable, such as MY_KEY, "
            "and not the key itself"
        )
    name = provider or (preset.name if preset is not None else _name_of_host(url))
    return Endpoint(name=name, base_url=url, key_variable=variable or None, preset=preset)


def endpoint_choice(endpoint: Endpoint, model: str, *, tested: bool = False) -> Choice:
    """The choice of a model of an endpoint."""
    # An endpoint of the same name may have had another key: it must not go to this URL.
    key = f"${{{endpoint.key_variable}}}" if endpoint.key_variable else None
    settings = {"kind": "openai", "base_url": endpoint.base_url, "api_key": key}
    return Choice(
        provider=endpoint.name, settings=settings, model=model, endpoint=endpoint, tested=tested
    )


def embedded_choice(name: str | None) -> Choice:
    """The choice of an embedded model, of the recommended one without a name."""
    require_local_model()
    return Choice(
        provider="local",
        settings={"kind": "local", "base_url": None, "api_key": None},
        model=model_or_default(name or None).name,
    )


def _name_of_host(base_url: str) -> str:
    where = urlsplit(base_url).netloc.lower()
    known = (each for each in PRESETS.values() if each.base_url and not each.is_local)
    for each in known:
        if where == urlsplit(each.base_url).netloc:
            return each.name
    return re.sub(r"[^a-z0-9]+", "-", where).strip("-")
