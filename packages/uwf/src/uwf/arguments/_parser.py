"""The whole command line, put together from its groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from uwf.arguments._group import EXIT_CODES, CommandGroup
from uwf.arguments._model import add_model_commands
from uwf.arguments._run import add_run_command
from uwf.arguments._setup import add_doctor_command, add_setup_commands
from uwf.arguments._store import add_store_commands
from uwf.arguments._thread import add_show_command, add_thread_commands
from uwf.arguments._types import folder
from uwf.arguments._workflow import add_workflow_commands


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line: `command` is `module:function`, the rest its arguments by name."""
    return make_parser().parse_args(
        argv, argparse.Namespace(json=False, home=None, traceback=False)
    )


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands, in the order in which help lists them."""
    common = _common_options()
    parser = argparse.ArgumentParser(
        prog="uwf",
        description="Run role-based agent workflows. Each step is typed and stored.",
        epilog=EXIT_CODES,
        parents=[common],
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = CommandGroup(commands, common)
    add_setup_commands(add)
    add_workflow_commands(add)
    add_run_command(add)
    add_show_command(add)
    add_thread_commands(add)
    add_store_commands(add)
    add_doctor_command(add)
    add_model_commands(add)
    return parser


def _common_options() -> argparse.ArgumentParser:
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
        type=folder,
        metavar="DIR",
        help="the folder for the files of uwf (default: $UWF_HOME, or ~/.uwf)",
    )
    return common


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not at each start."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print it and exit."""
        from importlib.metadata import version

        print(f"uwf {version('uwf')}")
        parser.exit()
