"""`model list|pull|serve`: the embedded models."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import anyio

from uwf._errors import UsageError
from uwf._output import Output, size

if TYPE_CHECKING:
    from workflow_local_model import LocalModel, PullProgress


def local_model() -> ModuleType:
    """Import the package of the embedded models, which is an extra.

    Raises:
        UsageError: it isn't installed.
    """
    try:
        import workflow_local_model
    except ImportError as error:
        raise UsageError(
            f"the embedded model is not installed ({error}); run `uv pip install 'uwf[local]'`"
        ) from error
    return workflow_local_model


def list_models(output: Output) -> int:
    """List the catalogue, and what of it is here."""
    local_model()
    from workflow_local_model import CATALOGUE, DEFAULT_MODEL, default_cache, is_present

    cache = default_cache()
    for model in CATALOGUE.values():
        here = is_present(model, cache)
        marks = [*(["default"] if model.name == DEFAULT_MODEL else []), *(["here"] if here else [])]
        output.data(
            {
                "name": model.name,
                "bytes": model.size_bytes,
                "licence": model.licence,
                "dialect": model.dialect,
                "default": model.name == DEFAULT_MODEL,
                "present": here,
            },
            f"{model.name:<20} {size(model.size_bytes):>8}  {model.licence:<11} "
            f"{model.dialect:<7} {', '.join(marks)}".rstrip(),
        )
    return 0


def pull_model(output: Output, name: str | None) -> int:
    """Fetch a model, showing how far it is."""
    local_model()
    from workflow_local_model import default_cache, pull

    model = choose(name)
    with Bar(output, model) as bar:
        path = anyio.run(lambda: pull(model, cache=default_cache(), on_progress=bar.show))
    output.data({"name": model.name, "path": str(path)}, str(path))
    return 0


def serve_model(output: Output, name: str | None, *, port: int, threads: int | None) -> int:
    """Serve a model until Ctrl-C."""
    local_model()
    from workflow_local_model import default_cache, run_server

    model = choose(name)
    output.say(f"serving {model.name} at http://127.0.0.1:{port}/v1; Ctrl-C ends it")
    run_server(model, cache=default_cache(), port=port, threads=threads, until_eof=False)
    return 0


def choose(name: str | None) -> LocalModel:
    """The model of that name, or the default one."""
    from workflow_local_model import DEFAULT_MODEL, find_model

    return find_model(name or DEFAULT_MODEL)


class Bar:
    """Progress of a pull on standard error: a moving line on a terminal, few lines elsewhere."""

    def __init__(self, output: Output, model: LocalModel) -> None:
        self._output = output
        self._model = model
        self._live = sys.stderr.isatty()
        self._last = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live and self._last:
            print(file=sys.stderr)

    def show(self, progress: PullProgress) -> None:
        """Show one moment, if it looks different from the last."""
        share = progress.done_bytes / max(progress.total_bytes, 1)
        if progress.phase in {"waiting", "connecting"}:
            line = f"{progress.phase}: {progress.source}".rstrip(": ")
        elif self._live:
            filled = int(share * 30)
            rate = f"{progress.bytes_per_s / 1e6:.0f} MB/s"
            line = (
                f"{progress.phase} [{'#' * filled}{'.' * (30 - filled)}] "
                f"{size(progress.done_bytes)} of {size(progress.total_bytes)}, {rate}"
            )
        else:
            tenths = int(share * 10) * 10
            line = (
                f"{progress.phase} {self._model.name}: {tenths} % of {size(progress.total_bytes)}"
            )
        if line == self._last:
            return
        self._last = line
        if self._live:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        else:
            self._output.say(line)
