"""Shell completion: what may come next on a command line, asked for at each press of Tab.

So it has to be quick: it reads the store and the configuration, but imports neither the engine nor
the models. It says nothing of what is wrong; the command does. `argcomplete` finds where in the
command line the cursor is, for bash, zsh and fish.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import msgspec

from uwf.arguments._command_parser import CommandParser
from uwf.arguments._types import LIMITS

if TYPE_CHECKING:
    from workflow_cas import Store

MOST_THREADS = 50
"""The newest ones: more are no help to choose from."""

MOST_CONFIG_BYTES = 1_000_000

Completer = Callable[..., Mapping[str, str] | list[str]]


def complete(parser: CommandParser) -> NoReturn:
    """Give the shell what may come next, and exit."""
    import argcomplete

    _attach(parser)
    argcomplete.autocomplete(parser, always_complete_options=False)
    raise SystemExit(1)  # there is nobody to give it to


def _attach(parser: CommandParser) -> None:
    """Give the arguments of all commands below a parser what completes them."""
    for action in _actions(parser):
        if (found := _completer(parser.prog, action)) is not None:
            action.completer = found  # pyright: ignore[reportAttributeAccessIssue] - where argcomplete looks
    for each in parser.subcommands.values():
        _attach(each)


def _actions(parser: CommandParser) -> Generator[argparse.Action]:
    yield from parser._actions


def _completer(command: str, action: argparse.Action) -> Completer | None:
    """What completes an argument; `None` for files."""
    _, group, *_ = [*command.split(), ""]
    match action.dest:
        case "thread" | "left" | "right" | "other_thread":
            return _threads
        case "workflow":
            return _workflows_or_files
        case "target" | "name" if group == "workflow":
            return _workflows
        case "name" if group == "model":
            return _local_models
        case "local":
            return _local_models
        case "target" if group == "doctor":
            return scenes
        case "models":
            return model_choices
        case "limits":
            return _limits
        case _:
            return None if action.choices or _takes_path(action) else _nothing


def _takes_path(action: argparse.Action) -> bool:
    return action.metavar in {"DIR", "PATH", "bundle"} or action.dest in {"entry", "path"}


def _nothing(**_: object) -> list[str]:
    return []


def _limits(**_: object) -> list[str]:
    return [f"{name}=" for name in LIMITS]


def _home(parsed_args: argparse.Namespace) -> Path:
    """As `workflow_register.find_home`, which takes 200 ms to import."""
    given = getattr(parsed_args, "home", None)
    return Path(given or os.environ.get("UWF_HOME") or Path.home() / ".uwf")


def _threads(*, prefix: str, parsed_args: argparse.Namespace, **_: object) -> Mapping[str, str]:
    """The newest threads that begin like this, each with its state."""

    async def read(store: Store) -> dict[str, str]:
        refs = await store.refs(f"thread/{prefix.upper()}")
        statuses = [ref for ref in refs if ref.endswith("/status")][-MOST_THREADS:]
        stored = await store.get_many([refs[ref] for ref in statuses])
        return {
            ref.split("/")[1]: each.as_node().read(_Status).state
            for ref, each in zip(statuses, stored, strict=True)
        }

    latest = {"latest": "the newest thread"} if "latest".startswith(prefix) else {}
    return latest | _read_store(parsed_args, read)


class _Status(msgspec.Struct, frozen=True):
    """What is shown of a status record."""

    state: str


def _workflows(*, prefix: str, parsed_args: argparse.Namespace, **_: object) -> Mapping[str, str]:
    async def read(store: Store) -> dict[str, str]:
        refs = await store.refs(f"workflow/{prefix}")
        return {ref.removeprefix("workflow/"): "a registered workflow" for ref in refs}

    return _read_store(parsed_args, read)


def _workflows_or_files(
    *, prefix: str, parsed_args: argparse.Namespace, **_: object
) -> Mapping[str, str]:
    from argcomplete.completers import FilesCompleter

    files = FilesCompleter(("py", "zip"))(prefix)
    return {**_workflows(prefix=prefix, parsed_args=parsed_args), **dict.fromkeys(files, "")}


def _read_store(
    parsed_args: argparse.Namespace, read: Callable[[Store], Awaitable[dict[str, str]]]
) -> dict[str, str]:
    path = _home(parsed_args) / "store.sqlite3"
    if not path.exists():  # opening it would make one
        return {}
    import anyio

    from workflow_cas import open_store

    async def main() -> dict[str, str]:
        async with open_store(path, read_only=True) as store:
            return await read(store)

    return anyio.run(main)


def scenes(*, parsed_args: argparse.Namespace, **_: object) -> dict[str, str]:
    """The model of each scene, from a configuration that nobody has checked."""
    path = _home(parsed_args) / "workflow.yaml"
    if not path.is_file() or path.stat().st_size > MOST_CONFIG_BYTES:
        return {}
    from ruamel.yaml import YAML  # without pydantic, which takes longer than all of this

    found: object = YAML(typ="safe", pure=True).load(path)  # pyright: ignore[reportUnknownMemberType] - it has no types
    models = _entries(_entries(found).get("models"))
    named = {str(scene): _entries(entry).get("model", entry) for scene, entry in models.items()}
    return {scene: model for scene, model in named.items() if isinstance(model, str)}


def _entries(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def model_choices(*, prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The models that are configured, and each scene with a `=`; after that, its models."""
    by_scene = scenes(parsed_args=parsed_args)
    models = [*dict.fromkeys(by_scene.values())]
    scene, is_given, _model = prefix.partition("=")
    if is_given:
        return [f"{scene}={model}" for model in models]
    return [*models, *(f"{scene}=" for scene in by_scene)]


def _local_models(**_: object) -> Mapping[str, str]:
    from workflow_local_model import CATALOGUE

    return {name: f"{model.size_bytes / 1e6:.0f} MB" for name, model in CATALOGUE.items()}
