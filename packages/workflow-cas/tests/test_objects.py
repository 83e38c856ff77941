from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import StoreFormat, content, node, restore
from workflow_protocol import Hash

A, B = Hash("a" * 64), Hash("b" * 64)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


class Point(msgspec.Struct):
    y: int
    x: int
    names: dict[str, int]


def test_a_content_is_named_by_its_kind_its_length_and_its_bytes() -> None:
    # printf 'content 5\0hello' | sha256sum
    expected = "72a8ba297a009b46dce95674a2ecc372e4b03a627ffa3106acca6d20a39992a2"
    assert content("hello").hash == content(b"hello").hash == expected


def test_a_node_has_one_spelling_that_never_changes() -> None:
    stored = node("state", {"b": [1, 2.5, None, True], "a": 'é\u2028"</', "": {}}, [B, A, B])
    assert (
        stored.data
        == (
            '{"payload":{"":{},"a":"é\u2028\\"</","b":[1,2.5,null,true]},'
            f'"refs":["{B}","{A}"],"type":"state"}}'
        ).encode()
    )
    assert stored.refs == (B, A)
    assert stored.hash == "fb40026578dbdb737eb80d05c01fa1d08c748983aaa3d3b27b80b5d6a4fd58c5"


def test_a_struct_and_a_dict_of_the_same_fields_are_the_same_node() -> None:
    point = Point(y=1, x=2, names={"b": 1, "a": 2})
    assert node("p", point) == node("p", {"x": 2, "names": {"a": 2, "b": 1}, "y": 1})
    assert node("p", point).as_node().read(Point) == point


def test_a_node_that_is_read_as_what_it_is_not_says_so() -> None:
    with pytest.raises(StoreFormat, match=r"'p'.*Point.*Expected `object`, got `int`"):
        node("p", 1).as_node().read(Point)


def test_a_content_is_no_node_whatever_its_text() -> None:
    with pytest.raises(StoreFormat, match="is a content"):
        content(node("p", 1).data).as_node()
    assert content("text é").text() == "text é"


@pytest.mark.parametrize("ref", ["", "abc", "A" * 64, "g" * 64, "a" * 65, "a" * 64 + "\n"])
def test_a_ref_that_is_no_full_hash_is_refused(ref: str) -> None:
    with pytest.raises(ValueError, match="not a hash"):
        node("p", 1, [Hash(ref)])


def test_what_json_can_not_hold_is_refused() -> None:
    for payload in ({1: "number as key"}, object(), {"deep": [{1: 2}]}):
        with pytest.raises(TypeError):
            node("p", payload)
    for text in ("lone \ud800", {"key \udfff": 1}):
        with pytest.raises(ValueError, match="surrogates"):
            node("p", text)
    with pytest.raises(ValueError, match="surrogates"):
        content("lone \ud800")


@given(VALUES)
def test_a_payload_comes_back_as_it_was(value: object) -> None:
    read = node("value", value, [A]).as_node()
    assert (read.type, read.refs) == ("value", (A,))
    assert read.read(object) == value


@given(VALUES)
def test_writing_what_was_read_gives_the_same_node(value: object) -> None:
    stored = node("value", value)
    again = msgspec.json.decode(stored.data)
    assert node(again["type"], again["payload"], again["refs"]) == stored


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: object, rnd: random.Random) -> None:
    assert node("value", shuffled(value, rnd)) == node("value", value)


@given(VALUES, VALUES)
def test_different_values_are_different_nodes(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (node("value", one).hash == node("value", other).hash) is same


@given(st.binary())
def test_the_same_bytes_never_are_both_a_content_and_a_node(data: bytes) -> None:
    assert content(data).data == data
    assert content(node("value", data.hex()).data).hash != node("value", data.hex()).hash


def test_another_process_with_another_hash_seed_and_locale_agrees() -> None:
    values: list[object] = []

    @given(VALUES)
    def collect(value: object) -> None:
        values.append(value)

    collect()
    lines = "".join(json.dumps(value) + "\n" for value in values)
    expected = [node("value", value, [Hash("0" * 64)]).hash for value in values]
    assert len(expected) >= 50
    for seed, locale in (("0", "C"), ("1", "tr_TR.UTF-8"), ("4242", "de_DE.ISO-8859-1")):
        output = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("child.py")), "hashes"],
            input=lines,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "0"},
        ).stdout
        assert output.split() == expected


def shuffled(value: object, rnd: random.Random) -> object:
    match value:
        case list():
            return [shuffled(item, rnd) for item in cast("list[object]", value)]
        case dict():
            items = list(cast("dict[str, object]", value).items())
            rnd.shuffle(items)
            return {key: shuffled(item, rnd) for key, item in items}
        case _:
            return value


def test_an_object_is_restored_from_its_bytes_and_from_no_others() -> None:
    text = content("text")
    made = node("state", {"role": "planner"}, [text.hash])
    for each in (text, made):
        assert restore(each.hash, each.kind, each.data) == each
        assert restore(each.hash, each.kind, each.data + b" ") is None
        assert restore(text.hash, "node", each.data) is None
    deep = b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b',"refs":[],"type":"a"}'
    hash = Hash(hashlib.sha256(b"node %d\0" % len(deep) + deep).hexdigest())
    assert restore(hash, "node", deep) is None
