"""What the `uwf` command understands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

_EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the thread waits for a person or a limit, "
    "130 cancelled, 141 the reader of the output has gone. "
    "`run` and `thread resume` exit with the return code of a workflow that completed."
)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line: `command` is `module:function`, the rest its arguments by name."""
    return make_parser().parse_args(
        argv, argparse.Namespace(json=False, home=None, traceback=False)
    )


def make_parser() -> argparse.ArgumentParser:
    """Make the parser. The options of a command are named as its function's parameters are."""
    # Their defaults are the caller's: a command's would hide what is given before it.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="print JSON, one value per line")
    common.add_argument(
        "--traceback",
        action="store_true",
        help="show the whole traceback of what failed (also with UWF_TRACEBACK=1)",
    )
    common.add_argument(
        "--home",
        type=_folder,
        metavar="DIR",
        help="the folder for the files of uwf (default: $UWF_HOME, or ~/.uwf)",
    )
    parser = argparse.ArgumentParser(
        prog="uwf",
        description="Run role-based agent workflows. Each step is typed and stored.",
        epilog=_EXIT_CODES,
        parents=[common],
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _CommandGroup(commands, common)

    sub = add(
        "quickstart",
        "_quickstart:quickstart",
        "try everything once: set up a model and run an example",
    )
    sub.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="the project folder that the example describes (default: this folder)",
    )
    sub.add_argument(
        "--yes", dest="assume_yes", action="store_true", help="download the model without asking"
    )

    sub = add("setup", "_setup:setup", "choose the default model and write it to workflow.yaml")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--local", nargs="?", const="", metavar="MODEL", help="use an embedded model")
    kind.add_argument("--base-url", metavar="URL", help="use an OpenAI-compatible endpoint")
    sub.add_argument("--model", help="the name of the model at the endpoint")
    sub.add_argument("--provider", metavar="NAME", help="a name for the endpoint in workflow.yaml")
    sub.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the API key"
    )

    sub = add(
        "bundle", "_workflows:bundle", "pack an entry script and its modules into one archive"
    )
    sub.add_argument("entry", type=Path, help="a Python file with `run = create_workflow(…)`")
    sub.add_argument(
        "--output",
        dest="folder",
        type=Path,
        metavar="DIR",
        help="the folder for the archive (default: bundles/ in the folder of uwf)",
    )

    sub = add("add", "_workflows:add", "register a bundle or an entry script under a name")
    sub.add_argument("name", help="the name: lower-case words, joined by -")
    sub.add_argument(
        "path", type=Path, metavar="bundle", help="an archive from `uwf bundle`, or an entry script"
    )

    add("list", "_workflows:list_all", "list the registered workflows")

    sub = add("run", "_run:run", "run a workflow until it ends")
    sub.add_argument(
        "workflow", help="a registered name, or the path of an entry script or a bundle"
    )
    sub.add_argument("prompt", help="the task. `-` reads it from standard input")
    sub.add_argument(
        "--workspace", type=Path, metavar="DIR", help="the folder to work in (default: this folder)"
    )

    sub = add("show", "_show:show", "show the steps, values and cost of a thread")
    _show_arguments(sub)

    _thread_commands(
        add.group(
            "thread",
            "work with threads: list, show, resume, answer, pause, cancel, delete, fork, replay, "
            "request",
        )
    )
    cas = add.group("cas", "check and clean the store: verify, gc")
    cas("verify", "_cas:verify", "read everything in the store and list what is damaged")
    sub = cas("gc", "_cas:gc", "delete the objects that no thread and no workflow uses")
    sub.add_argument(
        "--dry-run", action="store_true", help="delete nothing, only print how much it would be"
    )
    sub.add_argument(
        "--older-than",
        dest="older_than_h",
        type=_hours,
        default=1.0,
        metavar="HOURS",
        help="keep objects that are newer than this (default: 1)",
    )

    sub = add("doctor", "_doctor:doctor", "test what the endpoint of a model supports")
    sub.add_argument(
        "target",
        nargs="?",
        default="default",
        metavar="SCENE",
        help="a scene, a provider, or PROVIDER/MODEL (default: the default model)",
    )
    sub.add_argument("--write", action="store_true", help="write the result to workflow.yaml")
    sub.add_argument(
        "--timeout",
        dest="timeout_s",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="the limit in seconds for each test (default: 60)",
    )

    _model_commands(add.group("model", "work with embedded models: list, pull, serve"))
    return parser


