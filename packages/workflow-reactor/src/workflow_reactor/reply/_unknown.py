"""Fields of a reply that the protocol does not know are state of the provider: they go back.

Gemini hangs a `thought_signature` on a call and answers 400 without it. Others have signatures,
opaque reasoning or ids of their own on a call, its function or the message; what they mean is
theirs to know.
"""

from __future__ import annotations

import re

import msgspec

from workflow_reactor.reply._json_text import replace_all_surrogates

Fields = dict[str, msgspec.Raw]

CALL_FIELDS = frozenset({"id", "type", "function", "index", "name", "arguments"})
FUNCTION_FIELDS = frozenset({"name", "arguments"})
# What the protocol has, or what only describes a reply: it is no state, and some endpoints refuse
# it in a request.
MESSAGE_FIELDS = frozenset(
    {"role", "content", "tool_calls", "function_call", "refusal", "audio", "annotations", "images"}
    | {"name", "tool_call_id", "index", "parsed"}
)
REASONING = re.compile(r"reason|think", re.IGNORECASE)
"""Names of the message's fields that hold what the model thought."""

_DECODER = msgspec.json.Decoder(Fields)
_CHECKER = msgspec.json.Decoder()


def unknown_fields(raw: msgspec.Raw, known: frozenset[str]) -> Fields:
    """The other fields of a JSON object, their values as they came; null is as good as nothing."""
    fields = _DECODER.decode(raw)
    if fields.keys() <= known:
        return {}
    return {
        name: _sendable(value)
        for name, value in fields.items()
        if name not in known and bytes(value) != b"null"
    }


def _sendable(value: msgspec.Raw) -> msgspec.Raw:
    """The value, which a decoder has seen whole, without halves of surrogate pairs.

    Raises:
        MsgspecError: it is broken: what is only passed over isn't looked at closely.
    """
    _CHECKER.decode(value)
    data = bytes(value)
    return msgspec.Raw(replace_all_surrogates(data.decode()).encode()) if b"\\u" in data else value
