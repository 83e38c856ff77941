"""What calls come to: the record, the cut version for the model, and the way back to the whole."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import msgspec

from workflow_protocol import Effect
from workflow_reactor import ToolDefinition, ToolResult
from workflow_util_agent import terminal_text

READ_RESULT = "read_result"
MAX_KEPT_CHARS = 8_500_000
"""What is kept of one result; a longer one loses its middle for good, and says so. More than the
8 MiB that are kept of a command's output."""
_PACKED_FROM = 256 * 1024
"""Characters from which on a text is kept compressed: a turn may have dozens of them."""
_NOTE_CHARS = 100  # of a page, for what stands below it


def read_result_tool(max_chars: int) -> ToolDefinition:
    """The tool that pages through a result that was cut."""
    page = max_chars - _NOTE_CHARS
    return ToolDefinition(
        name=READ_RESULT,
        description=f"Read on in a result that was cut: {page} characters from offset.",
        parameters={
            "type": "object",
            "properties": {
                "hash": {"type": "string", "description": "The hash that stands where it was cut"},
                "offset": {"type": "integer", "description": "First character, from 0"},
            },
            "required": ["hash", "offset"],
            "additionalProperties": False,
        },
        effect=Effect.READ,
        timeout_s=None,
    )


class KeptResults:
    """The long results of one turn, whole. A turn that resumes fills it from the journal again."""

    def __init__(self, max_chars: int, *, can_read_on: bool) -> None:
        self._max_chars = max_chars
        self._can_read_on = can_read_on
        self._texts: dict[str, str | bytes] = {}

    def shown(self, text: str) -> str:
        """The text if it is short, else with its middle cut out; the whole is kept then."""
        if len(text) <= self._max_chars:
            return text
        data = text.encode("utf-8", "surrogatepass")
        name = hashlib.sha256(data).hexdigest()[:12]
        self._texts[name] = text if len(text) < _PACKED_FROM else zlib.compress(data, 1)
        half = self._max_chars // 2
        missing = len(text) - 2 * half
        marker = f"{missing} of {len(text)} characters left out, kept as {name}"
        if self._can_read_on:
            marker += f'; {READ_RESULT} with hash "{name}" and offset {half} goes on here'
        return f"{text[:half]}\n[… {marker} …]\n{text[-half:]}"

    def read(self, arguments: str) -> ToolResult:
        """A page of a kept result."""
        given: dict[str, Any] = msgspec.json.decode(arguments)
        name, offset = given.get("hash"), given.get("offset", 0)
        text = self._whole(name) if isinstance(name, str) else None
        if text is None:
            known = ", ".join(self._texts) or "none: no result was cut so far"
            return _misread(f"there is no result with hash {name!r}; there are: {known}")
        if not isinstance(offset, int) or not 0 <= offset < len(text):
            return _misread(f"offset must be from 0 to {len(text) - 1}, not {offset!r}")
        end = min(offset + self._max_chars - _NOTE_CHARS, len(text))
        more = f"read on with offset {end}" if end < len(text) else "this is the end"
        return ToolResult(
            True, f"{text[offset:end]}\n[characters {offset} to {end} of {len(text)}; {more}]"
        )

    def _whole(self, name: str) -> str | None:
        kept = self._texts.get(name)
        return (
            zlib.decompress(kept).decode("utf-8", "surrogatepass")
            if isinstance(kept, bytes)
            else kept
        )


def _misread(words: str) -> ToolResult:
    return ToolResult(False, words, error="invalid_arguments")


def bounded(text: str) -> str:
    """A result as it is recorded: as a terminal would show it, and whole unless it is enormous.

    Halves of surrogate pairs, which names of files may hold, are written as escapes: neither a
    record nor a request can carry them.
    """
    text = terminal_text(text).encode("utf-8", "backslashreplace").decode()
    if len(text) <= MAX_KEPT_CHARS:
        return text
    half = MAX_KEPT_CHARS // 2
    missing = len(text) - 2 * half
    return f"{text[:half]}\n[… {missing} characters were not kept …]\n{text[-half:]}"
