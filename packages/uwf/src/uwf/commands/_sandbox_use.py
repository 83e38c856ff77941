"""Whether the commands of a thread ran in a sandbox, by what their results say."""

from __future__ import annotations

import re

from workflow_cas import Store
from workflow_execute import StoredThread, read_turn

# Commands write these results: no text may make the search start twice on the same part.
NO_SANDBOX = re.compile(rb'\[[^\[\]"]{0,200}?[,;] no sandbox(?:: ([^\].]{1,200}+))?[\].]')
"""How `shell_exec` ends a result: `[exit code 0, 2 s, no sandbox: bwrap is not installed]`."""


async def commands_without_sandbox(store: Store, thread: StoredThread) -> str | None:
    """Why a command of the thread ran without a sandbox; nothing if none did."""
    for turn in (*(step.turn for step in thread.steps), thread.turn):
        for entry in await read_turn(store, turn):
            if entry.record.key.startswith("tool/") and entry.data is not None:
                found = NO_SANDBOX.search(entry.data)
                if found is not None:
                    return (found[1] or b"the workflow asks for none").decode("utf-8", "replace")
    return None
