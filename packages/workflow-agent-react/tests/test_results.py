"""Long results: cut for the model, whole in the record, read on by `read_result`."""

import os
import re
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react import (
    ReactAdapterConfig,
    ToolPart,
    Toolset,
    create_react_adapter,
    tool,
    workspace_tools,
)
from workflow_agent_react._results import MAX_KEPT_CHARS, KeptResults, bounded
from workflow_protocol import DirectJournal, Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor.testing import Reply, Request, ScriptedLlm, call, say

LONG = "".join(f"{n} grün\n" for n in range(60_000))
WORDS = " ".join(f"word{n}" for n in range(1000))


@tool(effect=Effect.READ)
def look() -> str:
    """Give a long text."""
    return WORDS


@tool(effect=Effect.READ, max_result_chars=10)
def short() -> str:
    """Give a short text."""
    return "short"


class Recording(DirectJournal):
    """Keeps what was recorded."""

    def __init__(self) -> None:
        self.records: dict[str, Any] = {}

    async def run(self, key: str, perform: Any, **options: Any) -> Any:
        self.records[key] = await perform()
        return self.records[key]


async def run(
    replies: Sequence[Reply],
    toolset: ToolPart = look,
    journal: Recording | None = None,
    **config: Any,
) -> list[Request]:
    llm = ScriptedLlm([*replies, call("resolve", value=1)])
    adapter = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=toolset, **config))
    ctx = ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="Look.", workspace=Path("/w"), timestamp_ms=0),
        journal=journal or Recording(),
    )
    await adapter("You look.", int)(ctx)
    return llm.requests


def tool_names(request: Request) -> list[str]:
    return [each["function"]["name"] for each in request["tools"]]


def results(request: Request) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def read_on(request: Request) -> bytes:
    """What a model does that follows the marker or the last page's note."""
    shown = results(request)
    found = re.search(r'read_result with hash "(\w+)" and offset (\d+)', shown[0])
    assert found is not None
    offset = re.search(r"read on with offset (\d+)", shown[-1])
    return call("read_result", hash=found[1], offset=int(offset[1] if offset else found[2]))


async def test_a_cut_result_can_be_read_to_its_end() -> None:
    journal = Recording()
    requests = await run([call("look"), *[read_on] * 8], journal=journal, max_result_chars=1100)

    cut, *pages = results(requests[-1])
    head, tail = cut.split("\n[…")[0], cut.split("…]\n")[1]
    assert f"{len(WORDS) - 1100} of {len(WORDS)} characters left out" in cut
    middle = "".join(page.rpartition("\n[characters ")[0] for page in pages)
    assert head + middle == WORDS
    assert WORDS.endswith(tail)
    assert pages[-1].endswith("this is the end]")
    assert journal.records["tool/0/0"].text == WORDS  # whole, once
    described = requests[0]["tools"][1]["function"]["description"]
    assert described == "Read on in a result that was cut: 1000 characters from offset."
    assert len(pages[0].rpartition("\n")[0]) == 1000
    assert [key for key in journal.records if key.startswith("tool/")] == ["tool/0/0"]


async def test_read_result_is_not_offered_where_the_types_of_all_results_are_short() -> None:
    def count() -> int:
        """Count."""
        return 3

    def pick() -> Literal["a", "b"] | None:
        """Pick."""
        return "a"

    def mood() -> "bool | float":
        """Say."""
        return True

    def words() -> str | int:
        """Speak."""
        return "word"

    short = [count, pick, mood]
    assert tool_names((await run([], Toolset.combine(*short)))[0])[-2:] == ["mood", "resolve"]
    offered = tool_names((await run([], Toolset.combine(*short, words)))[0])
    assert offered[-2:] == ["read_result", "resolve"]


async def test_read_result_is_offered_from_the_start_or_never() -> None:
    requests = await run([call("look")], max_result_chars=1000)
    assert tool_names(requests[0]) == tool_names(requests[1]) == ["look", "read_result", "resolve"]

    assert tool_names((await run([], short))[0]) == ["short", "resolve"]
    reading = workspace_tools(shell=False)
    assert "read_result" not in tool_names((await run([], reading))[0])
    assert "read_result" in tool_names((await run([], workspace_tools()))[0])


async def test_what_can_not_be_read_is_told() -> None:
    wrong = [
        call("read_result", hash="nope", offset=0),
        call("look"),
        call("read_result", hash="nope", offset=0),
        call("read_result", offset=0),
    ]
    requests = await run(wrong, max_result_chars=1000)

    texts = results(requests[-1])
    assert texts[0] == (
        "Error: there is no result with hash 'nope'; there are: none: no result was cut so far"
    )
    assert re.search(r"there are: \w{12}$", texts[2])
    assert texts[3].startswith("Error: the arguments don't fit")


