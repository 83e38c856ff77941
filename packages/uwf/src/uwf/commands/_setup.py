"""`setup`: which model to use, written to `workflow.yaml`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from uwf._errors import UsageError
from uwf.commands._model import model_or_default, require_local_model
from uwf.terminal._output import Output
from workflow_reactor import base_url_fault, shown_url
from workflow_register import (
    config_path,
    effective_config,
    environment_config,
    find_home,
    update_config,
)

Changes = Mapping[str, object]


def setup(
    output: Output,
    *,
    local: str | None,
    base_url: str | None,
    model: str | None,
    provider: str | None,
    api_key_env: str | None,
) -> int:
    """Write a provider and make its model the default. Keys are written as references only."""
    if base_url is not None:
        changes = _endpoint(base_url, model, provider, api_key_env)
    elif model or provider or api_key_env:
        raise UsageError("--model, --provider and --api-key-env need --base-url")
    elif local is not None:
        changes = _local(local)
    else:
        changes = _from_environment() or _local("")
    home = find_home()
    config = update_config(home, changes)
    default = config.models["default"]
    output.data(
        {"path": str(config_path(home)), "default": default},
        f"{config_path(home)}: models.default = {default}",
    )
    return 0


def is_configured() -> bool:
    """Whether some model is configured, in the file or in the environment."""
    return bool(effective_config(find_home()).models)


def _endpoint(
    base_url: str, model: str | None, provider: str | None, api_key_env: str | None
) -> Changes:
    if not model:
        raise UsageError("--base-url needs --model, the name of the model at the endpoint")
    if fault := base_url_fault(base_url):
        raise UsageError(f"--base-url {shown_url(base_url)} {fault}")
    where = urlsplit(base_url).netloc
    short = re.sub(r"[^a-z0-9]+", "-", where.lower()).strip("-")
    name = provider or ("openai" if where == "api.openai.com" else short)
    # An endpoint of the same name may have had another key: it must not go to this URL.
    key = f"${{{api_key_env}}}" if api_key_env else None
    settings = {"kind": "openai", "base_url": base_url, "api_key": key}
    return {"providers": {name: settings}, "models": {"default": f"{name}/{model}"}}


def _local(name: str) -> Changes:
    require_local_model()
    model = model_or_default(name or None)
    return {
        "providers": {"local": {"kind": "local", "base_url": None, "api_key": None}},
        "models": {"default": f"local/{model.name}"},
    }


def _from_environment() -> Changes | None:
    """What OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL say, if they say anything."""
    found = environment_config(os.environ)
    if not found.models:
        return None
    name, _, model = found.models["default"].partition("/")
    provider = found.providers[name]
    settings = {"kind": "openai", "base_url": provider.base_url}
    if provider.api_key:
        settings["api_key"] = provider.api_key
    return {"providers": {name: settings}, "models": {"default": f"{name}/{model}"}}
