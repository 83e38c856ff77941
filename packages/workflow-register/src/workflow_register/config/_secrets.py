"""The keys that the configuration names, with their values, to look for them in what leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from workflow_register.config._config import REFERENCE, Config
from workflow_register.config._file import load_config

_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|auth|credential|cookie")


def configured_secrets(home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the values of all keys that `workflow.yaml` names, by the name of each.

    That is every environment variable that a provider or an MCP server refers to, and what is
    written out as a key or under the name of one. A variable that isn't set is left out.

    Args:
        home: where the configuration is; it need not exist.
        environment: where references lead.

    Raises:
        ConfigError: the configuration can't be read.
    """
    found: dict[str, str] = {}
    for name, text in _settings(load_config(home)):
        references = REFERENCE.findall(text)
        for each in references:
            if value := environment.get(each, "").strip():
                found[each] = value
        if text and not references and _SECRET_NAME.search(name):
            _, _, value = text.strip().rpartition(" ")  # `Bearer` is no secret
            found[name] = value
    return found


def _settings(config: Config) -> Iterator[tuple[str, str]]:
    """The settings that may refer to keys or be some, by where they are."""
    for name, provider in config.providers.items():
        yield f"providers.{name}.api_key", provider.api_key or ""
        for header, text in provider.headers.items():
            yield f"providers.{name}.headers.{header}", text
    for name, server in config.mcp.items():
        for kind, values in (("env", server.env), ("headers", server.headers)):
            for each, text in values.items():
                yield f"mcp.{name}.{kind}.{each}", text
        yield f"mcp.{name}.url", server.url or ""
