"""What the key of a journal record says: which part of a turn it belongs to, which round and call.

Adapters ask a model under `llm/<round>`, run its calls under `tool/<round>/<index>`, and put a
scope before that where a turn has several loops: `extract/llm/0`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from workflow_execute._records import SUPERVISOR_KEYS
from workflow_execute.threads._read import CHILD_RESULT, CHILD_THREAD, is_of_child

_KEY = re.compile(
    r"(?P<scope>(?:[^/]+/)*?)"
    r"(?:(?P<model>llm|run|refused|skipped)/(?P<asked>[0-9]{1,9})(?:/[0-9a-f]+)?"
    r"|(?:shown/)?(?P<call>tool|ask|unknown|shown|told)/(?P<round>[0-9]{1,9})/(?P<index>[0-9]{1,9})(?:/.*)?)"
)


class Place(NamedTuple):
    """Where a record belongs."""

    scope: str
    kind: str
    """`llm`, `run`, `refused`, `skipped`; of a call `tool`, `ask`, `unknown`, `shown`, `told`; or
    `child`, or empty."""
    round: int = 0
    call: int = 0


def place_of(key: str) -> Place:
    """Read a key. One that no loop has made has an empty `kind`."""
    if is_of_child(key):
        return Place("", "child")
    found = _KEY.fullmatch(key)
    if found is None:
        return Place("", "")
    scope = found["scope"].rstrip("/")
    if found["call"]:
        return Place(scope, found["call"], int(found["round"]), int(found["index"]))
    return Place(scope, found["model"], int(found["asked"]))


def is_of_supervisor(key: str) -> bool:
    """Whether the supervisor recorded this, before the role began."""
    return key.startswith(SUPERVISOR_KEYS)


def child_of(key: str) -> str:
    """What the two records of one child have in common."""
    return key.replace(CHILD_RESULT, CHILD_THREAD)
