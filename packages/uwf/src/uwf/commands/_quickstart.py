"""`quickstart`: a real job by the real commands, printed as they run, killed in the middle."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from uwf import examples
from uwf._errors import Failed, UsageError
from uwf.commands._killed_run import run_and_kill
from uwf.commands._model import model_or_default, require_local_model
from uwf.commands._setup import is_configured
from uwf.commands._small_project import FAULT, make_small_project, run_its_tests
from uwf.terminal._output import Output, size
from workflow_register import build_bundle, bundles_path, effective_config, find_home, resolve_model

NAME = "mend"


def quickstart(output: Output, *, workspace: Path | None, assume_yes: bool) -> int:
    """Let a model mend a small project, kill it in the middle, go on, and look at what was done.

    A model is set up and fetched first where there is none.
    """
    from uwf._main import run_command  # which has called this

    run = _CommandRunner(output, run_command)
    if not is_configured():
        run("setup", "--local")
    _pull_if_absent(output, run, assume_yes=assume_yes)
    project = _project(output, workspace)
    entry = Path(examples.__file__).with_name("mend.py")
    run("bundle", _relative_path(entry))
    bundle = bundles_path(find_home()) / f"{build_bundle(entry).hash}.zip"
    run("add", NAME, _relative_path(bundle))
    words = ["run", NAME, FAULT, "--workspace", str(project)]
    output.say(f"\n$ uwf {shlex.join(words)}")
    code, killed = run_and_kill(output, words, after="patch_file")
    if killed:
        output.say("\n(Its process was just killed, by SIGKILL, while the model was asked again.)")
        run("thread", "list", "--limit", "1")
        run("thread", "resume", "latest")
    elif code != 0:
        raise Failed(code)
    run("thread", "changes", "latest")
    run("show", "latest")
    run("thread", "replay", "latest")
    _run_tests(output, project)
    output.say(
        "\nNext: `uwf init NAME --template develop` writes a workflow of your own to begin with."
    )
    return 0


def _project(output: Output, folder: Path | None) -> Path:
    """Make the small project in a folder that is empty, or in a new one.

    Raises:
        UsageError: the folder that is given has something in it.
    """
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="uwf-quickstart-"))
    elif any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give an empty folder for the small project")
    kind = "a git repository" if make_small_project(folder) else "without git"
    output.say(f"\nA small project with a fault, {kind}: {folder}")
    _run_tests(output, folder)
    return folder


def _run_tests(output: Output, project: Path) -> None:
    said = run_its_tests(project)[1].splitlines()
    shown = [line for line in said if line.startswith(("FAIL", "Assertion", "Ran", "OK", "ERROR"))]
    output.say("\n".join([f"\n$ python -m unittest   # in {project}", *shown]))


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
