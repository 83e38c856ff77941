from pathlib import Path

import pytest

from workflow_register import bundles_path, config_path, find_home, store_path


def test_the_home_is_the_variable_or_a_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UWF_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert find_home() == Path("/home/ada/.uwf")

    monkeypatch.setenv("UWF_HOME", "~/elsewhere")
    assert find_home() == Path("/home/ada/elsewhere")

    monkeypatch.setenv("UWF_HOME", "here")
    assert find_home() == Path.cwd() / "here"


def test_a_home_holds_the_configuration_the_store_and_the_bundles() -> None:
    home = Path("/h")
    assert config_path(home) == Path("/h/workflow.yaml")
    assert store_path(home) == Path("/h/store.sqlite3")
    assert bundles_path(home) == Path("/h/bundles")
