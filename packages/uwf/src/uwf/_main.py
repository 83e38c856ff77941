"""The `uwf` command: what it understands, and how errors leave it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from uwf._errors import Failed, UsageError
from uwf._output import Output
from workflow_protocol import WorkflowError

Command = Callable[[argparse.Namespace, Output], int]

_EXIT_CODES = (
    "exit codes: 0 done; 1 failed; 2 wrong usage; 130 cancelled; "
    "`run` exits with the workflow's own return code"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = _parser().parse_args(argv)
    output = Output(json=arguments.json)
    if arguments.home is not None:
        os.environ["UWF_HOME"] = str(arguments.home.absolute())
    command: Command = arguments.command
    try:
        return command(arguments, output)
    except Failed as error:
        if str(error):
            _report(output, error)
        return error.code
    except UsageError as error:
        _report(output, error)
        return 2
    except BrokenPipeError:
        # The reader has gone, as in `uwf show | head`. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (WorkflowError, OSError) as error:
        _report(output, error)
        return 1
    except KeyboardInterrupt:
        output.say("uwf: cancelled")
        return 130


def _report(output: Output, error: Exception) -> None:
    message = str(error) or type(error).__name__
    output.record({"error": {"type": type(error).__name__, "message": message}})
    output.say(f"uwf: {message}")


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON, one value a line")
    common.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        help="where uwf keeps its files (default: $UWF_HOME, or ~/.uwf)",
    )
    parser = argparse.ArgumentParser(
        prog="uwf",
        description="Role-based agent workflows: typed, durable and auditable.",
        epilog=_EXIT_CODES,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Command, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, parents=[common], help=help, description=help, epilog=_EXIT_CODES
        )
        sub.set_defaults(command=command)
        return sub

    sub = add("quickstart", _quickstart, "do everything once, on a real model")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="the folder to ask about")
    sub.add_argument("--yes", action="store_true", help="don't ask before a download")

    sub = add("setup", _setup, "name the model to use, in workflow.yaml")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--local", nargs="?", const="", metavar="MODEL", help="the embedded model")
    kind.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint")
    sub.add_argument("--model", help="the endpoint's model")
    sub.add_argument("--provider", metavar="NAME", help="what to call the endpoint")
    sub.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the key"
    )

    sub = add("bundle", _bundle, "put an entry script and its modules into one archive")
    sub.add_argument("entry", type=Path, help="a Python file with `run = create_workflow(…)`")
    sub.add_argument("--output", type=Path, metavar="DIR", help="default: bundles/ of the home")

    sub = add("add", _add, "register a bundle, or an entry script, under a name")
    sub.add_argument("name", help="lower-case words joined by -")
    sub.add_argument("bundle", type=Path, help="what `uwf bundle` made, or an entry script")

    add("list", _list, "list the registered workflows")

    sub = add("run", _run, "run a workflow and wait for its end")
    sub.add_argument("workflow", help="a registered name, or the path of an entry script or bundle")
    sub.add_argument("prompt", help="the task; `-` reads it from standard input")
    sub.add_argument(
        "--workspace", type=Path, metavar="DIR", help="the folder to work in (default: this one)"
    )

    sub = add("show", _show, "show a thread: its steps, values and cost")
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")
    sub.add_argument("--turns", action="store_true", help="each model reply and tool result too")

    add("threads", _threads, "list the threads, newest first")

    sub = add("resume", _resume, "go on with a thread that was interrupted, failed or cancelled")
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")

    model = commands.add_parser("model", help="the embedded models: list, pull, serve")
    models = model.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command, help in (
        ("list", _model_list, "list the models that can be embedded"),
        ("pull", _model_pull, "fetch a model and verify it"),
        ("serve", _model_serve, "serve a model on this machine until it is interrupted"),
    ):
        sub = models.add_parser(name, parents=[common], help=help, description=help)
        sub.set_defaults(command=command)
        if name != "list":
            sub.add_argument("model", nargs="?", help="default: the recommended one")
        if name == "serve":
            sub.add_argument("--port", type=int, default=8080)
            sub.add_argument("--threads", type=int)
    return parser


# Each command's module is imported when it runs: `uwf --help` needs none of them.


def _quickstart(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._quickstart import quickstart

    return quickstart(output, main, workspace=arguments.workspace, assume_yes=arguments.yes)


def _setup(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._setup import setup

    return setup(
        output,
        local=arguments.local,
        base_url=arguments.base_url,
        model=arguments.model,
        provider=arguments.provider,
        api_key_env=arguments.api_key_env,
    )


def _bundle(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._workflows import bundle

    return bundle(output, arguments.entry, arguments.output)


def _add(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._workflows import add

    return add(output, arguments.name, arguments.bundle)


def _list(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._workflows import list_all

    return list_all(output)


def _run(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._run import run

    return run(output, arguments.workflow, arguments.prompt, arguments.workspace)


def _resume(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._run import resume

    return resume(output, arguments.thread)


def _show(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._show import show

    return show(output, arguments.thread, turns=arguments.turns)


def _threads(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._show import threads

    return threads(output)


def _model_list(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import list_models

    return list_models(output)


def _model_pull(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import pull_model

    return pull_model(output, arguments.model)


def _model_serve(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import serve_model

    return serve_model(output, arguments.model, port=arguments.port, threads=arguments.threads)
