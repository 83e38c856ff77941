"""The keys that a configuration names are known, wherever they stand in it."""

from pathlib import Path

import pytest

from workflow_register import ConfigError, configured_secrets

CONFIG = """
providers:
  one: {kind: openai, base_url: "https://one.example/v1", api_key: "${ONE}"}
  two:
    base_url: https://two.example/v1
    headers: {X-Project: plain, Authorization: "Bearer ${TWO}", X-Api-Key: "written out"}
  three: {base_url: "https://three.example/v1", api_key: "${UNSET}"}
models: {default: one/m}
mcp:
  git: {command: [git-mcp], env: {MY_TOKEN: "${FOUR}", LEVEL: debug}}
  web: {url: "https://mcp.example/${FIVE}", headers: {Authorization: "Bearer clear-text"}}
"""


def test_every_key_that_is_named_is_given_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(CONFIG, encoding="utf-8")
    environment = {"ONE": "k1", "TWO": "k2", "FOUR": "k4 ", "FIVE": "k5", "OTHER": "x", "UNSET": ""}
    assert configured_secrets(tmp_path, environment) == {
        "ONE": "k1",
        "TWO": "k2",
        "FOUR": "k4",
        "FIVE": "k5",
        "providers.two.headers.X-Api-Key": "out",
        "mcp.web.headers.Authorization": "clear-text",
    }


def test_without_a_configuration_there_are_none_and_a_broken_one_is_told(tmp_path: Path) -> None:
    assert configured_secrets(tmp_path) == {}
    (tmp_path / "workflow.yaml").write_text("providers: [", encoding="utf-8")
    with pytest.raises(ConfigError):
        configured_secrets(tmp_path)
