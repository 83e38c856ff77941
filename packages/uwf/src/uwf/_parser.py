"""What the `uwf` command understands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

_EXIT_CODES = (
    "exit codes: 0 done; 1 failed; 2 wrong usage; 130 cancelled; "
    "`run` exits with the workflow's own return code"
)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line: `command` is `module:function`, the rest its arguments by name."""
    return make_parser().parse_args(argv, argparse.Namespace(json=False, home=None))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser. The options of a command are named as its function's parameters are."""
    # Their defaults are the caller's: a command's would hide what is given before it.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--json", action="store_true", help="print JSON, one value a line")
    common.add_argument(
        "--home",
        type=_folder,
        metavar="DIR",
        help="where uwf keeps its files (default: $UWF_HOME, or ~/.uwf)",
    )
    parser = argparse.ArgumentParser(
        prog="uwf",
        description="Role-based agent workflows: typed, durable and auditable.",
        epilog=_EXIT_CODES,
        parents=[common],
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _Adder(commands, common)

    sub = add("quickstart", "_quickstart:quickstart", "do everything once, on a real model")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="the folder to ask about")
    sub.add_argument(
        "--yes", dest="assume_yes", action="store_true", help="don't ask before a download"
    )

    sub = add("setup", "_setup:setup", "name the model to use, in workflow.yaml")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument("--local", nargs="?", const="", metavar="MODEL", help="the embedded model")
    kind.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint")
    sub.add_argument("--model", help="the endpoint's model")
    sub.add_argument("--provider", metavar="NAME", help="what to call the endpoint")
    sub.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable that holds the key"
    )

    sub = add("bundle", "_workflows:bundle", "put an entry script and its modules into one archive")
    sub.add_argument("entry", type=Path, help="a Python file with `run = create_workflow(…)`")
    sub.add_argument(
        "--output", dest="folder", type=Path, metavar="DIR", help="default: bundles/ of the home"
    )

    sub = add("add", "_workflows:add", "register a bundle, or an entry script, under a name")
    sub.add_argument("name", help="lower-case words joined by -")
    sub.add_argument(
        "path", type=Path, metavar="bundle", help="what `uwf bundle` made, or an entry script"
    )

    add("list", "_workflows:list_all", "list the registered workflows")

    sub = add("run", "_run:run", "run a workflow and wait for its end")
    sub.add_argument("workflow", help="a registered name, or the path of an entry script or bundle")
    sub.add_argument("prompt", help="the task; `-` reads it from standard input")
    sub.add_argument(
        "--workspace", type=Path, metavar="DIR", help="the folder to work in (default: this one)"
    )

    sub = add("show", "_show:show", "show a thread: its steps, values and cost")
    _show_arguments(sub)

    _thread_commands(
        add.group(
            "thread",
            "threads: list, show, resume, answer, pause, cancel, delete, fork, replay, request",
        )
    )
    cas = add.group("cas", "the store: verify, gc")
    cas("verify", "_cas:verify", "read all that is stored, and list what is damaged")
    sub = cas("gc", "_cas:gc", "remove what no thread and no workflow leads to any more")
    sub.add_argument("--dry-run", action="store_true", help="only say how much that is")
    sub.add_argument(
        "--older-than",
        dest="older_than_h",
        type=_hours,
        default=1.0,
        metavar="HOURS",
        help="keep what was written later than that (default: 1)",
    )

    sub = add("doctor", "_doctor:doctor", "ask a model's endpoint what it can do")
    sub.add_argument(
        "target",
        nargs="?",
        default="default",
        metavar="SCENE",
        help="a scene, a provider, or provider/model",
    )
    sub.add_argument("--write", action="store_true", help="keep the answers in workflow.yaml")
    sub.add_argument(
        "--timeout",
        dest="timeout_s",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="seconds for each question",
    )

    _model_commands(add.group("model", "the embedded models: list, pull, serve"))
    return parser


class _Adder:
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

    def group(self, name: str, help: str) -> _Adder:
        """Add a word that commands of its own follow."""
        group = self._commands.add_parser(name, help=help, description=help)
        below = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        return _Adder(below, self._common)


def _model_commands(add: _Adder) -> None:
    add("list", "_model:list_models", "list the models that can be embedded")
    pull = add("pull", "_model:pull_model", "fetch a model and verify it")
    serve = add(
        "serve", "_model:serve_model", "serve a model on this machine until it is interrupted"
    )
    for sub in (pull, serve):
        sub.add_argument("name", nargs="?", metavar="model", help="default: the recommended one")
    serve.add_argument("--port", type=_port, default=8080, help="0 picks one (default: 8080)")
    serve.add_argument(
        "--threads", type=_count, metavar="N", help="default: all processors, up to 4"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a folder")
    return Path(text)


def _seconds(text: str) -> float:
    return _number(text, "seconds above 0")


def _number(text: str, of: str, *, zero: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9 or (number == 0 and not zero):  # NaN is refused too
        raise argparse.ArgumentTypeError(f"{text!r} is no number of {of}")
    return number


def _hours(text: str) -> float:
    return _number(text, "hours from 0 on", zero=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _show_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")
    sub.add_argument("--turns", action="store_true", help="each model reply and tool result too")


def _thread_commands(add: _Adder) -> None:
    def add_for_one(name: str, command: str, help: str) -> argparse.ArgumentParser:
        sub = add(name, command, help)
        sub.add_argument("thread", help="an id, its beginning, or latest")
        return sub

    add("list", "_show:threads", "list the threads, newest first")
    _show_arguments(add("show", "_show:show", "show a thread: its steps, values and cost"))

    sub = add("resume", "_run:resume", "go on with a thread that did not complete")
    sub.add_argument("thread", nargs="?", default="latest", help="an id, its beginning, or latest")
    sub.add_argument("--fresh", action="store_true", help="begin the unfinished turn anew")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="another folder to work in")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="go on with this bundle or entry script instead"
    )

    sub = add_for_one("answer", "_thread:answer", "answer a question of a thread")
    sub.add_argument("key", nargs="?", help="which question, where there are several")
    decision = sub.add_mutually_exclusive_group(required=True)
    decision.add_argument("--approve", dest="approved", action="store_true", help="yes")
    decision.add_argument("--deny", dest="approved", action="store_false", help="no")
    sub.add_argument("--text", default="", help="what the model is told with it")

    add_for_one("pause", "_thread:pause", "suspend a running thread at once")
    add_for_one("cancel", "_thread:cancel", "end a thread as cancelled, at once")
    add_for_one("delete", "_thread:delete", "delete a thread, and all that it started, for good")

    sub = add_for_one("fork", "_thread:fork", "make a thread that shares another's first steps")
    sub.add_argument("--at-step", type=int, metavar="N", help="keep N steps (default: all)")
    sub.add_argument("--prompt", help="another task from here on")
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="another folder to work in")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="go on with this bundle or entry script instead"
    )

    add_for_one("replay", "_thread:replay", "carry a thread out again offline and compare")

    sub = add_for_one("request", "_thread:request", "print a request as it was sent to a model")
    sub.add_argument("number", type=int, help="which, the first being 1")


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not at each start."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print it and exit."""
        from importlib.metadata import version

        print(f"uwf {version('uwf')}")
        parser.exit()
