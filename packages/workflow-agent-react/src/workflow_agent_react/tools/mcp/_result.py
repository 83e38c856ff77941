"""From the result of a call to the text for the model. What happened is told as done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from workflow_agent_react._errors import ToolError
from workflow_agent_react.tools.mcp._lines import ODD_RESULT, as_json
from workflow_protocol import JsonObject
from workflow_reactor import schema_faults


def result_text(result: JsonObject, output_schema: JsonObject | None) -> str:
    """What a call gave. What isn't shown is named, what isn't as announced is said below.

    Raises:
        ToolError: the server says that the call failed; the message is what it gave.
    """
    notes: list[str] = []
    texts = list(_texts(result, notes))
    structured = result.get("structuredContent")
    if structured is not None and not _says_the_same(texts, structured):
        texts.append(as_json(structured))
    if not texts and not notes:
        rest = {key: value for key, value in result.items() if key not in _EXPECTED}
        texts += [as_json(rest)] if rest else []
    failed = str(result.get("isError")).lower() == "true"
    if not failed and output_schema is not None:
        notes += _misfits(structured, output_schema)
    text = "\n".join(filter(None, texts)) or ("" if failed else "done")
    if notes:
        text = f"{text}\n(The call was carried out. {' '.join(notes)})"
    if failed:
        raise ToolError(text.strip() or "the tool failed and gave no reason")
    return text


_EXPECTED = frozenset({"content", "isError", "structuredContent", "_meta", "resultType"})


def _texts(result: JsonObject, notes: list[str]) -> Iterator[str]:
    if ODD_RESULT in result:
        odd = result[ODD_RESULT]
        notes.append(f"Its result is {_kind(odd)}, where an object is due.")
        yield odd if isinstance(odd, str) else "" if odd is None else as_json(odd)
        return
    content = result.get("content", [])
    if not isinstance(content, list):
        notes.append(f"Its `content` is {_kind(content)}, where a list is due.")
        content = [] if content is None else [content]
    if result.get("resultType", "complete") != "complete":
        notes.append(f"The server wants {result['resultType']!r} first, which isn't supported.")
    for block in cast("list[object]", content):
        yield _block(block, notes)


def _block(block: object, notes: list[str]) -> str:
    """Text as it is; of what a text model can't see, what and how large it is."""
    if isinstance(block, str):
        notes.append("A block of its content is bare text.")
        return block
    if not isinstance(block, dict):
        notes.append(f"A block of its content is {_kind(block)}.")
        return as_json(block)
    fields = cast("JsonObject", block)
    match fields.get("type"):
        case "text" if isinstance(fields.get("text"), str):
            return fields["text"]
        case "image" | "audio" as kind:
            return f"({_facts(kind, fields, 'data')}, not shown)"
        case "resource" if isinstance(fields.get("resource"), dict):
            return _resource(fields["resource"])
        case "resource_link":
            words = fields.get("description") or fields.get("title")
            about = f": {words}" if isinstance(words, str) else ""
            name = fields.get("name", "a resource")
            return f"({_facts(f'link to {name}', fields, '')}{about})"
        case kind:
            notes.append(f"A block of its content is of the unknown type {kind!r}.")
            return as_json(fields)


def _resource(resource: JsonObject) -> str:
    text = resource.get("text")
    if isinstance(text, str):
        return f"({_facts('resource', resource, '')})\n{text}"
    return f"({_facts('resource', resource, 'blob')}, not shown)"


def _facts(kind: str, fields: Mapping[str, object], data_key: str) -> str:
    """Kind, URI, MIME type and size, as far as they are known."""
    facts = [kind]
    facts += [str(fields[key]) for key in ("uri", "mimeType") if isinstance(fields.get(key), str)]
    data = fields.get(data_key)
    size = len(data.rstrip("=")) * 3 // 4 if isinstance(data, str) else fields.get("size")
    if isinstance(size, int):
        facts.append(f"{size:,} bytes")
    return ", ".join(facts)


def _says_the_same(texts: list[str], structured: object) -> bool:
    """Whether the structured content stands in the text, as it should for older clients."""
    if not texts:
        return False
    values = [_read(text) for text in texts]
    wanted = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:  # a wrapped bare value
        wanted.append(cast("JsonObject", structured)["result"])
    return (len(values) == 1 and (values[0] in wanted or texts[0] in wanted)) or (
        values in wanted or texts in wanted
    )


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _misfits(structured: object, schema: JsonObject) -> Iterator[str]:
    if structured is None:
        yield "The server announced structured content, and gave none."
        return
    faults = schema_faults(schema, structured)
    if faults:
        shown = "; ".join(map(str, faults[:3]))
        yield f"Its structured content isn't as announced: {shown}."


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "an array"
        case str():
            return "a string"
        case dict():
            return "an object"
        case _:
            return as_json(value)