async def test_a_tool_that_says_it_is_short_and_is_not_is_cut_without_a_way_on() -> None:
    @tool(effect=Effect.READ, max_result_chars=10)
    def liar() -> str:
        """Say a lot."""
        return WORDS

    (text,) = results((await run([call("liar")], liar, max_result_chars=500))[-1])
    assert "kept as " in text
    assert "read_result" not in text


@given(st.text(min_size=501, max_size=3000), st.integers(500, 600))
def test_pages_are_the_text(text: str, size: int) -> None:
    kept = KeptResults(size, can_read_on=True)
    shown = kept.shown(text)
    found = re.search(r'with hash "(\w+)"', shown)
    if found is None:
        assert shown == text
        return
    read, offset = "", 0
    while offset < len(text):
        arguments = msgspec.json.encode({"hash": found[1], "offset": offset}).decode()
        page, _, note = kept.read(arguments).text.rpartition("\n[characters ")
        assert len(page) <= size
        read += page
        offset = int(note.split()[2])
    assert read == text


def test_what_is_enormous_is_recorded_without_its_middle() -> None:
    text = "a" * MAX_KEPT_CHARS + "b"

    kept = bounded(text)
    assert len(kept) < MAX_KEPT_CHARS + 100
    assert "[… 1 characters were not kept …]" in kept
    assert kept.endswith("ab")


@given(st.integers(0, 700_000))
def test_a_page_of_a_very_long_result_is_the_text(offset: int) -> None:
    kept = KeptResults(16_000, can_read_on=True)
    name = re.search(r'hash "(\w+)"', kept.shown(LONG))
    assert name is not None

    arguments = msgspec.json.encode({"hash": name[1], "offset": offset}).decode()
    page = kept.read(arguments).text.rpartition("\n[characters ")[0]
    assert page == LONG[offset : offset + 15_900]


def test_very_long_results_of_a_turn_take_little_memory() -> None:
    tracemalloc.start()
    try:
        kept = KeptResults(16_000, can_read_on=True)
        for number in range(10):
            kept.shown(f"{number}" + LONG)
        assert tracemalloc.get_traced_memory()[0] < 3 * len(LONG)
    finally:
        tracemalloc.stop()


async def test_control_codes_and_overwritten_frames_of_any_tool_do_not_reach_the_model() -> None:
    @tool(effect=Effect.READ)
    def build() -> str:
        """Build."""
        return "\x1b[32mok\x1b[0m\r\n 10%\r100%\n"

    @tool(effect=Effect.READ)
    def fail() -> str:
        """Fail."""
        raise RuntimeError("\x1b[31mno\x1b[0m")

    both = Toolset.combine(build, fail)
    journal = Recording()
    texts = results((await run([call("build"), call("fail")], both, journal))[-1])

    assert texts == ["ok\n100%\n", "Error: RuntimeError: no"]
    assert journal.records["tool/0/0"].text == "ok\n100%\n"


async def test_an_error_is_cut_as_well() -> None:
    @tool(effect=Effect.READ)
    def fail() -> str:
        """Fail."""
        raise RuntimeError(WORDS)

    (text,) = results((await run([call("fail")], fail, max_result_chars=500))[-1])
    assert text.startswith("Error: RuntimeError: word0")
    assert len(text) < 700


async def test_a_result_or_error_that_is_no_text_or_enormous_is_told_all_the_same() -> None:
    @tool(effect=Effect.READ)
    def names() -> str:
        """Name a file whose name is no UTF-8."""
        return os.fsdecode(b"caf\xe9")

    @tool(effect=Effect.READ)
    def fail() -> str:
        """Fail with it."""
        raise RuntimeError("caf\udce9" * 1_000_000)

    journal = Recording()
    both = Toolset.combine(names, fail)
    requests = await run([call("names"), call("fail")], both, journal)

    text, error = results(requests[-1])
    assert text == "caf\\udce9"
    assert error.startswith("Error: RuntimeError: caf\\udce9caf")
    assert len(journal.records["tool/1/0"].text) < MAX_KEPT_CHARS + 100
    assert msgspec.json.encode(list(journal.records.values()))


async def test_reading_on_does_not_count_as_a_circle_while_the_offset_moves() -> None:
    requests = await run([call("look"), say("hm"), *[read_on] * 8], max_result_chars=1100)
    assert "three times" not in str(requests[-1]["messages"])
