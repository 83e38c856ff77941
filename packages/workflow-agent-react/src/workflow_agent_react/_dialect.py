"""Dialects: how tools are offered, how a reply becomes calls, and how results are shown.

The loop knows only `Dialect`. `native` uses the endpoint's own tool calls; `json` has the model
write one constrained object a turn, which models too small for tool calls manage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor import (
    RESOLVE,
    AssistantMessage,
    Message,
    NotOneValue,
    Profile,
    RequestOptions,
    ToolCall,
    ToolDefinition,
    find_json,
    make_call,
    response_format,
    tool_result,
    user,
)

DialectName = Literal["auto", "native", "json"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply as the loop sees it."""

    message: Message
    calls: tuple[ToolCall, ...]
    problem: str = ""
    """Where there are no calls: what the model is told."""


class Dialect(Protocol):
    """One role's way of talking about tools with one model. `resolve` is the last tool."""

    @property
    def offered(self) -> Sequence[ToolDefinition]:
        """The tools that go into the request's own `tools` field."""
        ...

    def system_text(self, prompt: str) -> str:
        """The role's prompt with what the model must know about tools."""
        ...

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """What else a request asks for; `only_resolve` in the last round."""
        ...

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """Find the calls in a reply."""
        ...

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """Give the results of a reply's calls back to the model."""
        ...


def choose_dialect(name: DialectName, profile: Profile, tools: Sequence[ToolDefinition]) -> Dialect:
    """Make the dialect of that name; `auto` takes the one that the endpoint's profile names."""
    chosen = profile.dialect if name == "auto" else name
    return JsonDialect(tools, profile) if chosen == "json" else NativeDialect(tools)


class NativeDialect:
    """Tool calls of the endpoint itself."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self.offered: Sequence[ToolDefinition] = tuple(tools)

    def system_text(self, prompt: str) -> str:
        """The prompt, and that only `resolve` ends the role."""
        return f"{prompt}\n\nWhen the task is done, call the tool `resolve` with the final result."

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """Tools by the model's choice; in the last round `resolve` alone."""
        return RequestOptions(tool_choice=RESOLVE if only_resolve else "auto")

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """The reply's own tool calls."""
        del round
        problem = (
            "Your reply has no tool call. Go on with a tool, or call `resolve` with the result."
        )
        return Turn(reply.message, reply.tool_calls, problem)

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """One tool message a call."""
        return [tool_result(call, text) for call, text in results]


class JsonDialect:
    """One JSON object a turn: `{"tool": <name>, "args": {…}}`, constrained where possible."""

    def __init__(self, tools: Sequence[ToolDefinition], profile: Profile) -> None:
        self.offered: Sequence[ToolDefinition] = ()
        self._tools = tuple(tools)
        self._any = response_format(_turn_schema(self._tools), profile)
        self._resolve = response_format(_turn_schema(self._tools[-1:]), profile)

    def system_text(self, prompt: str) -> str:
        """The prompt, the tools with their parameters, and the form of a turn."""
        tools = "\n".join(_tool_line(tool) for tool in self._tools)
        return (
            f"{prompt}\n\n## How to work\n\n"
            "Each of your replies is one JSON object that calls one tool: "
            '{"tool": …, "args": {…}}. After each call you get its result. '
            "Gather facts with the tools first; never guess. "
            f"When you know the answer, call {RESOLVE}.\n\n## Tools\n\n{tools}"
        )

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """The schema of a turn, as far as the endpoint takes one."""
        return RequestOptions(response_format=self._resolve if only_resolve else self._any)

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """The one object in the text."""
        if reply.finish == "length":
            problem = "it was cut off at the output limit; write a shorter one"
        else:
            try:
                value = msgspec.json.decode(find_json(reply.text))
            except NotOneValue as error:
                problem = str(error)
            else:
                call = _as_call(value, round)
                if call is not None:
                    return Turn(reply.message, (call,))
                problem = 'it needs the keys "tool" and "args"'
        return Turn(
            reply.message,
            (),
            f'Your reply is not one object {{"tool": …, "args": {{…}}}}: {problem}.',
        )

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """One user message with the result."""
        return [user("\n\n".join(f"Result of {call.name}:\n{text}" for call, text in results))]


def _as_call(value: object, round: int) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    name = fields.get("tool")
    if not isinstance(name, str) or "args" not in fields:
        return None
    return make_call(name, fields["args"], round=round, index=0)


def _turn_schema(tools: Sequence[ToolDefinition]) -> JsonObject:
    """One branch a tool, its name a constant; definitions go to the root under the tool's name."""
    definitions: JsonObject = {}
    branches: list[JsonObject] = []
    for tool in tools:
        parameters = _renamed_refs(dict(tool.parameters), tool.name)
        for name, definition in parameters.pop("$defs", {}).items():
            definitions[f"{tool.name}.{name}"] = definition
        branches.append(
            {
                "type": "object",
                "properties": {"tool": {"const": tool.name}, "args": parameters},
                "required": ["tool", "args"],
                "additionalProperties": False,
            }
        )
    schema: JsonObject = {"anyOf": branches} if len(branches) > 1 else branches[0]
    return {**schema, "$defs": definitions} if definitions else schema


def _renamed_refs(value: Any, tool: str) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        renamed = {key: _renamed_refs(item, tool) for key, item in fields.items()}
        ref = fields.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/$defs/"):
            renamed["$ref"] = f"#/$defs/{tool}.{ref.removeprefix('#/$defs/')}"
        return renamed
    if isinstance(value, list):
        return [_renamed_refs(item, tool) for item in cast("list[Any]", value)]
    return value


def _tool_line(tool: ToolDefinition) -> str:
    """`- name(path: string, limit?: integer): what it does`, then what needs more words."""
    properties = cast("Mapping[str, JsonObject]", tool.parameters.get("properties", {}))
    required = cast("Sequence[str]", tool.parameters.get("required", ()))
    parts = [
        f"{name}{'' if name in required else '?'}: {_type_words(schema)}"
        for name, schema in properties.items()
    ]
    notes = "".join(
        f"\n    {name}: {schema['description']}"
        for name, schema in properties.items()
        if "description" in schema
    )
    return f"- {tool.name}({', '.join(parts)}): {tool.description}{notes}"


def _type_words(schema: JsonObject) -> str:
    if "const" in schema:
        return msgspec.json.encode(schema["const"]).decode()
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(each).decode() for each in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return " | ".join(dict.fromkeys(_type_words(option) for option in options))
    if schema.get("type") == "array":
        return f"[{_type_words(schema.get('items', {}))}, …]"
    if schema.get("type") == "object" and "properties" in schema:
        inner = (f"{key}: {_type_words(each)}" for key, each in schema["properties"].items())
        return "{" + ", ".join(inner) + "}"
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return ref.rpartition("/")[2]
    return str(schema.get("type", "any"))
