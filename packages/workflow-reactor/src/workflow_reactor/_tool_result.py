"""What a tool call came to, as the journal keeps it and every later reader reads it."""

from __future__ import annotations

import msgspec


class ToolResult(msgspec.Struct, frozen=True, array_like=True):
    """What a call came to. The journal records it, whole."""

    ok: bool
    """Whether the call did what was asked."""
    text: str
    """The result, or what was wrong."""
    arguments: str = ""
    """What it ran with, where that is not what the model wrote."""
    note: str = ""
    """What the person decided, in words for the model. It isn't the tool's, so not in the text."""
    error: str = ""
    """Why it is not `ok`: see `ToolFinished.error`."""

    def words(self) -> str:
        """All of it, for the model."""
        text = self.text if self.ok else f"Error: {self.text}"
        return f"({self.note})\n{text}" if self.note else text
