"""What the parser promises to the commands."""

import inspect
from importlib import import_module
from typing import Any

from uwf.arguments._parser import make_parser


def test_every_command_takes_what_its_parser_gives() -> None:
    """No type checker sees it: commands are named by words, and called with names."""
    found = 0
    waiting: list[Any] = [make_parser()]  # of any type: argparse shows its actions to nobody
    while waiting:
        parser = waiting.pop()
        names = {each.dest for each in parser._actions} - {
                "help", "json", "home", "version", "traceback",
            }  # fmt: skip
        for each in parser._actions:
            waiting += getattr(each.choices, "values", list)()
        if (command := parser.get_default("command")) is not None:
            module, _, function = command.partition(":")
            takes = inspect.signature(getattr(import_module(f"uwf.commands.{module}"), function))
            assert set(takes.parameters) == {"output", *names}
            found += 1
    assert found > 15
