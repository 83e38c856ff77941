"""The whole command line, put together from its groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from uwf.arguments._command_parser import CommandParser
from uwf.arguments._group import EXIT_CODES, CommandGroup, add_common_options
from uwf.arguments._init import add_init_command
from uwf.arguments._memory import add_memory_commands
from uwf.arguments._model import add_model_commands
from uwf.arguments._run import add_run_command
from uwf.arguments._setup import add_completion_command, add_doctor_command, add_setup_commands
from uwf.arguments._store import add_store_commands
from uwf.arguments._thread import add_show_command, add_thread_commands
from uwf.arguments._workflow import add_workflow_commands


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line: `command` is `module:function`, the rest its arguments by name."""
    return make_parser().parse_args(
        argv, argparse.Namespace(json=False, home=None, traceback=False)
    )


_EPILOG = f"Each command has its own help and an example: uwf run --help\n\n{EXIT_CODES}"


def make_parser() -> CommandParser:
    """Make the parser of all commands, in the order in which help lists them."""
    parser = CommandParser(
        prog="uwf",
        description="Run role-based agent workflows. Each step is typed and stored.",
        epilog=_EPILOG,
    )
    add_common_options(parser)
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    add = CommandGroup(parser)
    add_setup_commands(add)
    add_init_command(add)
    add_workflow_commands(add)
    add_run_command(add)
    add_show_command(add)
    add_thread_commands(add)
    add_memory_commands(add)
    add_store_commands(add)
    add_doctor_command(add)
    add_model_commands(add)
    add_completion_command(add)
    return parser


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not at each start."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print it and exit."""
        from importlib.metadata import version

        print(f"uwf {version('uwf')}")
        parser.exit()
