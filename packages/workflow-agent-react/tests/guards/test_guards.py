"""Guards and approvals through `create_react_adapter`, on a journal that remembers."""

import dataclasses
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import msgspec
import pytest

from workflow_agent_react import (
    Allow,
    Ask,
    Decision,
    Deny,
    Guard,
    GuardError,
    ProposedCall,
    ReactAdapterConfig,
    Toolset,
    all_of,
    create_react_adapter,
    create_react_agent,
    tool,
    versioned,
)
from workflow_protocol import (
    Answer,
    DirectJournal,
    Effect,
    Event,
    Question,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadId,
    ToolFinished,
)
from workflow_reactor import ToolCall, ToolDefinition
from workflow_reactor.testing import Reply, Request, ScriptedLlm, call, function, say

T = TypeVar("T")


class Remembering(DirectJournal):
    """Keeps results and answers as bytes, as a store would, for the next time the turn is run."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[str, bytes]] = {}
        self.questions: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {}
        self.events: list[Event] = []

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        effect: Effect = Effect.READ,
        digest: str = "",
        **_: Any,
    ) -> T:
        if key in self.records:
            recorded, data = self.records[key]
            assert recorded == digest
            return msgspec.json.decode(data, type=type)
        value = await perform()
        self.records[key] = (digest, msgspec.json.encode(value))
        return value

    async def ask(self, key: str, question: Question) -> Answer:
        self.questions[key] = question
        if key not in self.answers:
            raise Suspended(question.text, key=key)
        return self.answers[key]

    async def note(self, event: Event) -> None:
        self.events.append(event)

    def pending(self) -> list[str]:
        """The keys of the questions that nobody answered."""
        return [key for key in self.questions if key not in self.answers]


@dataclass
class Refunds:
    """A tool that touches the world, another that looks, and what they did."""

    done: list[int] = field(default_factory=list[int])
    looks: int = 0

    def toolset(self) -> Toolset:
        @tool(effect=Effect.UNSAFE)
        async def refund(amount: int) -> str:
            """Pay back."""
            await anyio.lowlevel.checkpoint()
            if amount > 1000:
                raise RuntimeError("the bank refused")
            self.done.append(amount)
            return f"paid {amount}"

        @tool(effect=Effect.READ)
        async def look(order: int, note: str = "") -> str:
            """Look up an order."""
            await anyio.lowlevel.checkpoint()
            self.looks += 1
            return f"order {order} is late"

        return Toolset.combine(refund, look)


@dataclass
class Desk:
    """A role with these tools and guards; `sit` carries its turn out once."""

    replies: Sequence[Reply]
    guards: Sequence[Guard]
    journal: Remembering = field(default_factory=Remembering)
    refunds: Refunds = field(default_factory=Refunds)
    requests: list[Request] = field(default_factory=list[Request])

    async def sit(self) -> str:
        asked = sum(key.startswith("llm/") for key in self.journal.records)
        llm = ScriptedLlm(self.replies[asked:])
        self.requests = llm.requests
        config = ReactAdapterConfig(llm=llm, toolset=self.refunds.toolset(), guards=self.guards)
        ctx = ThreadContext(
            thread_id=ThreadId("T"),
            start=StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0),
            journal=self.journal,
        )
        with anyio.fail_after(5):
            return await create_react_adapter(config)("You help.", str)(ctx)

    def told(self) -> list[str]:
        """What the model was told after its last reply but one."""
        messages = self.requests[-1]["messages"]
        last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
        return [message["content"] for message in messages[last + 1 :]]


def context() -> ThreadContext:
    start = StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start)


def resolve(text: str) -> bytes:
    return call("resolve", value=text)


def no_large_ones(call: ProposedCall, ctx: ThreadContext) -> Decision:
    if call.name == "refund" and call.arguments["amount"] > 100:
        return Deny("refunds above 100 need a supervisor")
    return Allow()


async def ask_for_refunds(call: ProposedCall, ctx: ThreadContext) -> Decision:
    await anyio.lowlevel.checkpoint()
    if call.tool.effect is Effect.UNSAFE:
        return Ask(f"Pay back {call.arguments['amount']}?")
    return Allow()


def really_refunded(call: ProposedCall, ctx: ThreadContext) -> Decision:
    claims = call.name == "resolve" and "refund proposed" in call.arguments["value"]
    if claims and not call.history.succeeded("refund"):
        return Deny("no refund was made in this turn; make it, or say what is true")
    return Allow()


async def test_a_denial_is_a_result_and_the_call_does_not_run() -> None:
    desk = Desk(
        [call("refund", amount=500), call("refund", amount=5), resolve("ok")], [no_large_ones]
    )

    assert await desk.sit() == "ok"
    assert desk.refunds.done == [5]
    results = [m["content"] for m in desk.requests[-1]["messages"] if m["role"] == "tool"]
    assert results == ["Error: not allowed: refunds above 100 need a supervisor", "paid 5"]


async def test_a_result_that_claims_what_did_not_happen_is_refused() -> None:
    claim = resolve("refund proposed")
    desk = Desk(
        [claim, call("refund", amount=2000), claim, call("refund", amount=9), claim],
        [really_refunded],
    )

    assert await desk.sit() == "refund proposed"
    assert desk.refunds.done == [9]
    refusals = [
        m["content"]
        for m in desk.requests[-1]["messages"]
        if m["role"] == "tool" and "no refund was made" in m["content"]
    ]
    assert len(refusals) == 2


async def test_a_claim_in_the_same_reply_as_the_deed_is_true() -> None:
    reply = say(None, function("refund", amount=9), function("resolve", value="refund proposed"))

    assert await Desk([reply], [really_refunded]).sit() == "refund proposed"


async def test_guards_see_the_result_of_an_agent_in_words() -> None:
    llm = ScriptedLlm([say("refund proposed"), say("sorry, no refund")])
    config = ReactAdapterConfig(llm=llm, guards=[really_refunded])
    start = StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0)

    text = await create_react_agent(config)(
        ThreadContext(thread_id=ThreadId("T"), start=start), "x"
    )
    assert text == "sorry, no refund"
    said = llm.requests[1]["messages"][-1]
    assert said["role"] == "user"
    assert "no refund was made" in said["content"]


async def test_a_question_suspends_the_role_until_a_person_answers() -> None:
    desk = Desk([call("refund", amount=5), resolve("ok")], [ask_for_refunds])

    with pytest.raises(Suspended, match="Pay back 5"):
        await desk.sit()
    assert desk.refunds.done == []
    (key,) = desk.journal.pending()
    assert desk.journal.questions[key].details == 'refund {\n  "amount": 5\n}'

    desk.journal.answers[key] = Answer(approved=True, text="be quick")
    assert await desk.sit() == "ok"
    assert desk.refunds.done == [5]
    assert desk.told() == ["(a person approved this call: be quick)\npaid 5"]

    assert await desk.sit() == "ok"  # replayed: no question, no refund, no model
    assert (desk.refunds.done, desk.requests) == ([5], [])


async def test_a_person_can_decline() -> None:
    desk = Desk([call("refund", amount=5), resolve("ok")], [ask_for_refunds])
    with pytest.raises(Suspended):
        await desk.sit()

    (key,) = desk.journal.pending()
    desk.journal.answers[key] = Answer(approved=False, text="not this customer")
    assert await desk.sit() == "ok"
    assert desk.refunds.done == []
    assert desk.told() == ["Error: a person declined this call: not this customer"]


async def test_all_questions_of_a_reply_are_asked_at_once_and_answered_in_any_order() -> None:
    three = say(None, *[function("refund", amount=n, id=f"k{n}") for n in (1, 2, 3)])
    desk = Desk([three, resolve("ok")], [ask_for_refunds])
    with pytest.raises(Suspended, match="Pay back 1"):
        await desk.sit()

    first, second, third = desk.journal.pending()
    desk.journal.answers[third] = Answer(approved=True)
    desk.journal.answers[second] = Answer(approved=False)
    with pytest.raises(Suspended, match="Pay back 1"):
        await desk.sit()
    assert desk.refunds.done == []

    desk.journal.answers[first] = Answer(approved=True)
    assert await desk.sit() == "ok"
    assert desk.refunds.done == [1, 3]
    assert len(desk.journal.questions) == 3


async def test_calls_before_the_first_question_have_run_once_and_those_behind_it_wait() -> None:
    mixed = say(
        None,
        function("look", order=1, id="a"),
        function("refund", amount=1, id="b"),
        function("look", order=2, id="c"),
        function("resolve", value="early", id="d"),
    )
    desk = Desk([mixed], [ask_for_refunds])
    with pytest.raises(Suspended):
        await desk.sit()
    assert desk.refunds.looks == 1

    (key,) = desk.journal.pending()
    desk.journal.answers[key] = Answer(approved=True)
    assert await desk.sit() == "early"
    assert (desk.refunds.looks, desk.refunds.done) == (2, [1])


async def test_an_approval_covers_one_call_with_its_arguments() -> None:
    replies = [call("refund", amount=5), call("refund", amount=5), resolve("ok")]
    desk = Desk(replies, [ask_for_refunds])
    with pytest.raises(Suspended):
        await desk.sit()
    desk.journal.answers[desk.journal.pending()[0]] = Answer(approved=True)

    with pytest.raises(Suspended):
        await desk.sit()  # the same call again is another deed
    assert desk.refunds.done == [5]
    assert len(desk.journal.questions) == 2


async def test_an_approval_ends_with_the_version_of_the_guard_that_asked() -> None:
    desk = Desk([call("refund", amount=5), resolve("ok")], [versioned(ask_for_refunds, "1")])
    with pytest.raises(Suspended):
        await desk.sit()
    desk.journal.answers[desk.journal.pending()[0]] = Answer(approved=True)

    desk.guards = [versioned(ask_for_refunds, "2")]
    with pytest.raises(Suspended):
        await desk.sit()
    assert desk.refunds.done == []
    desk.journal.answers[desk.journal.pending()[0]] = Answer(approved=True)
    assert await desk.sit() == "ok"


async def test_what_has_happened_is_not_judged_again() -> None:
    replies = [call("refund", amount=500), call("refund", amount=5), resolve("ok")]
    desk = Desk(replies, [no_large_ones])
    assert await desk.sit() == "ok"

    def never(call: ProposedCall, ctx: ThreadContext) -> Decision:
        return Deny("nothing at all")

    desk.guards = [never]
    assert await desk.sit() == "ok"
    assert desk.refunds.done == [5]


async def test_a_person_may_change_the_arguments_and_the_model_is_told() -> None:
    desk = Desk([call("refund", amount=50), resolve("ok")], [ask_for_refunds, no_large_ones])
    with pytest.raises(Suspended):
        await desk.sit()
    (key,) = desk.journal.pending()
    desk.journal.answers[key] = Answer(approved=True, text="half", arguments='{"amount": 25}')

    assert await desk.sit() == "ok"
    assert desk.refunds.done == [25]
    (told,) = desk.told()
    assert told == ('(a person changed the arguments to {"amount":25} and approved: half)\npaid 25')


async def test_what_is_forbidden_stays_forbidden_when_a_person_changes_the_arguments() -> None:
    desk = Desk([call("refund", amount=50), resolve("ok")], [ask_for_refunds, no_large_ones])
    with pytest.raises(Suspended):
        await desk.sit()
    (key,) = desk.journal.pending()
    desk.journal.answers[key] = Answer(approved=True, arguments='{"amount": 250}')

    assert await desk.sit() == "ok"
    assert desk.refunds.done == []
    assert "refunds above 100" in desk.told()[0]


async def test_arguments_that_are_no_object_are_asked_for_again() -> None:
    desk = Desk([call("refund", amount=50), resolve("ok")], [ask_for_refunds])
    with pytest.raises(Suspended):
        await desk.sit()
    desk.journal.answers[desk.journal.pending()[0]] = Answer(approved=True, arguments="[25]")

    with pytest.raises(Suspended, match="can't be used"):
        await desk.sit()
    desk.journal.answers[desk.journal.pending()[0]] = Answer(approved=True)
    assert await desk.sit() == "ok"
    assert desk.refunds.done == [50]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"amount": "much"}', "parameter 'amount': expected an integer"),
        ('{"sum": 25}', "amount"),
        ("{", "'{' is not one JSON object)"),
    ],
)
async def test_arguments_that_do_not_fit_the_tool_are_told_to_the_person(
    arguments: str, told: str
) -> None:
    desk = Desk([call("refund", amount=50), resolve("ok")], [ask_for_refunds])
    with pytest.raises(Suspended):
        await desk.sit()
    (first,) = desk.journal.pending()
    desk.journal.answers[first] = Answer(approved=True, arguments=arguments)

    with pytest.raises(Suspended):
        await desk.sit()
    (again,) = desk.journal.pending()
    question = desk.journal.questions[again].text
    assert question.startswith("Pay back 50?\n(The arguments that were given instead can't be used")
    assert told in question
    desk.journal.answers[again] = Answer(approved=True, arguments='{"amount": 25}')
    assert await desk.sit() == "ok"
    assert desk.refunds.done == [25]


async def test_a_changed_result_is_validated_and_its_faults_are_told_to_the_person() -> None:
    def ask_at_the_end(call: ProposedCall, ctx: ThreadContext) -> Decision:
        return Ask("Say this?") if call.name == "resolve" else Allow()

    desk = Desk([resolve("x")], [ask_at_the_end])
    with pytest.raises(Suspended):
        await desk.sit()
    wrong = Answer(approved=True, arguments='{"value": 3}')
    desk.journal.answers[desk.journal.pending()[0]] = wrong
    with pytest.raises(Suspended, match=r"can't be used: \$\.value: expected"):
        await desk.sit()
    better = Answer(approved=True, arguments='{"value": "better"}')
    desk.journal.answers[desk.journal.pending()[0]] = better
    assert await desk.sit() == "better"


async def test_the_first_denial_wins_over_questions_and_questions_are_joined() -> None:
    def another(call: ProposedCall, ctx: ThreadContext) -> Decision:
        return Ask("Sure?") if call.name == "refund" else Allow()

    desk = Desk([call("refund", amount=500), resolve("ok")], [another, no_large_ones])
    assert await desk.sit() == "ok"
    assert desk.journal.questions == {}

    desk = Desk([call("refund", amount=5)], [all_of(another, ask_for_refunds)])
    with pytest.raises(Suspended, match="Sure\\?\nPay back 5\\?"):
        await desk.sit()


async def test_a_guard_that_fails_ends_the_role_before_anything_runs() -> None:
    def broken(call: ProposedCall, ctx: ThreadContext) -> Decision:
        raise LookupError(call.arguments["nothing"])

    desk = Desk([call("refund", amount=5)], [broken])
    with pytest.raises(KeyError):
        await desk.sit()
    assert desk.refunds.done == []


async def test_a_guard_that_gives_no_decision_ends_the_role_and_is_named() -> None:
    def forgets(call: ProposedCall, ctx: ThreadContext) -> Decision:
        if call.arguments["amount"] > 100:
            return Deny("too much")
        return None  # pyright: ignore[reportReturnType] - the mistake that is tested

    desk = Desk([call("refund", amount=5)], [forgets])
    with pytest.raises(GuardError, match=r"forgets.*returned None; return Allow\(\)"):
        await desk.sit()
    assert desk.refunds.done == []


async def test_a_guard_that_changes_the_call_ends_the_role() -> None:
    def halves(call: ProposedCall, ctx: ThreadContext) -> Decision:
        call.arguments["amount"] //= 2
        return Allow()

    desk = Desk([call("refund", amount=50)], [ask_for_refunds, halves])
    with pytest.raises(GuardError, match=r"halves.*changed the arguments of 'refund'"):
        await desk.sit()
    assert (desk.refunds.done, desk.journal.questions) == ([], {})


async def test_guards_are_not_asked_about_calls_that_can_not_run() -> None:
    seen: list[str] = []

    def watch(call: ProposedCall, ctx: ThreadContext) -> Decision:
        seen.append(f"{call.name} {json.dumps(call.arguments)}")
        return Allow()

    replies = [
        call("refnd", amount=5),
        call("look", order=[]),
        call("look", order=1),
        resolve("ok"),
    ]
    desk = Desk(replies, [watch])
    assert await desk.sit() == "ok"
    assert seen == ['look {"order": 1, "note": ""}', 'resolve {"value": "ok"}']


@pytest.mark.parametrize("amount", ["500", 500.0])
async def test_guards_see_the_number_that_a_tool_reads_off_a_text(amount: object) -> None:
    replies = [call("refund", amount=amount), call("refund", amount="5"), resolve("ok")]
    desk = Desk(replies, [no_large_ones])  # which compares the amount with a number

    assert await desk.sit() == "ok"
    assert desk.refunds.done == [5]
    (told, _) = [m["content"] for m in desk.requests[-1]["messages"] if m["role"] == "tool"]
    assert told == "Error: not allowed: refunds above 100 need a supervisor"


@pytest.mark.parametrize("amount", ["[500]", None, []])
async def test_what_does_not_fit_is_not_shown_to_guards_and_not_read_another_way_later(
    amount: object,
) -> None:
    replies = [call("refund", amount=amount), resolve("ok")]
    desk = Desk(replies, [no_large_ones])

    assert await desk.sit() == "ok"
    assert desk.refunds.done == []
    (told,) = [m["content"] for m in desk.requests[-1]["messages"] if m["role"] == "tool"]
    assert told.startswith("Error: parameter 'amount': expected an integer, got ")
    assert "tool/0/0" in desk.journal.records


async def test_observers_hear_of_refused_calls() -> None:
    desk = Desk([call("refund", amount=500), resolve("ok")], [no_large_ones])
    await desk.sit()

    finished = [each for each in desk.journal.events if isinstance(each, ToolFinished)]
    assert [(each.name, each.ok) for each in finished] == [("refund", False), ("resolve", True)]


async def test_history_holds_the_arguments_that_guards_saw() -> None:
    seen: list[object] = []

    def watch(call: ProposedCall, ctx: ThreadContext) -> Decision:
        seen.extend([each.arguments for each in call.history.calls] or [call.arguments])
        return Allow()

    assert await Desk([call("look", order=1, note=None), resolve("ok")], [watch]).sit() == "ok"
    assert seen == [{"order": 1, "note": ""}, {"order": 1, "note": ""}]


async def test_history_holds_what_ran_and_what_the_tool_said_without_the_person_s_words() -> None:
    seen: list[tuple[str, int, bool, str]] = []

    def watch(call: ProposedCall, ctx: ThreadContext) -> Decision:
        seen[:] = [(c.name, c.arguments["amount"], c.ok, c.text) for c in call.history.calls]
        return Allow()

    replies = [call("refund", amount=50), call("refund", amount=2000), resolve("ok")]
    desk = Desk(replies, [watch, ask_for_refunds])
    for changed in ('{"amount": 25}', ""):
        with pytest.raises(Suspended):
            await desk.sit()
        (key,) = desk.journal.pending()
        desk.journal.answers[key] = Answer(approved=True, arguments=changed)

    assert await desk.sit() == "ok"
    assert seen == [
        ("refund", 25, True, "paid 25"),
        ("refund", 2000, False, "RuntimeError: the bank refused"),
    ]


async def test_guards_see_the_defaults_of_a_function() -> None:
    seen: list[object] = []

    def watch(call: ProposedCall, ctx: ThreadContext) -> Decision:
        seen.append(call.arguments)
        return Allow()

    @tool
    def act(a: int, b: float = 2.5, c: str | None = None, d: Any = object) -> str:
        """Act; `d` has a default that JSON can't say, so it is left out."""
        return f"{a} {b} {c}"

    llm = ScriptedLlm([call("act", a="1"), resolve("ok")])
    config = ReactAdapterConfig(llm=llm, toolset=act, guards=[watch])
    start = StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0)
    await create_react_adapter(config)("x", str)(
        ThreadContext(thread_id=ThreadId("T"), start=start)
    )
    assert seen == [{"a": 1, "b": 2.5, "c": None}, {"value": "ok"}]


