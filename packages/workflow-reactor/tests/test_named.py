"""Models that are known by a name."""

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from workflow_reactor import (
    LlmProvider,
    ModelNameError,
    NamedLlm,
    create_llm_fn,
    model_of,
    named_llm,
    noting_models,
)

ALONE = """
import importlib.metadata
importlib.metadata.entry_points = lambda **group: []
import anyio
from workflow_reactor import named_llm

async def main():
    async with named_llm("p/m").session():
        pass

anyio.run(main)
"""
BROKEN = ALONE.replace(
    "lambda **group: []",
    "lambda **group: [importlib.metadata.EntryPoint('x', 'workflow_absent:find', 'g')]",
)


def test_a_name_is_looked_up_by_nobody_before_a_session(tmp_path: Path) -> None:
    with noting_models() as models:
        model = named_llm("no such provider/model")
    named_llm("not noted")

    assert models == [model]
    assert repr(model) == "named_llm('no such provider/model')"


def test_a_provider_a_model_and_a_name_do_for_a_model() -> None:
    provider = LlmProvider(base_url="http://127.0.0.1:9/v1", model="m")
    model = create_llm_fn(provider)

    assert isinstance(model_of("a/b"), NamedLlm)
    assert model_of(model) is model
    assert type(model_of(provider)) is type(model)
    with pytest.raises(ModelNameError, match="a model's name is empty"):
        model_of(" ")
    with pytest.raises(ModelNameError, match="a model is of type NoneType; use a name such as"):
        model_of(cast("Any", None))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ALONE, "no installed package finds models by name; install workflow-register, or give an"),
        (BROKEN, "'workflow_absent:find', which finds models by name, can't be imported: No mod"),
    ],
)
def test_a_name_that_nothing_can_resolve_is_one_clear_error(code: str, message: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert f"workflow_reactor._errors.ModelNameError: {message}" in done.stderr
