"""Thread files that an earlier version wrote are read for good.

`samples/thread-format-1.uwf` was written by the first version that wrote thread files. Never
change it, and never write it anew: whoever has a file of this format may import it in any later
version. A new format gets a sample of its own beside this one.
"""

import hashlib
from pathlib import Path

from workflow_cas import MemoryStore, content
from workflow_execute import (
    Engine,
    Workflow,
    check_summaries,
    create_workflow,
    export_thread,
    import_thread,
    read_attempts,
    read_thread,
    read_tree,
    workflow_adapter,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Question,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)

SAMPLE = Path(__file__).with_name("samples") / "thread-format-1.uwf"
SHA256 = "eb80b138777f506f929b836de22e5446fa517725eda2f1181e5bee803032e301"
THREAD = ThreadId("01M8Q93F7NYQJY8FYTZEZAXW1X")


def sample_workflow() -> Workflow:
    """What the sample was made with: a model's raw reply, and a child that asks a person."""

    async def read(ctx: ThreadContext) -> int:
        body = f"{ctx.start.prompt}|{len(ctx.steps)}".encode()

        async def perform() -> bytes:
            return b"\xff" * 300 + body

        raw = await ctx.journal.run("llm/0", perform, type=bytes, request=lambda: body)
        return len(raw)

    async def ask(ctx: ThreadContext) -> int:
        answer = await ctx.journal.ask("deploy", Question(text="Deploy it?"))
        return int(answer.approved)

    def task(prompt: str, ctx: ThreadContext) -> str:
        about = f"The task that this is a part of:\n\n{ctx.start.prompt}"
        latest = f"The latest step, by first:\n\n{ctx.steps[-1].content}"
        return f"{prompt}\n\n{about}\n\n{latest}"

    first = RoleDefinition(name="first", system_prompt="Read.", schema=int)
    second = RoleDefinition(name="second", system_prompt="Delegate.", schema=int)
    return create_workflow(
        WorkflowDefinition(table={START: first, first: second, second: END}),
        AdapterBinding(
            in_turn(read).adapters["role-0"],
            overrides={second: workflow_adapter("below", in_turn(read, ask), input=task)},
        ),
    )


async def write_sample(path: Path) -> None:
    """How the sample was made; it stays here so that the next format's is made alike."""
    store = MemoryStore()
    bundle = content("the code of the workflow")
    await store.commit([bundle])
    begun = await Engine(store).start(
        sample_workflow(),
        "Read the page, é.",
        workspace=Path("/"),
        name="sample",
        bundle=bundle.hash,
        tags=["night", "a:b"],
    )
    await export_thread(store, begun.thread_id, path)


async def test_the_sample_of_format_1_is_as_it_was_written_and_is_read(tmp_path: Path) -> None:
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() == SHA256, "never change the sample"
    store = MemoryStore()

    done = await import_thread(store, SAMPLE)

    assert (done.thread_id, len(done.new), done.has_bundle) == (THREAD, 2, True)
    assert (await store.verify()).ok
    assert await check_summaries(store) == []
    tree = await read_tree(store, THREAD)
    (child,) = tree.children
    thread = tree.thread
    assert (thread.prompt, thread.start.tags) == ("Read the page, é.", ("a:b", "night"))
    assert (thread.start.workflow, thread.status.state) == ("sample", "suspended")
    assert [step.value for step in thread.steps] == [b"320"]
    assert thread.start.bundle is not None
    assert (await store.get(thread.start.bundle)).text() == "the code of the workflow"
    ((reply,),) = await read_attempts(store, thread.steps[0].turn)
    assert reply.bytes == b"\xff" * 300 + "Read the page, é.|0".encode()
    engine = Engine(store)
    assert (await engine.replay(sample_workflow(), THREAD)).requests == 1
    below = child.thread.thread_id
    assert (await engine.questions(below)) == {"deploy": Question(text="Deploy it?")}
    await engine.answer(below, "deploy", Answer(approved=True))
    ended = await engine.resume(sample_workflow(), THREAD)
    assert (ended.state, [step.meta for step in ended.steps]) == ("completed", [320, 1])


async def test_the_sample_is_made_alike_by_this_version(tmp_path: Path) -> None:
    await write_sample(tmp_path / "x.uwf")
    store, old = MemoryStore(), MemoryStore()
    made = await import_thread(store, tmp_path / "x.uwf")
    sample = await import_thread(old, SAMPLE)
    assert made.objects == sample.objects
    mine, theirs = await read_thread(store, made.thread_id), await read_thread(old, THREAD)
    assert [step.value for step in mine.steps] == [step.value for step in theirs.steps]
