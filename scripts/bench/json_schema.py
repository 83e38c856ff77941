"""Measure what checks arguments against a JSON Schema, and what the check costs a call.

    uv run --with fastjsonschema python scripts/bench/json_schema.py [--repeats N]

The validators: jsonschema-rs, which is used, and fastjsonschema, where it is installed. Then the
whole way of a call: `ToolDefinition.receive` for an injected tool and for one of `@tool`, beside
a typed decoder, and schemas on their way out. Medians over the repeats, in microseconds; the
spread is between the quartiles.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import msgspec

from workflow_agent_react import workspace_tools
from workflow_protocol import schema_of
from workflow_reactor import Profile, ToolDefinition, make_call, response_format

SMALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "offset": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1},
    },
    "required": ["path"],
    "additionalProperties": False,
}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}, "label": {"type": "string"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "points": {"type": "array", "items": {"$ref": "#/definitions/Point"}},
        "kind": {"enum": ["line", "area", "dots"]},
        "style": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^[a-z-]+$"}]},
    },
    "required": ["points", "kind"],
    "definitions": {"Point": POINT},
}
POINTS = [{"x": n, "y": n / 3, "label": str(n)} for n in range(100)]
CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("small", SMALL, {"path": "a.py", "limit": 20}, {"path": 3, "limit": "x"}),
    (
        "100 points",
        LARGE,
        {"points": POINTS, "kind": "line", "style": "thin"},
        {"points": [*POINTS[:50], {"x": "a"}, *POINTS[51:]], "kind": "pie"},
    ),
]


def us(work: Callable[[], object], repeats: int) -> str:
    """The median time of one run and the quartiles, in microseconds."""
    timer = timeit.Timer(work)
    number = max(1, timer.autorange()[0] // 10)
    times = [1e6 * each / number for each in timer.repeat(repeats, number)]
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:9.1f}  ({low:.1f} … {high:.1f})"


def show(what: str, work: Callable[[], object], repeats: int) -> None:
    """Print one line."""
    print(f"{what:<58}{us(work, repeats)}")


class ReadFile(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a tool, as a type."""

    path: str
    offset: int = 1
    limit: int = 20


def rust(schema: dict[str, Any]) -> Callable[[object], list[str]]:
    """What jsonschema-rs makes of a schema; it gives every error."""
    validator = jsonschema_rs.validator_for(schema)

    def check(value: object) -> list[str]:
        return [error.message for error in validator.iter_errors(value)]

    return check


def fast(schema: dict[str, Any]) -> Callable[[object], object] | None:
    """What fastjsonschema makes of a schema; it raises the first error."""
    try:
        library: Any = importlib.import_module("fastjsonschema")
    except ImportError:
        return None
    validate = library.compile(schema)

    def check(value: object) -> object:
        try:
            return validate(value)
        except library.JsonSchemaException as error:
            return error

    return check


def import_ms(module: str) -> float:
    """What importing a module costs beyond starting Python, the best of five."""

    def start(code: str) -> float:
        command = [sys.executable, "-c", code]
        return min(
            timeit.timeit(lambda: subprocess.run(command, check=True), number=1) for _ in range(5)
        )

    return 1e3 * (start(f"import {module}") - start("pass"))


def validators(repeats: int) -> None:
    """Compare the libraries."""
    for name, schema, valid, invalid in CASES:
        ours, theirs = rust(schema), fast(schema)
        show(f"jsonschema-rs   compile {name}", lambda s=schema: rust(s), repeats)
        show(f"jsonschema-rs   check a valid {name}", lambda c=ours, v=valid: c(v), repeats)
        show(f"jsonschema-rs   check an invalid {name}", lambda c=ours, v=invalid: c(v), repeats)
        if theirs is not None:
            show(f"fastjsonschema  compile {name}", lambda s=schema: fast(s), repeats)
            show(f"fastjsonschema  check a valid {name}", lambda c=theirs, v=valid: c(v), repeats)
            show(
                f"fastjsonschema  check an invalid {name}",
                lambda c=theirs, v=invalid: c(v),
                repeats,
            )
            print(f"    jsonschema-rs says:  {ours(invalid)}")
            print(f"    fastjsonschema says: {theirs(invalid)}")


def calls(repeats: int) -> None:
    """Measure what a call goes through."""
    injected = ToolDefinition(name="t", description="", parameters=SMALL)
    own = next(tool for tool in workspace_tools().tools if tool.name == "read_file")
    again = ToolDefinition(name="own", description="", parameters=own.parameters)
    text = json.dumps({"path": "a.py", "limit": 20})
    nulls = json.dumps({"path": "a.py", "offset": None, "limit": 20})
    call, with_null = (make_call("t", each, round=0, index=0) for each in (text, nulls))
    typed = schema_of(ReadFile)
    show("receive  an injected tool", lambda: injected.receive(call), repeats)
    show("receive  an injected tool, a null to drop", lambda: injected.receive(with_null), repeats)
    show("receive  a @tool (validated by itself)", lambda: own.receive(call), repeats)
    show("receive  a @tool, if it were checked twice", lambda: again.receive(call), repeats)
    show("         the same by msgspec", lambda: typed.validate_json(text), repeats)


def schemas(repeats: int) -> None:
    """Measure what a schema goes through on its way out."""
    strict = Profile(strict_schemas=True)
    plain = Profile(refs=False)
    show("send     a strict schema, the first time", lambda: _afresh(strict), repeats)
    show("send     written out, the first time", lambda: _afresh(plain), repeats)
    show("send     a strict schema again", lambda: response_format(LARGE, strict), repeats)
    tool = ToolDefinition(name="t", description="", parameters=LARGE)
    show("send     a tool again", lambda: tool.sent(strict), repeats)


_count = 0


def _afresh(profile: Profile) -> object:
    global _count
    _count += 1
    return response_format({**LARGE, "description": str(_count)}, profile)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    print(f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors")
    print(f"import jsonschema_rs: {import_ms('jsonschema_rs'):.1f} ms")
    if fast({}) is not None:
        print(f"import fastjsonschema: {import_ms('fastjsonschema'):.1f} ms")
    validators(repeats)
    calls(repeats)
    schemas(repeats)


if __name__ == "__main__":
    main()
