"""`cas_get`: a tool with which a model reads stored objects by their hash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from workflow_protocol import Effect, ThreadContext, WorkflowError
from workflow_reactor._messages import ToolCall
from workflow_reactor.request._tools import ToolDefinition, ToolHandler

if TYPE_CHECKING:
    from workflow_cas import Store, Stored

MIN_DIGITS = 12
"""So many digits nobody finds by trying: who gives them was shown the hash."""
PAGE_CHARS = 16_000
"""The most of an object that one call gives."""

_HEX = re.compile(r"[0-9a-f]{12,64}")

CAS_GET = ToolDefinition(
    name="cas_get",
    description=(
        "Read a stored object by its hash, or by the first digits of its hash (at least "
        f"{MIN_DIGITS}). One call gives {PAGE_CHARS} characters from offset."
    ),
    parameters={
        "type": "object",
        "properties": {
            "hash": {"type": "string", "description": "64 hex digits, or the first of them"},
            "offset": {"type": "integer", "minimum": 0, "description": "0 if not given"},
        },
        "required": ["hash"],
        "additionalProperties": False,
    },
    effect=Effect.READ,
    max_result_chars=PAGE_CHARS + 200,
    validated=True,  # by `cas_get`
)
"""The tool as the model sees it; `cas_get` makes its calls."""


@runtime_checkable
class ObjectHost(Protocol):
    """A `ThreadContext.host` that reads from the store of its thread, as an engine's does."""

    async def read_object(self, digits: str) -> Stored:
        """Give the object whose hash begins with these digits.

        Raises:
            ObjectMissing: there is none.
            AmbiguousHash: there are several.
        """
        ...


class _Arguments(msgspec.Struct, frozen=True):
    hash: str
    offset: int = 0


async def cas_get(call: ToolCall, ctx: ThreadContext) -> str:
    """Make a call of `CAS_GET`: read from the store of the thread that the engine runs.

    A `tool_handler` of a reactor may pass its calls on. What is read is any object of the store,
    of whatever thread; its hash must be known.

    Raises:
        WorkflowError: the hash is too short or no hash, the object is not text, or no engine runs
            the thread.
        ObjectMissing: nothing is stored under the hash.
        AmbiguousHash: several hashes begin with these digits.
    """
    if not isinstance(ctx.host, ObjectHost):
        raise WorkflowError("no engine runs this thread, so there are no stored objects to read")
    arguments = _read_arguments(call)
    return _page(await ctx.host.read_object(arguments.hash), arguments.offset)


def cas_get_of(store: Store) -> ToolHandler:
    """The same on a store of one's own."""

    async def get(call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        arguments = _read_arguments(call)
        return _page(await store.get(await store.find(arguments.hash)), arguments.offset)

    return get


def _read_arguments(call: ToolCall) -> _Arguments:
    try:
        arguments = msgspec.json.decode(call.arguments, type=_Arguments)
    except msgspec.MsgspecError as error:
        raise WorkflowError(f"the arguments of {CAS_GET.name} don't fit: {error}") from error
    if arguments.offset < 0:
        raise WorkflowError(f"offset is {arguments.offset}; give 0 or more")
    digits = arguments.hash.strip().lower()
    if not _HEX.fullmatch(digits):
        raise WorkflowError(
            f"{arguments.hash[:80]!r} is not a hash; give {MIN_DIGITS} to 64 hex digits of one "
            "that you were shown"
        )
    return _Arguments(digits, arguments.offset)


def _page(stored: Stored, offset: int) -> str:
    try:
        text = stored.text()
    except UnicodeDecodeError:
        raise WorkflowError(
            f"object {stored.hash} is not text: {len(stored.data)} bytes that are not UTF-8"
        ) from None
    if offset and offset >= len(text):
        raise WorkflowError(f"the object has {len(text)} characters; give an offset below that")
    page = text[offset : offset + PAGE_CHARS]
    end = offset + len(page)
    if end == len(text):
        return page
    return f"{page}\n[{len(text) - end} more characters: read on with offset={end}]"
