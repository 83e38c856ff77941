"""The `uwf` command: what it understands, and how errors leave it."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from uwf._errors import Failed, UsageError
from uwf._output import Output
from workflow_protocol import WorkflowError

Command = Callable[[argparse.Namespace, Output], int]

_EXIT_CODES = (
    "exit codes: 0 done; 1 failed; 2 wrong usage; 130 cancelled; "
    "`run` exits with the workflow's own return code"
)


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Ctrl-C, SIGTERM and SIGHUP raise on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal can't show is escaped
            stream.reconfigure(errors="backslashreplace")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGHUP, _interrupt)
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


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let a polite end be the same as Ctrl-C, whatever handles that just now."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(number, frame)


def _report(output: Output, error: Exception) -> None:
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
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
    _show_arguments(sub)

    help = "threads: list, show, resume, answer, pause, cancel, fork, replay, request"
    _thread_commands(commands.add_parser("thread", help=help, description=help), common)

    sub = add("doctor", _doctor, "ask a model's endpoint what it can do")
    sub.add_argument(
        "target", nargs="?", default="default", metavar="SCENE", help="a scene, or a provider"
    )
    sub.add_argument("--write", action="store_true", help="keep the answers in workflow.yaml")
    sub.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds for each question"
    )

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
            sub.add_argument("--port", type=_port, default=8080, help="0 picks one (default: 8080)")
            sub.add_argument(
                "--threads", type=_count, metavar="N", help="default: all processors, up to 4"
            )
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _show_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")
    sub.add_argument("--turns", action="store_true", help="each model reply and tool result too")


def _thread_commands(group: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    threads = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, command: Command, help: str, *, names_one: bool = False
    ) -> argparse.ArgumentParser:
        sub = threads.add_parser(
            name, parents=[common], help=help, description=help, epilog=_EXIT_CODES
        )
        sub.set_defaults(command=command)
        if names_one:
            sub.add_argument("thread", help="an id, its beginning, or latest")
        return sub

    add("list", _thread_list, "list the threads, newest first")
    _show_arguments(add("show", _show, "show a thread: its steps, values and cost"))

    sub = add("resume", _thread_resume, "go on with a thread that did not complete")
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")
    sub.add_argument("--fresh", action="store_true", help="begin the unfinished turn anew")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="go on with this bundle or entry script instead"
    )

    sub = add("answer", _thread_answer, "answer a question of a thread", names_one=True)
    sub.add_argument("key", nargs="?", help="which question, where there are several")
    decision = sub.add_mutually_exclusive_group(required=True)
    decision.add_argument("--approve", dest="approved", action="store_true", help="yes")
    decision.add_argument("--deny", dest="approved", action="store_false", help="no")
    sub.add_argument("--text", default="", help="what the model is told with it")

    add("pause", _thread_pause, "suspend a running thread at once", names_one=True)
    add("cancel", _thread_cancel, "end a thread as cancelled, at once", names_one=True)

    sub = add(
        "fork", _thread_fork, "make a thread that shares another's first steps", names_one=True
    )
    sub.add_argument("--at-step", type=int, metavar="N", help="keep N steps (default: all)")
    sub.add_argument("--prompt", help="another task from here on")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="another folder to work in")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="go on with this bundle or entry script instead"
    )

    add("replay", _thread_replay, "carry a thread out again offline and compare", names_one=True)

    sub = add(
        "request", _thread_request, "print a request as it was sent to a model", names_one=True
    )
    sub.add_argument("number", type=int, help="which, the first being 1")


# Each command's module is imported when it runs: `uwf --help` needs none of them.


def _quickstart(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._quickstart import quickstart

    return quickstart(output, run_command, workspace=arguments.workspace, assume_yes=arguments.yes)


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


def _thread_resume(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._run import resume

    return resume(output, arguments.thread, fresh=arguments.fresh, bundle=arguments.bundle)


def _show(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._show import show

    return show(output, arguments.thread, turns=arguments.turns)


def _thread_list(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._show import threads

    return threads(output)


def _thread_answer(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import answer

    return answer(
        output,
        arguments.thread,
        arguments.key,
        approved=arguments.approved,
        text=arguments.text,
    )


def _thread_pause(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import pause

    return pause(output, arguments.thread)


def _thread_cancel(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import cancel

    return cancel(output, arguments.thread)


def _thread_fork(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import fork

    return fork(
        output,
        arguments.thread,
        at_step=arguments.at_step,
        prompt=arguments.prompt,
        workspace=arguments.workspace,
        bundle=arguments.bundle,
    )


def _thread_replay(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import replay

    return replay(output, arguments.thread)


def _thread_request(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._thread import request

    return request(output, arguments.thread, arguments.number)


def _doctor(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._doctor import doctor

    return doctor(output, arguments.target, write=arguments.write, timeout_s=arguments.timeout)


def _model_list(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import list_models

    return list_models(output)


def _model_pull(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import pull_model

    return pull_model(output, arguments.model)


def _model_serve(arguments: argparse.Namespace, output: Output) -> int:
    from uwf._model import serve_model

    return serve_model(output, arguments.model, port=arguments.port, threads=arguments.threads)
