"""Reads the lines of shell blocks: those that call `uwf` by its own parser, installs by name."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator

from uwf._errors import UsageError
from uwf.arguments._parser import parse

from .read_pages import ROOT

_UWF = re.compile(r"^(?:\$ )?(?:uv run )?uwf(?: |$)")
_INSTALLS = re.compile(r"^(?:\$ )?(?:uv )?(?:pip install|add) (.*)")
_OURS = re.compile(r"(uwf|pytest-uwf|workflow-[a-z-]+)(?:\[([a-z,]+)\])?")
_PLACEHOLDER = re.compile(r"(\w+)…|\w+\.\.\.")


def faults_of_commands(code: str) -> list[str]:
    """What the parser says of each command that it doesn't take."""
    return [
        *(f"{line}\n{fault}" for line in _commands(code) if (fault := _fault(line))),
        *(f"there is no package {each}" for each in _installed(code) if not _is_package(each)),
    ]


def _commands(code: str) -> Iterator[str]:
    """The commands, one for each alternative of `uwf thread show | resume`."""
    for line in code.replace("\\\n", " ").splitlines():
        for written in re.split(r"&&|;", line):
            if _UWF.match(written.strip()):
                yield from _alternatives(re.sub(r"\s#\s.*", "", written).strip())


def _alternatives(written: str) -> Iterator[str]:
    first, *others = [each.strip() for each in written.split(" | ")]
    words = [each for each in others if re.fullmatch(r"[a-z]+", each)]
    yield f"{first} …" if words else first
    start = first.rpartition(" ")[0]
    yield from (f"{start} {word} …" for word in words if word not in {"head", "less", "source"})


def _fault(command: str) -> str | None:
    """`…` at the end stands for the arguments of a command that is only named."""
    words = shlex.split(_UWF.sub("", command, count=1))
    is_named = words[-1:] == ["…"]
    try:
        parse([_PLACEHOLDER.sub(r"\1", word) for word in words if word != "…"])
    except UsageError as error:
        return None if is_named and "arguments are required" in str(error) else str(error)
    except SystemExit:  # it printed help, as was asked for
        return None
    return None


def _installed(code: str) -> Iterator[str]:
    """What of ours is installed by its name."""
    for line in code.splitlines():
        if found := _INSTALLS.match(line):
            words = shlex.split(found[1].partition(" #")[0])
            yield from (word for word in words if _OURS.fullmatch(word))


def _is_package(wanted: str) -> bool:
    """Whether there is a package of the name with these extras."""
    found = _OURS.fullmatch(wanted)
    assert found
    file = ROOT / "packages" / found[1] / "pyproject.toml"
    if not file.exists():
        return False
    extras = tomllib.loads(file.read_text("utf-8"))["project"].get("optional-dependencies", {})
    return not found[2] or set(found[2].split(",")) <= extras.keys()