class _CommandGroup:
    """Adds commands, all of them with the common options."""

    def __init__(
        self,
        commands: argparse._SubParsersAction[argparse.ArgumentParser],  # pyright: ignore[reportPrivateUsage] - argparse gives it no other name
        common: argparse.ArgumentParser,
    ) -> None:
        self._commands = commands
        self._common = common

    def __call__(self, name: str, command: str, help: str) -> argparse.ArgumentParser:
        """Add one that `module:function` carries out."""
        sub = self._commands.add_parser(
            name, parents=[self._common], help=help, description=help, epilog=_EXIT_CODES
        )
        sub.set_defaults(command=command)
        return sub

    def group(self, name: str, help: str) -> _CommandGroup:
        """Add a word that commands of its own follow."""
        group = self._commands.add_parser(name, help=help, description=help)
        below = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        return _CommandGroup(below, self._common)


def _model_commands(add: _CommandGroup) -> None:
    add("list", "_model:list_models", "list the embedded models")
    pull = add("pull", "_model:pull_model", "download a model and verify it")
    serve = add("serve", "_model:serve_model", "serve a model on this machine until Ctrl-C")
    for sub in (pull, serve):
        sub.add_argument(
            "name", nargs="?", metavar="model", help="the model (default: the recommended one)"
        )
    serve.add_argument(
        "--port", type=_port, default=8080, help="the port. 0 picks a free one (default: 8080)"
    )
    serve.add_argument(
        "--threads",
        type=_count,
        metavar="N",
        help="the number of threads (default: one per processor, at most 4)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 0 to 65535")
    return int(text)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a folder")
    return Path(text)


def _seconds(text: str) -> float:
    return _number(text, "seconds above 0")


def _number(text: str, of: str, *, zero: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9 or (number == 0 and not zero):  # NaN is refused too
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {of}")
    return number


def _hours(text: str) -> float:
    return _number(text, "hours, 0 or more", zero=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _show_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "thread",
        nargs="?",
        default="latest",
        help="the id, the first characters of the id, or `latest`",
    )
    sub.add_argument(
        "--turns", action="store_true", help="show each model reply and tool result too"
    )


def _thread_commands(add: _CommandGroup) -> None:
    def add_for_one(name: str, command: str, help: str) -> argparse.ArgumentParser:
        sub = add(name, command, help)
        sub.add_argument("thread", help="the id, the first characters of the id, or `latest`")
        return sub

    add("list", "_show:threads", "list the threads, newest first")
    _show_arguments(add("show", "_show:show", "show the steps, values and cost of a thread"))

    sub = add("resume", "_run:resume", "continue a thread that is not completed")
    sub.add_argument(
        "thread",
        nargs="?",
        default="latest",
        help="the id, the first characters of the id, or `latest`",
    )
    sub.add_argument(
        "--fresh", action="store_true", help="start the unfinished turn again from its beginning"
    )
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="continue in another folder")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="continue with another bundle or entry script"
    )

    sub = add_for_one("answer", "_thread:answer", "answer a question of a thread")
    sub.add_argument("key", nargs="?", help="the key of the question, if there are several")
    decision = sub.add_mutually_exclusive_group(required=True)
    decision.add_argument(
        "--approve", dest="approved", action="store_true", default=True, help="answer yes"
    )
    decision.add_argument("--deny", dest="approved", action="store_false", help="answer no")
    decision.add_argument(
        "--arguments",
        metavar="JSON",
        help="answer yes, and run the call with these arguments instead: one JSON object",
    )
    sub.add_argument("--text", default="", help="a text for the model, such as the reason")

    add_for_one("pause", "_thread:pause", "suspend a running thread now")
    add_for_one("cancel", "_thread:cancel", "cancel a thread now")
    sub = add_for_one("delete", "_thread:delete", "delete a thread and its child threads")
    sub.add_argument("--yes", dest="assume_yes", action="store_true", help="delete without asking")

    sub = add_for_one("fork", "_thread:fork", "copy the first steps of a thread into a new thread")
    sub.add_argument(
        "--at-step", type=int, metavar="N", help="copy the first N steps (default: all)"
    )
    sub.add_argument("--prompt", help="give the new thread another task")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="continue in another folder")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="continue with another bundle or entry script"
    )

    add_for_one(
        "replay",
        "_thread:replay",
        "run a thread again from its records, without a model, and compare",
    )

    sub = add_for_one(
        "request", "_thread:request", "print the exact bytes of a request to the model"
    )
    sub.add_argument("number", type=int, help="the number of the request; the first is 1")


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not at each start."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print it and exit."""
        from importlib.metadata import version

        print(f"uwf {version('uwf')}")
        parser.exit()
