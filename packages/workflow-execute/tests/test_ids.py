"""Ids of threads."""

import time

from workflow_execute._ids import new_thread_id


def test_ids_are_in_the_order_in_which_they_were_made() -> None:
    ids = [new_thread_id() for _ in range(10_000)]

    assert ids == sorted(set(ids))
    made_ms = int(
        "".join(f"{'0123456789ABCDEFGHJKMNPQRSTVWXYZ'.index(c):05b}" for c in ids[0][:10]), 2
    )
    assert abs(made_ms / 1000 - time.time()) < 60