async def test_a_handler_of_your_own_gets_the_arguments_that_guards_saw() -> None:
    got: list[str] = []
    seen: list[str] = []

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        got.append(call.arguments)
        return "done"

    def watch(call: ProposedCall, ctx: ThreadContext) -> Decision:
        if call.name != "resolve":
            seen.append(json.dumps(call.arguments, separators=(",", ":"), ensure_ascii=False))
        return Allow()

    parameters = {"type": "object", "properties": {"n": {"type": "number"}, "s": {}}}
    checked = ToolDefinition(name="checked", description="d", parameters=parameters)
    own = ToolDefinition(name="own", description="d", parameters=parameters, validated=True)
    odd = '{ "n": 1.0,\n "s": ["\\u00e9", 12345678901234567890123, {}] }'
    replies = [say(None, function(name, odd)) for name in ("checked", "own")]
    replies.append(say(None, function("own", '{"n": "5"}')))
    config = ReactAdapterConfig(
        llm=ScriptedLlm([*replies, resolve("ok")]),
        tools=[checked, own],
        tool_handler=handler,
        guards=[watch],
    )
    start = StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0)
    await create_react_adapter(config)("x", str)(
        ThreadContext(thread_id=ThreadId("T"), start=start)
    )
    assert got == seen == ['{"n":1.0,"s":["é",12345678901234567890123,{}]}'] * 2


