"""Dialects: how tools are offered, how a reply becomes calls, and how results are shown.

The loop knows only `Dialect`. `native` uses the endpoint's own tool calls; `json` has the model
write one constrained object a turn, which models too small for tool calls manage. `xml` is in
`_xml_dialect.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import msgspec

from workflow_agent_react._exact_json import decode_exactly
from workflow_agent_react.dialects._describe import tool_line
from workflow_protocol import Effect, JsonObject
from workflow_reactor import (
    RESOLVE,
    AssistantMessage,
    Message,
    NotOneValue,
    Profile,
    RequestOptions,
    ToolCall,
    ToolDefinition,
    asks_strictly,
    assistant,
    find_json,
    find_schema,
    make_call,
    map_schemas,
    response_format,
    tool_result,
    user,
)

_DEFINITION = re.compile(r"#/((\$defs|definitions)/)?")
_NOT_IN_A_NAME = re.compile(r"[^\w.-]")

MAX_TASK_CHARS = 300
MAX_REPEATS = 3
"""After so many calls that bring nothing new, the `json` dialect lets only `resolve` through."""

DialectName = Literal["auto", "native", "json", "xml"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply as the loop sees it."""

    message: Message
    """What is sent back as the assistant's turn."""
    calls: tuple[ToolCall, ...]
    """What the model asked for, in the order in which it wrote it."""
    problem: str = ""
    """Where there are no calls: what the model is told."""


class Dialect(Protocol):
    """One role's way of talking about tools with one model. `resolve` is the last tool."""

    @property
    def offered(self) -> Sequence[ToolDefinition]:
        """The tools that go into the request's own `tools` field."""
        ...

    @property
    def told(self) -> Sequence[str]:
        """The names of the tools that the model knows of, wherever they stand."""
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


_NO_CALL = "Your reply has no tool call. Go on with a tool, or call `resolve` with the result."


class NativeDialect:
    """Tool calls of the endpoint itself.

    Args:
        tools: `resolve` is the last.
        plain: a reply without calls is the result, and `resolve` isn't offered.
    """

    def __init__(self, tools: Sequence[ToolDefinition], *, plain: bool = False) -> None:
        self.offered: Sequence[ToolDefinition] = tuple(tools[:-1] if plain else tools)
        self.told: Sequence[str] = [tool.name for tool in self.offered]
        self._plain = plain

    def system_text(self, prompt: str) -> str:
        """The prompt, and what ends the role."""
        if self._plain:
            return f"{prompt}\n\nWhen the task is done, reply with the result as plain text."
        return f"{prompt}\n\nWhen the task is done, call the tool `resolve` with the final result."

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """Tools by the model's choice; in the last round `resolve` alone, or no tool."""
        last = "none" if self._plain else RESOLVE
        return RequestOptions(tool_choice=last if only_resolve else "auto")

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """The reply's own tool calls, or its text where that is the result."""
        if reply.tool_calls:
            return Turn(reply.message, reply.tool_calls)
        if reply.finish == "length":
            problem = "Your reply was cut off at the output limit. Write a shorter one."
        elif not self._plain:
            problem = f"Your reply {reply.broke_off}. {_NO_CALL}" if reply.broke_off else _NO_CALL
        elif reply.broke_off:
            problem = f"Your reply {reply.broke_off}. Write the result again."
        elif reply.finish == "tool_calls":
            problem = "Your reply announces a tool call and has none. Call it, or write the result."
        elif reply.text.strip():
            return Turn(reply.message, (resolve_with_text(reply.text, round),))
        else:
            problem = "Your reply is empty. Go on with a tool, or write the result."
        return Turn(reply.message, (), problem)

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """One tool message a call; what is wrong with a plain result is said by the user."""
        return [
            user(text) if self._plain and call.name == RESOLVE else tool_result(call, text)
            for call, text in results
        ]


_NEXT = (
    f"If the results above are enough for this, call {RESOLVE} with the answer now. "
    "Otherwise call another tool."
)


