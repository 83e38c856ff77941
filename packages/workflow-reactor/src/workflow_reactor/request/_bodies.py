"""Request bodies: joined bytes, what never changes first, so that prompt caches hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor._messages import Message
from workflow_reactor._provider import Profile
from workflow_reactor._settings import NO_SETTINGS, ModelSettings
from workflow_reactor.request._tool_schema import schema_to_send
from workflow_reactor.request._tools import ToolDefinition

_encode = msgspec.json.Encoder().encode


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What one request asks for beside messages and tools."""

    tool_choice: str | None = None
    """`auto`, `required`, `none`, or the name of the one tool to call."""
    response_format: JsonObject | None = None
    """What the reply is held to, as `response_format` makes it of a schema."""
    stop: tuple[str, ...] = ()
    """Texts that end the reply."""
    settings: ModelSettings = NO_SETTINGS
    """What is set here goes before what the provider's own settings say."""


NO_OPTIONS = RequestOptions()


class Frame(msgspec.Struct, frozen=True):
    """What stands around the messages of a request body."""

    head: bytes
    """Model, fixed fields and tools, up to the first message. The same in each round."""
    tail: bytes
    """From the end of the last message on: the options."""
    model: str = ""
    """The model's name, which prices go by."""
    place: str = ""
    """Where the request goes, and what of the settings isn't in its bytes; nothing secret."""
    provider: str = ""
    """What the provider is called, for observers."""

    def body(self, messages: Iterable[Message]) -> bytes:
        """The exact bytes of the request."""
        return b"".join([self.head, b",".join([each.json for each in messages]), self.tail])


class Framer:
    """Makes the frames of one model's requests; the same question twice is encoded once.

    Args:
        model: the name that goes into each request.
        profile: what the endpoint takes; options that it lacks are left out.
        extra_body: more fields for each request.
        settings: of the model; those of a request's options go before them.
        place: see `Frame.place`.
        provider: see `Frame.provider`.
    """

    def __init__(
        self,
        model: str,
        profile: Profile,
        extra_body: Mapping[str, Any] | None = None,
        *,
        settings: ModelSettings = NO_SETTINGS,
        place: str = "",
        provider: str = "",
    ) -> None:
        self._model = model
        self._provider = provider
        self._place = place
        self._profile = profile
        self._extra_body = extra_body or {}
        self._settings = settings
        self._tools: Sequence[ToolDefinition] | None = None
        self._head = b""
        self._options = NO_OPTIONS
        self._last = Frame(b"", b"")

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        """Encode what stands around the messages."""
        same_head = tools is self._tools and isinstance(tools, tuple)
        same_head = same_head and options.settings == self._options.settings
        if not same_head:
            offered = b'"tools":[' + b",".join([tool.sent(self._profile) for tool in tools]) + b"],"
            start = self._start(options.settings.over(self._settings))
            self._head = start + b"," + (offered if tools else b"") + b'"messages":['
            self._tools = tools
        if not same_head or options != self._options:
            fields = self._fields(options, has_tools=bool(tools))
            rest = b"," + _encode(fields)[1:] if fields else b"}"
            self._options = options
            self._last = Frame(self._head, b"]" + rest, self._model, self._place, self._provider)
        return self._last

    def _start(self, settings: ModelSettings) -> bytes:
        """A setting is in the request once, also where `extra_body` has the field."""
        fixed = {"model": self._model, **self._extra_body, **settings.fields(), "stream": False}
        return _encode(fixed)[:-1]

    def _fields(self, options: RequestOptions, *, has_tools: bool) -> JsonObject:
        fields: JsonObject = {}
        if has_tools:
            fields.update(_tool_fields(options.tool_choice, self._profile))
        if options.response_format is not None:
            fields["response_format"] = options.response_format
        if options.stop and self._profile.stop:
            fields["stop"] = options.stop
        if self._profile.max_tokens is not None:
            fields[self._profile.max_tokens_field] = self._profile.max_tokens
        return fields


def _tool_fields(choice: str | None, profile: Profile) -> JsonObject:
    fields: JsonObject = {}
    forced = profile.forced_tool_choice
    if choice in {"auto", "none"} or (choice == "required" and forced != "none"):
        fields["tool_choice"] = choice
    elif choice is not None and forced == "named":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    elif choice is not None and forced == "required":
        fields["tool_choice"] = "required"
    if profile.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = profile.parallel_tool_calls
    return fields


def response_format(schema: JsonObject, profile: Profile) -> JsonObject | None:
    """Ask for JSON of a schema, as far as the endpoint takes that."""
    match profile.response_format:
        case "json_schema":
            sent, strict, _ = schema_to_send(schema, profile, reply=True)
            asked: JsonObject = {"name": "reply", "schema": sent}
            if strict:
                asked["strict"] = True
            return {"type": "json_schema", "json_schema": asked}
        case "json_object":
            return {"type": "json_object"}
        case "none":
            return None


def asks_strictly(asked: JsonObject | None) -> bool:
    """Whether a `response_format` holds the reply to the strict form of its schema."""
    return bool(asked and asked.get("json_schema", {}).get("strict"))
