"""The `xml` dialect: thoughts, actions and answers in tags, for models without tool calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from workflow_agent_react.dialects._describe import (
    constants_of,
    members_of,
    parameter_notes,
    parameter_words,
    properties_of,
    required_of,
    tool_line,
    types_of,
)
from workflow_agent_react.dialects._dialect import (
    Turn,
    json_call,
    json_value,
    resolve_with_text,
    task_reminder,
    text_message,
)
from workflow_agent_react.dialects._xml_call import (
    Action,
    XmlFault,
    print_action,
    read_action,
    without_tags,
)
from workflow_agent_react.dialects._xml_reply import XmlReply, read_reply_text
from workflow_protocol import JsonObject
from workflow_reactor import (
    RESOLVE,
    AssistantMessage,
    Message,
    NotOneValue,
    RequestOptions,
    ToolCall,
    ToolDefinition,
    followed,
    make_call,
    user,
)

STOP = ("</action>", "</final_answer>", "<observation>")
STOPPED = re.compile(
    r".*?(?:</action\s*>|</final_answer\s*>|(?=<observation\s*>))", re.DOTALL | re.IGNORECASE
)
"""What is left of a reply where the stop sequences are obeyed."""


class XmlDialect:
    """One action a turn, `<action>name(argument="value")</action>`, until a `<final_answer>`.

    Args:
        tools: `resolve` is the last; its parameters are the schema of the final answer.
        task: what the thread is about; its beginning is repeated after each observation.
    """

    def __init__(self, tools: Sequence[ToolDefinition], *, task: str = "") -> None:
        self.offered: Sequence[ToolDefinition] = ()
        self.told: Sequence[str] = [tool.name for tool in tools if tool.name != RESOLVE]
        self._tools = {tool.name: tool for tool in tools}
        self._answer = self._tools[RESOLVE].parameters
        self._answer_is_text = _is_text_result(self._answer)
        self._task = task_reminder(task)

    def system_text(self, prompt: str) -> str:
        """The prompt, the tags with an example of each, and the tools with their parameters."""
        *tools, resolve = self._tools.values()
        parts = [prompt, "## How to work", _instructions(tools, self._answer_form())]
        if self._answer_is_text:
            parts += _text_requirements(self._answer)
        else:
            fields = f"{parameter_words(resolve)}{parameter_notes(resolve)}"
            parts.append(f"The final answer is JSON of {fields}")
        if tools:
            parts += ["## Tools", "\n".join(map(tool_line, tools))]
        return "\n\n".join(parts)

    def options(self, *, only_resolve: bool) -> RequestOptions:
        """Stop after an action or answer, and before an observation that the model makes up."""
        del only_resolve  # nothing can force an answer in text
        return RequestOptions(stop=STOP)

    def read(self, reply: AssistantMessage, round: int) -> Turn:
        """The first action, or the answer before any; the message ends with it."""
        try:
            found = read_reply_text(reply.text)
            call = self._call(found, reply, round)
        except XmlFault as fault:
            words = f"it {reply.broke_off}" if reply.broke_off else str(fault)
            if reply.finish == "length":
                words += "; write a shorter one"
            stopped = STOPPED.match(reply.text)
            kept = text_message(reply, stopped[0] if stopped else None)
            return Turn(kept, (), f"Your action can't be read: {words}.")
        if reply.broke_off and not (found.complete and reply.finish == "length"):
            todo = "Write a shorter one." if reply.finish == "length" else "Write it again."
            return Turn(text_message(reply), (), f"Your reply {reply.broke_off}. {todo}")
        if call is None:
            return Turn(text_message(reply), (), _NOTHING_FOUND)
        return Turn(text_message(reply, found.kept or reply.text), (call,))

    def show(self, results: Sequence[tuple[ToolCall, str]]) -> list[Message]:
        """The result as an observation; what is wrong with an answer is said plainly."""
        return [
            user(
                f"{text}\nReply with <final_answer>{self._answer_form()}</final_answer>."
                if call.name == RESOLVE
                else f"<observation>\n{without_tags(text)}\n</observation>\n\n{self._task}{_NEXT}"
            )
            for call, text in results
        ]

    def _call(self, found: XmlReply, reply: AssistantMessage, round: int) -> ToolCall | None:
        if found.action is not None:
            return self._bound_call(found.action, round)
        if found.answer is not None:
            return self._answer_call(found.answer, round)
        return self._untagged_call(reply, round)

    def _untagged_call(self, reply: AssistantMessage, round: int) -> ToolCall | None:
        """A call that is the whole reply, or written in the form of another dialect."""
        if reply.tool_calls:
            return reply.tool_calls[0]
        try:
            action = read_action(reply.text.strip().strip("`"))
        except XmlFault:
            pass
        else:
            return self._bound_call(action, round) if action.name in self._tools else None
        try:
            return json_call(json_value(reply.text), round)
        except NotOneValue:
            return None

    def _answer_call(self, answer: str, round: int) -> ToolCall:
        if self._answer_is_text:
            try:
                wrapped = msgspec.json.decode(answer, type=dict[str, str], strict=True)
            except (msgspec.DecodeError, ValueError, RecursionError):
                wrapped = {}
            if wrapped.keys() != self._answer["properties"].keys():
                return resolve_with_text(answer, round)
        return make_call(RESOLVE, answer, round=round, index=0)

    def _bound_call(self, action: Action, round: int) -> ToolCall:
        tool = self._tools.get(action.name)
        faults: list[str] = []
        arguments = action.named
        if tool is not None:
            arguments = bind_arguments(action, tool, faults)
        call = make_call(action.name, arguments, round=round, index=0)
        if faults and action.name != RESOLVE:  # an answer's faults come from its own schema
            return replace(
                call, arguments="{}", fault="; ".join(faults), raw_arguments=action.source
            )
        return call

    def _answer_form(self) -> str:
        if self._answer_is_text:
            return "the answer"
        if "$defs" in self._answer:
            return f"JSON of this schema: {msgspec.json.encode(self._answer).decode()}"
        return msgspec.json.encode(_example(self._answer)).decode()


_NEXT = (
    "If the observations are enough for this, reply with <final_answer>…</final_answer> now. "
    "Otherwise go on with another <action>."
)
_NOTHING_FOUND = (
    "Your reply has no <action> and no <final_answer>. Go on with "
    "<action>tool(argument=value)</action>, or give the result in <final_answer>…</final_answer>."
)


def bind_arguments(action: Action, tool: ToolDefinition, faults: list[str]) -> dict[str, Any]:
    """Give an action's arguments their names and types, by the tool's schema.

    Values of another type are converted where it is plain what they mean: `"40"` for 40.

    Args:
        faults: gets what doesn't fit.

    Raises:
        XmlFault: a value has no place of its own, so one would be lost.
    """
    properties = _followed_properties(tool.parameters)
    given = dict(action.named)
    names = list(properties)
    positional = list(action.positional)
    if len(positional) == 1 and not given and _is_arguments_object(positional[0], properties):
        given, positional = cast("dict[str, Any]", positional[0]), []
    if len(positional) > len(names):
        head = f"{tool.name}({parameter_words(tool)})"
        raise XmlFault(f"{head} takes {len(names)} arguments, not {len(positional)}")
    for name, value in zip(names, positional, strict=False):
        if name in given:
            raise XmlFault(f"the argument {name!r} is given by name and by place")
        given[name] = value
    if tool.parameters.get("additionalProperties") is False:
        faults += [f"unknown argument {name!r}" for name in given if name not in properties]
    required = required_of(tool.parameters)
    faults += [f"missing argument {name!r}" for name in required if name not in given]
    return {
        name: _converted(name, value, properties.get(name, {}), faults)
        for name, value in given.items()
    }


def _is_arguments_object(value: object, properties: Mapping[str, JsonObject]) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    first = next(iter(properties.values()), JsonObject())
    keys = cast("dict[str, Any]", value).keys()
    return keys <= properties.keys() and "object" not in _json_types(first)


def _converted(name: str, value: object, schema: JsonObject, faults: list[str]) -> object:
    kinds = _json_types(schema)
    if (
        not kinds
        or _json_type(value) in kinds
        or (_json_type(value) == "integer" and "number" in kinds)
    ):
        return value
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, str):
        text = value.lower() if value.lower() in {"true", "false", "null"} else value
        try:
            other: object = msgspec.json.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError):
            other = value
        if _json_type(other) in kinds:
            return other
    elif "string" in kinds and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # not of a float: 1.10 may be a version
    faults.append(
        f"the argument {name!r} must be {' or '.join(sorted(kinds))}, not {_json_type(value)}"
    )
    return value


def _json_types(schema: JsonObject) -> set[str]:
    """The JSON types that a schema allows; empty when it doesn't say."""
    if types := types_of(schema):
        return set(types)
    if values := constants_of(schema):
        return {_json_type(value) for value in values}
    kinds = [
        _json_types(cast("JsonObject", option)) if isinstance(option, dict) else set[str]()
        for option in members_of(schema)
    ]
    return set[str]().union(*kinds) if all(kinds) else set()


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _is_text_result(schema: JsonObject) -> bool:
    """Whether a result is text, wrapped into an object for endpoints that want one."""
    properties = properties_of(schema)
    return [(name, each.get("type")) for name, each in properties.items()] == [("value", "string")]


