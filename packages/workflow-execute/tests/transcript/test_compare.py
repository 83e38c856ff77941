"""Where two JSON values differ, and where two threads do."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore
from workflow_execute import Engine, read_thread
from workflow_execute.testing import in_turn
from workflow_execute.transcript import (
    RecordedThread,
    add_request_bytes,
    compare_threads,
    read_records,
)
from workflow_execute.transcript._json_diff import json_differences
from workflow_protocol import ThreadContext
from workflow_reactor import Conversation, ask_model, user
from workflow_reactor.testing import ScriptedLlm, say

_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_values_differ_somewhere_exactly_when_they_are_not_equal(a: Any, b: Any) -> None:
    differences = list(json_differences(json.dumps(a).encode(), json.dumps(b, indent=1).encode()))
    assert bool(differences) == (json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True))
    assert len({each.path for each in differences}) == len(differences)
    assert all(each.path.startswith("$") for each in differences)


def test_each_difference_has_its_path_and_what_is_missing_is_left_out() -> None:
    a, b = b'{"x": [1, {"y z": 2}], "gone": 1}', b'{"x": [1, {"y z": 3}, 4]}'
    differences = list(json_differences(a, b))
    assert [(each.path, msgspec.json.encode(each)) for each in differences] == [
        ("$.x[1]['y z']", b'{"path":"$.x[1][\'y z\']","a":2,"b":3}'),
        ("$.x[2]", b'{"path":"$.x[2]","b":4}'),
        ("$.gone", b'{"path":"$.gone","a":1}'),
    ]
    (odd,) = json_differences(b"\xff", b"1")
    assert (odd.path, odd.b) == ("$", msgspec.Raw(b"1"))


async def test_the_first_request_that_differs_is_found_by_its_digest() -> None:
    store = MemoryStore()
    llm = ScriptedLlm([say("one"), say("two")] * 2)

    async def recorded(second: str) -> RecordedThread:
        async def turn(ctx: ThreadContext) -> int:
            messages = Conversation([user("first")])
            for round in range(2):
                reply = await ask_model(llm, ctx.journal, messages, round=round, max_rounds=2)
                messages.extend([reply.message, user(second)])
            return 1

        result = await Engine(store).start(in_turn(turn), "x")
        thread = await read_thread(store, result.thread_id)
        return RecordedThread(thread, await read_records(store, thread))

    compared = compare_threads(await recorded("yes"), await recorded("no"))
    assert compared.request is not None
    assert compared.request.a == compared.request.b
    assert compared.request.a is not None
    assert (compared.requests, compared.request.how) == (1, "other bytes")
    assert (compared.request.a.number, compared.request.a.key) == (2, "llm/1")
    (pair,) = compared.steps
    assert (pair.is_shared, pair.differences, pair.a and pair.a.requests) == (False, (), 2)
    told = add_request_bytes(compared, b'{"m": ["yes"]}', b'{"m": ["no"]}')
    assert told.request is not None
    assert [each.path for each in told.request.differences] == ["$.m[0]"]
