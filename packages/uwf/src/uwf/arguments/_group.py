"""Commands and groups of commands, all of them with the common options."""

from __future__ import annotations

import argparse

from uwf.arguments._command_parser import CommandParser
from uwf.arguments._types import folder

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the thread waits for a person or a limit, "
    "130 cancelled, 141 the reader of the output has gone. "
    "`run` and `thread resume` exit with the return code of a workflow that completed."
)


class CommandGroup:
    """Adds commands below a parser. Options are named as the parameters of their functions are."""

    def __init__(self, parser: CommandParser) -> None:
        self._parser = parser
        self._commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def __call__(
        self, name: str, command: str, help: str, *, example: str, exit_codes: bool = False
    ) -> CommandParser:
        """Add one that `module:function` of `uwf.commands` carries out.

        Args:
            name: the word for it.
            command: what carries it out.
            help: what it does, in one line.
            example: the arguments of a typical use, as they are typed after the command.
            exit_codes: whether its help lists the exit codes.
        """
        sub = self._add(name, help)
        add_common_options(sub)
        codes = f"{EXIT_CODES}\n\n" if exit_codes else ""
        sub.epilog = f"{codes}Example:\n  {sub.prog} {example}".rstrip()
        sub.set_defaults(command=command)
        return sub

    def group(self, name: str, help: str) -> CommandGroup:
        """Add a word that commands of its own follow."""
        return CommandGroup(self._add(name, help))

    def _add(self, name: str, help: str) -> CommandParser:
        sub = self._commands.add_parser(name, help=help, description=help)
        self._parser.subcommands[name] = sub
        return sub


def add_common_options(parser: CommandParser) -> None:
    """Add what may stand before a command and after it."""
    # Without defaults: a command's would hide what is given before it.
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print JSON, one value per line",
    )
    parser.add_argument(
        "--traceback",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the whole traceback of what failed (also with UWF_TRACEBACK=1)",
    )
    parser.add_argument(
        "--home",
        type=folder,
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="the folder for the files of uwf (default: $UWF_HOME, or ~/.uwf)",
    )