class JsonDialect:
    """One JSON object a turn: `{"tool": <name>, "args": {…}}`, constrained where possible.

    Args:
        tools: `resolve` is the last.
        profile: whether the endpoint takes a schema for the reply.
        task: what the thread is about; its beginning is repeated after each result.
    """

    def __init__(
        self, tools: Sequence[ToolDefinition], profile: Profile, *, task: str = ""
    ) -> None:
        self.offered: Sequence[ToolDefinition] = ()
        self.told: Sequence[str] = [tool.name for tool in tools]
        self._tools = tuple(tools)
        self._profile = profile
        self._task = task_reminder(task)
        self._formats: dict[frozenset[str], JsonObject | None] = {}
        self._seen: dict[tuple[str, str], str] = {}
        self._repeated: set[str] = set()
        self._repeats = 0
        self._asks_strictly = False

    def system_text(self, prompt: str) -> str:
        """The prompt, the tools with their parameters, and the form of a turn."""
        tools = "\n".join(tool_line(tool) for tool in self._tools)
        return (
            f"{prompt}\n\n## How to work\n\n"
            "Each of your replies is one JSON object that calls one tool: "
            '{"tool": …, "args": {…}}. After each call you get its result. '
            "Gather facts with the tools first; never guess. "
            f"When you know the answer, call {RESOLVE}.\n\n## Tools\n\n{tools}"
        )

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """The schema of a turn, as far as the endpoint takes one.

        What was just done again with the same result is left out until something new comes, and
        after `MAX_REPEATS` of them only `resolve` is left: a model of half a billion parameters
        goes on repeating its last calls, whatever it is told.
        """
        names = {tool.name for tool in self._tools} - self._repeated
        if only_resolve or self._repeats >= MAX_REPEATS or not names:
            names = {RESOLVE}
        key = frozenset(names)
        if key not in self._formats:
            left = [tool for tool in self._tools if tool.name in names]
            self._formats[key] = response_format(_turn_schema(left), self._profile)
        self._asks_strictly = asks_strictly(self._formats[key])
        return RequestOptions(response_format=self._formats[key])

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """The one object in the text."""
        message = text_message(reply)
        if reply.tool_calls:  # an endpoint that finds calls in text took it for one of its own
            (call, *_) = reply.tool_calls
            return Turn(message, (replace(call, strict=self._asks_strictly),))
        try:
            value = json_value(reply.text)
        except NotOneValue as error:
            problem = str(error)
        else:
            call = json_call(value, round)
            if call is not None and not (reply.broke_off and call.name == RESOLVE):
                return Turn(message, (replace(call, strict=self._asks_strictly),))
            problem = "write it again" if call else 'it needs the keys "tool" and "args"'
        if reply.finish == "length":
            problem = f"it {reply.broke_off}; write a shorter one"
        elif reply.broke_off:
            problem = f"it {reply.broke_off}; {problem}"
        return Turn(
            message,
            (),
            f'Your reply is not one object {{"tool": …, "args": {{…}}}}: {problem}.',
        )

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """One user message with the result, the task again, and what there is to decide now."""
        shown = [self._shown(call, text) for call, text in results]
        return [user("\n\n".join([*shown, f"{self._task}{_NEXT}"]))]

    def _shown(self, call: ToolCall, text: str) -> str:
        shown = f"Result of {call.name}:\n{text}"
        tool = next((tool for tool in self._tools if tool.name == call.name), None)
        if tool is None or tool.pollable:
            return shown
        key = (call.name, call.arguments)
        before = self._seen.get(key)
        if before is not None and (text == before or text.startswith(f"{before}\n\n")):
            # The loop puts notes below a result; it is the same one all the same.
            if RESOLVE in (call.name, *self._repeated):  # one of them has to be left
                self._repeated.clear()
            self._repeated.add(call.name)
            self._repeats += 1
            shown = f"{shown}\n(the same call gave the same result before)"
        else:
            if tool.effect is not Effect.READ and call.name != RESOLVE:
                self._seen.clear()  # it may have changed what the others give
                self._repeats = 0
            self._repeated.clear()
            self._seen[key] = text
        if call.name == RESOLVE:  # refused, so there is more to do
            self._repeats = 0
        return shown


