import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import DirectJournal, Metered, Usage
from workflow_reactor import (
    AssistantMessage,
    Conversation,
    Frame,
    Framer,
    LlmProvider,
    Profile,
    RequestOptions,
    Secret,
    ToolDefinition,
    ask_model,
    create_llm_fn,
    system,
    user,
)
from workflow_reactor.testing import ScriptedLlm, call, loopback_server, say

ADD = ToolDefinition(name="add", description="Add.", parameters={"type": "object"})
AUTO = RequestOptions(tool_choice="auto")

frames = st.builds(Frame, st.sampled_from([b"[", b"{"]), st.sampled_from([b"]", b"]}"]))


@given(st.lists(st.tuples(st.lists(st.text(), max_size=3), frames), max_size=8))
def test_the_digest_is_that_of_the_body_however_the_conversation_grew(
    rounds: list[tuple[list[str], Frame]],
) -> None:
    conversation = Conversation()
    for texts, frame in rounds:
        conversation.extend(map(user, texts))

        assert conversation.digest(frame) == hashlib.sha256(frame.body(conversation)).hexdigest()
        assert conversation.body(frame) == conversation.body(frame) == frame.body(conversation)


def test_a_conversation_reads_like_a_list() -> None:
    first, second = system("a"), user("b")
    conversation = Conversation([first])
    conversation.append(second)

    assert (list(conversation), len(conversation)) == ([first, second], 2)
    assert (conversation[-1], conversation[:1]) == (second, [first])


def test_each_round_hashes_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = 0

    class Counting:
        def __init__(self, data: bytes = b"") -> None:
            self.update(data)

        def update(self, data: bytes) -> None:
            nonlocal hashed
            hashed += len(data)

        def copy(self) -> "Counting":
            return Counting()

        def hexdigest(self) -> str:
            return ""

    monkeypatch.setattr(hashlib, "sha256", Counting)
    conversation = Conversation()
    frame = Frame(b"{", b"}")
    for _ in range(100):
        conversation.append(user("x" * 1000))
        conversation.digest(frame)

    assert hashed < 110_000


class Recording(DirectJournal):
    def __init__(self) -> None:
        self.digests: list[str] = []
        self.bodies: list[bytes] = []
        self.metered: list[Metered[bytes]] = []
        self.results: list[bytes] = []

    async def run(self, key: str, perform: Any, **options: Any) -> Any:
        self.digests.append(options["digest"])
        self.bodies.append(options["request"]())
        self.metered.append(options["metered"])
        self.results.append(await perform())
        return self.results[-1]


async def test_the_journal_gets_the_digest_and_the_bytes_of_what_is_sent_and_no_key() -> None:
    journal = Recording()
    messages = Conversation([system("s"), user("u")])
    async with loopback_server([call("add"), say("ok")]) as server:
        llm = create_llm_fn(server.provider())
        for round in range(2):
            reply = await ask_model(llm, journal, messages, (ADD,), AUTO, round=round, max_rounds=2)
            messages.extend([reply.message, user("more")])

    assert journal.bodies == server.bodies
    assert journal.digests == [hashlib.sha256(body).hexdigest() for body in server.bodies]
    usage = [each.used(raw) for each, raw in zip(journal.metered, journal.results, strict=True)]
    assert usage == [Usage(input_tokens=10, output_tokens=5, calls=1)] * 2
    assert {each.model for each in journal.metered} == {"scripted"}
    assert b"sk-loopback" not in b"".join(journal.bodies)


def test_the_digest_covers_model_tools_messages_and_options_but_not_where_the_model_is() -> None:
    def digest(tools: tuple[ToolDefinition, ...] = (ADD,), **settings: Any) -> str:
        given: dict[str, Any] = {"base_url": "http://a/v1", "model": "m", **settings}
        provider = LlmProvider(**given)
        return Conversation([user("u")]).digest(create_llm_fn(provider).frame(tools, AUTO))

    assert digest() == digest(base_url="http://b/v1", api_key=Secret("k"), max_attempts=9)
    others = {
        digest(),
        digest(model="n"),
        digest(extra_body={"temperature": 0}),
        digest(profile=Profile(max_tokens=9)),
        digest(tools=()),
    }
    assert len(others) == 5


async def test_the_record_alone_gives_the_identical_message() -> None:
    class Replaying(DirectJournal):
        async def run(self, key: str, perform: Any, **options: Any) -> Any:
            return raw

    raw = call("add", a=1)
    tools = (ADD,)
    fresh = await ScriptedLlm([raw])([user("u")], tools)
    again = await ask_model(ScriptedLlm([]), Replaying(), [user("u")], tools, round=0, max_rounds=1)

    assert isinstance(fresh, AssistantMessage)
    assert again == fresh


def test_a_frame_is_encoded_once_for_each_question() -> None:
    framer = Framer("m", Profile())
    tools = (ADD,)
    first = framer.frame(tools, AUTO)

    assert framer.frame(tools, RequestOptions(tool_choice="auto")) is first
    assert framer.frame(tools, RequestOptions(tool_choice="none")) != first
    changing = [ADD]
    assert framer.frame(changing, AUTO) == first
    changing.append(ToolDefinition(name="b", description="", parameters={"type": "object"}))
    assert len(json.loads(framer.frame(changing, AUTO).body([]))["tools"]) == 2
    assert json.loads(framer.frame((), RequestOptions()).body([])) == {
        "model": "m",
        "stream": False,
        "messages": [],
    }
