"""A refusal for its content is recorded under its request and its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from workflow_protocol import DirectJournal, ScopedJournal, recorded_result
from workflow_reactor import ContentRefused, HttpLlm, ask_model, user
from workflow_reactor.testing import Wire, http, loopback_server, say

TOO_LONG = Wire(data=http(413))


class Lasting(DirectJournal):
    """Keeps what it recorded, as the journal of a thread does."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def run(self, key: str, perform: Callable[[], Awaitable[Any]], **options: Any) -> Any:
        del options
        value = await perform()
        self.kept[key] = value if isinstance(value, bytes) else msgspec.json.encode(value)
        return value

    def recorded(self, key: str) -> bytes | None:
        return self.kept.get(key)


@pytest.mark.parametrize("scoped", [False, True])
async def test_the_same_request_is_refused_from_the_record_and_another_is_sent(
    scoped: bool,
) -> None:
    kept = Lasting()
    journal = ScopedJournal(kept, "part") if scoped else kept
    async with loopback_server([TOO_LONG, say("short enough")]) as server:
        llm = HttpLlm(server.provider())

        async def ask(text: str) -> str:
            reply = await ask_model(llm, journal, [user(text)], round=0, max_rounds=1)
            return reply.text

        with pytest.raises(ContentRefused) as sent:
            await ask("long")
        with pytest.raises(ContentRefused) as recorded:
            await ask("long")
        assert await ask("short") == "short enough"

    assert (sent.value.attempts, recorded.value.attempts) == (1, 0)
    assert (recorded.value.status, len(recorded.value.messages)) == (413, 1)
    assert str(recorded.value).startswith(str(sent.value))
    assert len(server.bodies) == 2
    assert [key.startswith("part/") for key in kept.kept] == [scoped] * 2


def test_a_journal_that_keeps_nothing_has_nothing() -> None:
    assert recorded_result(DirectJournal(), "llm/0") is None
    assert recorded_result(ScopedJournal(DirectJournal(), "part"), "llm/0") is None
