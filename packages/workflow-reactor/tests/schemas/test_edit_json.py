"""Changing parts of a JSON text."""

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor.schemas._edit_json import Edits, decode_value, edit_json

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
keys = st.sampled_from(["a", "b", 'q"\\', "é\n", "[", "{", "1:,"])
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(keys, below, max_size=4),
    max_leaves=12,
)


def parts(value: Any) -> list[tuple[str | int, Any]]:
    """What is in an object or array, each with its key or index."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def changed(value: Any, edits: Edits) -> Any:
    """What the edits make of a value, for comparison."""
    left: dict[Any, Any] = {}
    for key, each in parts(value):
        new = edits.get((id(value), key), "")
        if new is not None:
            left[key] = json.loads(new) if new else changed(each, edits)
    if isinstance(value, dict):
        return left
    return list(left.values()) if isinstance(value, list) else value


@given(values, st.data(), st.sampled_from([None, 1]), st.booleans())
def test_what_is_edited_is_changed_and_nothing_else(
    value: Any, data: st.DataObject, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    decoded = decode_value(text)
    edits: Edits = {}
    waiting: list[Any] = [decoded]
    while waiting:
        each = waiting.pop()
        for key, item in parts(each):
            others = [None] if isinstance(key, str) else []
            new = data.draw(st.sampled_from(["", "", '{"new":[1]}', *others]))
            if new == "":
                waiting.append(item)
            else:
                edits[id(each), key] = new

    result = edit_json(text, decoded, edits)

    # Compared as text: the order of keys stays too.
    assert json.dumps(json.loads(result)) == json.dumps(changed(decoded, edits))
    if not edits:
        assert result == text


def test_a_key_that_stands_twice_is_cut_twice() -> None:
    text = '{"a": 1, "b": 1.10, "\\u0061": null , "c": -0.0}'
    value = decode_value(text)

    assert edit_json(text, value, {(id(value), "a"): None}) == '{"b": 1.10 , "c": -0.0}'