async def test_a_handler_around_a_function_may_put_in_other_arguments() -> None:
    refunds = Refunds()
    inner = refunds.toolset()

    async def halves(call: ToolCall, ctx: ThreadContext) -> str:
        amount = json.loads(call.arguments)["amount"]
        changed = dataclasses.replace(call, arguments=json.dumps({"amount": amount // 2}))
        return await inner.handler(changed, ctx)

    config = ReactAdapterConfig(
        llm=ScriptedLlm([call("refund", amount=50), resolve("ok")]),
        toolset=Toolset(inner.tools, halves),
        guards=[no_large_ones],
    )
    start = StartStep(prompt="Help.", workspace=Path("/w"), timestamp_ms=0)
    await create_react_adapter(config)("x", str)(
        ThreadContext(thread_id=ThreadId("T"), start=start)
    )
    assert refunds.done == [25]


async def test_a_person_sees_characters_that_have_no_look_as_escapes() -> None:
    def ask(call: ProposedCall, ctx: ThreadContext) -> Decision:
        return Ask("Sure?") if call.name == "look" else Allow()

    desk = Desk(
        [call("look", order=1, note="a\u202eb\u200bc é 😀 \U000e0041"), resolve("ok")], [ask]
    )
    with pytest.raises(Suspended):
        await desk.sit()
    (question,) = desk.journal.questions.values()
    assert '"a\\u202eb\\u200bc é 😀 \\udb40\\udc41"' in question.details


async def test_an_invalid_result_is_refused_alike_when_the_turn_is_carried_out_again() -> None:
    desk = Desk([call("resolve", value=3), resolve("ok")], [no_large_ones])
    assert await desk.sit() == "ok"
    assert await desk.sit() == "ok"
    assert "resolve again" in msgspec.json.decode(desk.journal.records["tool/0/0"][1])[1]