def task_reminder(task: str) -> str:
    """A line with the beginning of the task: small models lose sight of it below results."""
    return f"The task: {task.strip()[:MAX_TASK_CHARS]}\n" if task else ""


def text_message(reply: AssistantMessage, text: str | None = None) -> Message:
    """The reply as a turn of mere text, `text` in place of its own; fields to echo stay."""
    if text is None and not reply.tool_calls:
        return reply.message
    data = reply.message.data
    echo = {key: data[key] for key in data.keys() - {"role", "content", "tool_calls"}}
    return assistant(reply.text if text is None else text, **echo)


def resolve_with_text(text: str, round: int) -> ToolCall:
    """A reply's text as a call of `resolve` whose schema is text."""
    return make_call(RESOLVE, {"value": text}, round=round, index=0)


def json_value(text: str) -> object:
    """The one JSON value in a text; its fractions are raw text, to be encoded again.

    Raises:
        NotOneValue: there is none, or more than one.
    """
    try:
        return decode_exactly(find_json(text))
    except (msgspec.DecodeError, RecursionError) as error:  # its limits are narrower
        raise NotOneValue(str(error)) from None


def json_call(value: object, round: int) -> ToolCall | None:
    """A call that is written as an object, under the names that models use for its two keys."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    name = next((fields[key] for key in ("tool", "name") if key in fields), None)
    arguments = [fields[key] for key in ("args", "arguments", "parameters") if key in fields]
    if not isinstance(name, str) or not arguments:
        return None
    (given, *_) = arguments
    if not isinstance(given, str) or not given.lstrip().startswith("{"):
        given = msgspec.json.encode(given).decode()  # a bare value, which `resolve` may take
    return make_call(name, given, round=round, index=0)


def _turn_schema(tools: Sequence[ToolDefinition]) -> JsonObject:
    """One branch a tool, its name a constant; what is referred to goes to the root."""
    definitions: JsonObject = {}
    branches: list[JsonObject] = [
        {
            "type": "object",
            "properties": {
                "tool": {"const": tool.name},
                "args": _moved_parameters(tool, definitions),
            },
            "required": ["tool", "args"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    schema: JsonObject = {"anyOf": branches} if len(branches) > 1 else branches[0]
    return {**schema, "$defs": definitions} if definitions else schema


def _moved_parameters(tool: ToolDefinition, definitions: JsonObject) -> JsonObject:
    """A tool's parameters for another place.

    What a reference that can't be followed leads to may be anything.

    Args:
        definitions: gets what they refer to, of whatever kind: MCP servers write
            `#/properties/…`, too. The names begin with the tool's.
    """
    names: dict[str, str] = {}
    waiting: list[tuple[str, JsonObject]] = []

    def moved(node: JsonObject) -> JsonObject:
        kept = {key: each for key, each in node.items() if key not in {"$defs", "definitions"}}
        node = map_schemas(kept, moved)
        ref = node.pop("$ref", None)
        target = find_schema(tool.parameters, ref) if isinstance(ref, str) else None
        if isinstance(ref, str) and target is not None:
            if ref not in names:
                base = f"{tool.name}.{_NOT_IN_A_NAME.sub('.', _DEFINITION.sub('', ref))}"
                names[ref] = _free_name(base, definitions)
                definitions[names[ref]] = {}  # kept for it
                waiting.append((names[ref], target))
            node["$ref"] = f"#/$defs/{names[ref]}"
        return node

    parameters = moved(tool.parameters)
    while waiting:  # not by recursion: they may lead far from one to the next
        name, target = waiting.pop()
        definitions[name] = moved(target)
    return parameters


def _free_name(base: str, taken: JsonObject) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}.{number}"
    return name
