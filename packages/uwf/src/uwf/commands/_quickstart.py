"""`quickstart`: the real commands, one after the other, printed as they run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from uwf import examples
from uwf._errors import Failed
from uwf.commands._model import model_or_default, require_local_model
from uwf.commands._setup import is_configured
from uwf.terminal._output import Output, size
from workflow_register import build_bundle, bundles_path, effective_config, find_home, resolve_model

NAME = "repo-facts"
PROMPT = "What is this project? Find its language, entry point and test command."


def quickstart(output: Output, *, workspace: Path | None, assume_yes: bool) -> int:
    """Set up a model if there is none, then bundle, add, run and show an example."""
    from uwf._main import run_command  # which has called this

    run = _CommandRunner(output, run_command)
    if not is_configured():
        run("setup", "--local")
    _pull_if_absent(output, run, assume_yes=assume_yes)
    entry = Path(examples.__file__).with_name("repo_facts.py")
    run("bundle", _relative_path(entry))
    bundle = bundles_path(find_home()) / f"{build_bundle(entry).hash}.zip"
    run("add", NAME, _relative_path(bundle))
    run("run", NAME, PROMPT, *(["--workspace", str(workspace)] if workspace else []))
    run("show", "latest")
    output.say(
        "\nNext: copy the example and change it, or read the docs/ folder of the repository."
    )
    return 0


class _CommandRunner:
    """Prints a command as one would type it, runs it, and stops at the first that fails."""

    def __init__(self, output: Output, main: Callable[[Sequence[str]], int]) -> None:
        self._output = output
        self._main = main

    def __call__(self, *words: str) -> None:
        self._output.say(f"\n$ uwf {shlex.join(words)}")
        code = self._main([*words, "--json"] if self._output.json else words)
        if code != 0:
            raise Failed(code)  # the command has said why


def _pull_if_absent(output: Output, run: _CommandRunner, *, assume_yes: bool) -> None:
    """Fetch the weights where the default model is an embedded one."""
    model = resolve_model(effective_config(find_home()))
    if model.kind != "local":
        return
    require_local_model()
    from workflow_local_model import default_cache, is_present

    found = model_or_default(model.model)
    if is_present(found, default_cache()):
        return
    asks = sys.stdin is not None and sys.stdin.isatty() and not assume_yes
    if asks and not _confirm_download(output, found.size_bytes):
        raise Failed(
            1,
            "nothing was downloaded; for another model run `uwf setup --base-url URL --model M`",
        )
    run("model", "pull", found.name)


def _confirm_download(output: Output, size_bytes: int) -> bool:
    output.say(f"There is no model yet. Download the embedded one, {size(size_bytes)}? [Y/n]")
    reply = sys.stdin.buffer.readline()  # the end of input, which agrees to nothing, has no line
    return reply != b"" and reply.strip().lower() in {b"", b"y", b"yes"}


def _relative_path(path: Path) -> str:
    """The path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
