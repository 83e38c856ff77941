"""Nulls that stand for absent keys."""

import json
import time
from typing import Any

import pytest

from workflow_reactor.schemas._optional_nulls import drop_optional_nulls

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "limit": {"type": ["integer", "null"], "default": 20},
        "must": {"type": ["integer", "null"]},
        "sub": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "list": {"type": "array", "items": {"$ref": "#"}},
        "any": {},
    },
    "required": ["must"],
}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"note": null, "any": 12345678901234567.89}', '{"any": 12345678901234567.89}'),
        ('{"any": 123456789012345678901234567890, "note": null}',
         '{"any": 123456789012345678901234567890}'),
        ('{"any": [1.0, 1, -0.0, 1e400, 1E2], "note" : null }',
         '{"any": [1.0, 1, -0.0, 1e400, 1E2] }'),
        ('{"must":"\\u00e9\\/","note":null,"any":{"b":1,"a":2,"b":3}}',
         '{"must":"\\u00e9\\/","any":{"b":1,"a":2,"b":3}}'),
        ('{"note":"x","note":null}', "{}"),
        ('{"note":null,"note":"x"}', '{"note":null,"note":"x"}'),
        ('{"n\\u006fte": null}', "{}"),
        ('{"list": [{"note": null, "any": 1.10}, {"any": 1.10, "note": null}]}',
         '{"list": [{"any": 1.10}, {"any": 1.10}]}'),
        ('{"limit": null, "sub": null, "must": null, "any": null}',
         '{"limit": null, "sub": null, "must": null, "any": null}'),
        ('{"note": null, "any": NaN}', '{"note": null, "any": NaN}'),
    ],
)  # fmt: skip
def test_only_the_keys_are_cut_out_of_the_text(text: str, left: str) -> None:
    assert drop_optional_nulls(ORDER, text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"limit": null, "must": null}', '{"must": null}'),
        ('{"must": 1, "sub": {"limit": null, "must": null, "sub": null}}',
         '{"must": 1, "sub": {"must": null}}'),
        ('{"list": [{"must": 1, "limit": null}], "must": null}',
         '{"list": [{"must": 1}], "must": null}'),
    ],
)  # fmt: skip
def test_of_a_schema_that_went_out_strict_each_null_of_an_optional_key_is_absent(
    text: str, left: str
) -> None:
    assert drop_optional_nulls(ORDER, text, strict=True) == left
    assert drop_optional_nulls(ORDER, text) == text


def test_of_members_of_a_union_the_one_whose_keys_were_all_written_is_meant() -> None:
    number: dict[str, Any] = {"type": ["integer", "null"]}
    one: dict[str, Any] = {"type": "object", "properties": {"x": number}}
    other = {
        "type": "object",
        "properties": {"y": number, "z": {"type": "string"}},
        "required": ["z"],
    }
    schema = {"anyOf": [{"$ref": "#/$defs/One"}, other], "$defs": {"One": one}}

    assert drop_optional_nulls(schema, '{"y": null, "z": "q"}', strict=True) == '{"z": "q"}'
    assert drop_optional_nulls(schema, '{"x": null}', strict=True) == "{}"


def test_the_time_grows_with_the_text() -> None:
    def seconds(count: int) -> float:
        item = '{"must": 1, "note": null, "any": "' + "x" * 50 + '"}'
        text = '{"must": 1, "list": [' + ", ".join([item] * count) + "]}"
        started = time.perf_counter()
        left = drop_optional_nulls(ORDER, text)
        assert len(json.loads(left)["list"]) == count
        assert "null" not in left
        return time.perf_counter() - started

    seconds(100)
    assert seconds(8000) < 40 * max(seconds(1000), 0.001)
