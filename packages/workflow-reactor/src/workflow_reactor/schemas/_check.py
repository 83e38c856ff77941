"""Checks arguments against any JSON Schema that an injected tool brings.

By jsonschema-rs: it knows every draft, gives the path and the keyword of all errors at once, and is
maintained (0.61 of autumn 2026). fastjsonschema (2.22) knows draft 7 at most, so `prefixItems` and
`unevaluatedProperties` pass unseen, stops at the first error, and has no details of unions.
Measured by scripts/bench/json_schema.py (AMD EPYC), for arguments of three fields and of a hundred
objects: to compile takes a hundredth of its time (0.02 against 1.8 ms), to check one half and one
fifteenth (13 against 190 microseconds). Importing it takes some 40 ms, so that happens with the
first schema, not with the package.

Nothing is fetched: a reference to another document is an error. A pattern that backtracks more
than `MAX_BACKTRACKS` times is given up, so no schema can hang a check. (The engine that can't
backtrack at all knows no lookahead, which pydantic writes for each `Decimal`.)

Whether a value fits takes the validator a bounded time: it keeps what it found out about a value
and a definition that recurs, and `refuse_unbounded` refuses what multiplies otherwise. All errors
of a value are another matter: of a union that contains itself it lists them for each member in each
member (4 members and 8 levels took a minute). `_explain` asks level by level instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workflow_protocol import Fault, JsonObject
from workflow_reactor.schemas._bounds import BadJsonSchema
from workflow_reactor.schemas._explain import Explainer

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_BACKTRACKS = 100_000

Check = Callable[[object], list[Fault]]


def compile_check(schema: JsonObject) -> Check:
    """Make a function that gives what is wrong with a value.

    Raises:
        BadJsonSchema: it isn't a valid schema, or needs a document beside itself.
    """
    import jsonschema_rs

    try:
        validator = _validator(schema)
    except (ValueError, TypeError, OverflowError, jsonschema_rs.ReferencingError) as error:
        raise BadJsonSchema(_what_is_wrong(error)) from None
    explainer = Explainer(schema, _validator)

    def check(value: object) -> list[Fault]:
        try:
            return [] if validator.is_valid(value) else explainer.faults(value)
        except (ValueError, RecursionError):  # the validator's limit of depth
            return [Fault("$", "nested too deeply")]

    return check


def _validator(schema: JsonObject) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        schema,
        retriever=_fetch_nothing,
        validate_formats=False,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS),
    )


def schema_faults(schema: JsonObject, value: object) -> list[Fault]:
    """What is wrong with a value; nothing where the schema is none that can be used."""
    try:
        return compile_check(schema)(value)
    except BadJsonSchema:
        return []


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of a schema is found in a text, by the validator's engine and limits."""
    try:
        return not _key_validator(pattern).is_valid({text: None})
    except ValueError:  # no pattern, or too much work
        return False


@lru_cache(maxsize=256)
def _key_validator(pattern: str) -> Validator:
    return _validator({"patternProperties": {pattern: False}})


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"it refers to {uri!r}, which is not part of it")


def _what_is_wrong(error: Exception) -> str:
    place = getattr(error, "instance_path", None)
    words = str(getattr(error, "message", "") or error).partition("\n")[0]
    return f"at {'/'.join(map(str, place))!r}: {words}" if place else words
