"""Commands and groups of commands, all of them with the common options."""

from __future__ import annotations

import argparse

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the thread waits for a person or a limit, "
    "130 cancelled, 141 the reader of the output has gone. "
    "`run` and `thread resume` exit with the return code of a workflow that completed."
)


class CommandGroup:
    """Adds commands. Their options are named as the parameters of their functions are."""

    def __init__(
        self,
        commands: argparse._SubParsersAction[argparse.ArgumentParser],  # pyright: ignore[reportPrivateUsage] - argparse gives it no other name
        common: argparse.ArgumentParser,
    ) -> None:
        self._commands = commands
        self._common = common

    def __call__(self, name: str, command: str, help: str) -> argparse.ArgumentParser:
        """Add one that `module:function` of `uwf.commands` carries out."""
        sub = self._commands.add_parser(
            name, parents=[self._common], help=help, description=help, epilog=EXIT_CODES
        )
        sub.set_defaults(command=command)
        return sub

    def group(self, name: str, help: str) -> CommandGroup:
        """Add a word that commands of its own follow."""
        group = self._commands.add_parser(name, help=help, description=help)
        below = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
        return CommandGroup(below, self._common)
