"""A parser that helps: what was meant by a misspelt word, and help where nothing was said."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from uwf._errors import UsageError
from uwf.arguments._types import guess_word


class HelpFormatter(argparse.HelpFormatter):
    """Help in the width of the terminal. An indented line, such as an example, stays whole."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(
            line if line.startswith(" ") else textwrap.fill(line, width)
            for line in text.splitlines()
        )


class CommandParser(argparse.ArgumentParser):
    """Reads the arguments of one command, or the word that chooses one of a group.

    A group without a command prints its help, on standard output and with exit code 0, as `git`,
    `cargo` and `gh` do: nothing was asked for, and nothing went wrong.

    What can't be read is a `UsageError`, which names what was probably meant.
    """

    def __init__(
        self,
        *,
        prog: str,
        description: str,
        epilog: str | None = None,
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=HelpFormatter,
            allow_abbrev=False,  # what is unique today isn't with the next option
        )
        self.subcommands: dict[str, CommandParser] = {}
        """The commands by their words, if this is a group."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - overloads for other namespaces
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Read them all: each command knows its own options, and so what was meant."""
        read, unknown = super().parse_known_args(args, namespace or argparse.Namespace())
        if "_ARGCOMPLETE" in os.environ:  # a line that isn't finished
            return read, unknown
        if unknown:
            self.error(self._about_unknown(unknown))
        if self.subcommands and getattr(read, "command", None) is None:
            self.print_help()
            self.exit()
        return read, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and how the command is used.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message}\n{self.format_usage().rstrip()}\nhelp: {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that isn't one of the choices, such as a command."""
        if action.nargs == argparse.PARSER and value not in self.subcommands:
            self.error(f"there is no command {value!r}{guess_word(str(value), self.subcommands)}")
        super()._check_value(action, value)

    def _about_unknown(self, unknown: Sequence[str]) -> str:
        first, *_ = unknown
        if first.startswith("-") and first != "-":
            name = first.partition("=")[0]
            return f"there is no option {name!r}{guess_word(name, self._option_string_actions)}"
        return f"{first!r} is one argument too many; put quotes around a text that has spaces in it"
