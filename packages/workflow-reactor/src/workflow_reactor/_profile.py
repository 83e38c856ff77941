"""What an endpoint can do, and so what is sent to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DialectName = Literal["native", "json", "xml"]
ResponseFormat = Literal["json_schema", "json_object", "none"]
ForcedToolChoice = Literal["named", "required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What an endpoint can do and may send. Where it can't, the adapters do without."""

    dialect: DialectName = "native"
    """How tools are offered when the adapter says `auto`."""
    response_format: ResponseFormat = "json_schema"
    """What a reply can be held to: a JSON Schema, any JSON object, or nothing."""
    strict_schemas: bool = False
    """Schemas are sent in their strict form, where they have one, with `strict: true`."""
    refs: bool = True
    """A schema may have definitions; else they are written out in place."""
    union_at_root: bool = True
    """The schema of `response_format` may be a union at its root; else it is made one object."""
    forced_tool_choice: ForcedToolChoice = "named"
    """How a request can make the model call a tool: by its name, just any, or not at all."""
    parallel_tool_calls: bool | None = None
    """What requests with tools say of several calls in one reply; `None`: nothing."""
    stop: bool = True
    """Stop sequences end a reply."""
    max_tokens: int | None = None
    """The most tokens that one reply may have; `None` leaves it to the provider."""
    max_tokens_field: str = "max_tokens"
    """The name of the request's field for `max_tokens`."""
    echo_reasoning: bool = True
    """Send `reasoning_content` and its like back with the turn it came with."""
    echo_call_ids: bool = True
    """Send a call's id back as it came. Else, and where it is missing or doubled, one of nine
    letters and digits stands in its place, which every known endpoint takes."""
    text_tool_calls: bool = False
    """Recognise a tool call that the model wrote into its text."""