def _text_requirements(schema: JsonObject) -> list[str]:
    """What the text may be, where its schema says so."""
    (value,) = properties_of(schema).values()
    words: list[str] = []
    options = [each for each in constants_of(value) if isinstance(each, str)]
    if options:
        words.append(f"The final answer is one of: {', '.join(options)}")
    if "description" in value:
        words.append(f"The final answer: {value['description']}")
    return words


def _instructions(tools: Sequence[ToolDefinition], answer: str) -> str:
    done = f"<thought>why the task is done</thought>\n<final_answer>{answer}</final_answer>"
    if not tools:
        return f"Reply in this form:\n\n{done}"
    example = print_action(tools[0].name, _example_arguments(tools[0]))
    return (
        "Work step by step. Each reply is one thought and one action:\n\n"
        "<thought>what to find out next</thought>\n"
        f"<action>{example}</action>\n\n"
        "Then stop: I run the action and give you its result in <observation>. Only I write "
        "observations. Never answer before you have seen what you need in them. "
        f"When you know the answer, reply:\n\n{done}\n\n"
        'In a string, write \\" for a quote, \\n for a new line and \\\\ for a backslash.'
    )


def _followed_properties(schema: JsonObject) -> dict[str, JsonObject]:
    """The schemas of an object's properties, with references followed."""
    return {
        name: each | followed(schema, each) if "$ref" in each else each
        for name, each in properties_of(schema).items()
    }


def _example_arguments(tool: ToolDefinition) -> JsonObject:
    properties = _followed_properties(tool.parameters)
    return {name: _example(properties.get(name, {})) for name in required_of(tool.parameters)}


def _example(schema: JsonObject) -> object:
    if "default" in schema:
        return schema["default"]
    if values := constants_of(schema):
        return values[0]
    if schema.get("type") == "object":
        return {name: _example(each) for name, each in properties_of(schema).items()}
    examples: dict[str, object] = {"integer": 1, "number": 1, "boolean": True, "array": []}
    return next((examples[kind] for kind in sorted(_json_types(schema)) if kind in examples), "…")
