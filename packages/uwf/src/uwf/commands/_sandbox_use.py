"""Whether the commands of a thread ran in a sandbox, by what their results say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workflow_execute import current_attempt
from workflow_execute.transcript import TurnAttempts

# Commands write these results: no text may make the search start twice on the same part.
NO_SANDBOX = re.compile(rb'\[[^\[\]"]{0,200}?[,;] no sandbox(?:: ([^\].]{1,200}+))?[\].]')
"""How `shell_exec` and the commands of roles end a result:
`[exit code 0, 2 s, no sandbox: bwrap is not installed]`."""


def _is_of_command(key: str) -> bool:
    """Whether a tool may have given it, or the command that a role consists of."""
    return key.partition("/")[0] in {"tool", "command"}


def commands_without_sandbox(records: Iterable[TurnAttempts]) -> str | None:
    """Why a command of a thread ran without a sandbox; nothing if none did."""
    for attempts in records:
        for entry in current_attempt(attempts):
            if _is_of_command(entry.record.key) and entry.data is not None:
                found = NO_SANDBOX.search(entry.data)
                if found is not None:
                    return (found[1] or b"the workflow asks for none").decode("utf-8", "replace")
    return None
