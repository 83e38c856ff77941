"""What a person is told who typed something else than was meant, or nothing."""

import os
import shlex
from collections.abc import Generator

import pytest

from uwf.arguments._command_parser import CommandParser
from uwf.arguments._parser import make_parser

from ..cli import Cli
from ..entries import ONE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("workfow list", "there is no command 'workfow'; did you mean 'workflow'?"),
        ("thread lits", "there is no command 'lits'; did you mean 'list'?"),
        ("threads", "there is no command 'threads'; did you mean 'thread'?"),
        ("model xyzzy", "there is no command 'xyzzy'\n"),
        ("run --worspace . a b", "there is no option '--worspace'; did you mean '--workspace'?"),
        ("show --jsno", "there is no option '--jsno'; did you mean '--json'?"),
        ("--hme=/x workflow list", "there is no option '--hme'; did you mean '--home'"),
        ("show --turn", "there is no option '--turn'; did you mean '--turns'?"),
        ("run greet say hello", "'hello' is one argument too many; put quotes around"),
        ("run greet", "the following arguments are required: prompt"),
        ("thread answer latest", "one of the arguments --approve --deny --arguments is required"),
    ],
)
async def test_a_typo_gets_what_was_probably_meant(uwf: Cli, words: str, message: str) -> None:
    done = await uwf(*shlex.split(words))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"uwf: {message}")
    assert "usage: uwf" in done.err


async def test_the_usage_that_a_typo_is_answered_with_is_that_of_its_command(uwf: Cli) -> None:
    done = await uwf("thread", "fork", "x", "--at-stop", "1")
    first, *usage, last = done.err.splitlines()
    assert first == "uwf: there is no option '--at-stop'; did you mean '--at-step'?"
    assert usage[0].startswith("usage: uwf thread fork ")
    assert last == "help: uwf thread fork --help"


@pytest.mark.parametrize("words", [[], ["thread"], ["cas"], ["model"], ["--json"]])
async def test_a_group_without_a_command_prints_its_help(uwf: Cli, words: list[str]) -> None:
    done = await uwf(*words)
    helped = await uwf(*words, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out == helped.out
    assert "usage: uwf" in done.out


def commands(parser: CommandParser) -> Generator[CommandParser]:
    """All commands below a parser."""
    if not parser.subcommands:
        yield parser
    for each in parser.subcommands.values():
        yield from commands(each)


def test_the_example_of_every_command_is_one_that_it_takes() -> None:
    found = 0
    for each in commands(make_parser()):
        _, found_one, example = str(each.epilog).partition("Example:\n  uwf ")
        assert found_one
        example = example.splitlines()[0]
        read = make_parser().parse_args(shlex.split(example))
        assert read.command == each.get_default("command")
        found += 1
    assert found > 15


@pytest.mark.parametrize("columns", [80, 120])
def test_help_fits_the_terminal_and_keeps_an_example_whole(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", str(columns))
    parsers: list[CommandParser] = [make_parser(), *commands(make_parser())]
    for each in parsers:
        *lines, last = each.format_help().rstrip().splitlines()
        assert max(map(len, lines)) <= columns
        if not each.subcommands:
            assert each.epilog is not None
            assert last == each.epilog.splitlines()[-1]


async def test_a_thread_that_is_not_there_gets_the_nearest_id(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    await uwf("run", "one.py", "x")
    (row,) = (await uwf("thread", "list", "--json")).lines
    thread = row["thread"]
    other = thread[:8] + ("0" if thread[8] != "0" else "1") + thread[9:]
    for typed in (f"{thread[:9]}-", f"{thread}0", other.lower(), thread[1:]):
        done = await uwf("show", typed)
        assert done.err == f"uwf: there is no thread {typed!r}; did you mean {thread}?\n"
    assert "did you mean latest?" in (await uwf("show", "latset")).err
    assert (await uwf("show", "xyz")).err == "uwf: there is no thread 'xyz'\n"
