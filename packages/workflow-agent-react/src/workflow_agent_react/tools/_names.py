"""Names of tools: one that is free, and what there is instead of one that isn't."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, count
from typing import Any

from workflow_agent_react._errors import ToolError
from workflow_reactor import ToolCall

MOST_NAMES = 24
"""So many are listed whole."""


def nearest(wanted: str, names: Collection[str]) -> list[str]:
    """All names if they are few, the similar ones first; else the most similar."""
    import difflib  # here: few runs need it, and each would pay for its import

    if len(names) > MOST_NAMES:
        return difflib.get_close_matches(wanted, names, n=MOST_NAMES // 3, cutoff=0.0)
    near = difflib.get_close_matches(wanted, names, n=MOST_NAMES, cutoff=0.6)
    return [*near, *(each for each in names if each not in near)]


def nearest_names(wanted: str, names: Collection[str]) -> str:
    """What there is instead of a name that isn't, in words."""
    if not names:
        return "there are no tools at all"
    which = f"nearest of {len(names)} tools" if len(names) > MOST_NAMES else "tools"
    return f"the {which} are {', '.join(nearest(wanted, names))}"


def prefixed(prefix: str, name: str, taken: Collection[str]) -> str:
    """The name behind a prefix, with a number where that is taken, too."""
    return free_name(f"{prefix}_{name}", taken)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, at most 64 characters of it, with a number if it is taken."""
    numbered = (f"{name[:60]}_{number}" for number in count(2))
    return next(free for free in chain([name[:64]], numbered) if free not in taken)


def pick(choices: Mapping[str, Any], call: ToolCall) -> Any:
    """What goes by the name of the called tool.

    Raises:
        ToolError: nothing does; for the model.
    """
    try:
        return choices[call.name]
    except KeyError:
        known = ", ".join(nearest(call.name, choices)) or "none"
        raise ToolError(f"there is no tool {call.name!r}; the tools are: {known}") from None
