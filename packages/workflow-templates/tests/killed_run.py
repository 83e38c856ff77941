"""A run in a process of its own, for tests that kill it: `killed_run.py FOLDER`.

It begins the thread, or goes on with the one that is there, and exits with 0 if it is done.
"""

import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parent))
from developers import ISSUE, MENDED, NEW_TEST, developer, write

from workflow_cas import open_store
from workflow_execute import Engine, create_workflow, list_threads, read_thread
from workflow_templates import Author, develop


async def main(folder: Path) -> None:
    """Run it to its end."""
    model = developer([write("calc.py", MENDED), write("test_more.py", NEW_TEST)])
    author = Author(timestamp_s=1_000_000_000)
    template = develop(llm=model, author=author)
    workflow = create_workflow(template.definition, template.binding)
    async with open_store(folder / "threads.sqlite3") as store:
        engine = Engine(store, locks=folder / "locks")
        threads = await list_threads(store)
        if threads and (await read_thread(store, threads[0])).status.state == "completed":
            return  # it was killed after its end
        result = await (
            engine.resume(workflow, threads[0])
            if threads
            else engine.start(workflow, ISSUE, workspace=folder / "project")
        )
        if result.state != "completed" or not result.value.done:
            sys.exit(repr(result))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
