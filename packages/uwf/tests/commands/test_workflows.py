"""`uwf bundle`, `add` and `workflow list`."""

import gc
import os
import signal

import anyio
import pytest

from ..cli import Cli, until

BAD_ENTRIES: list[tuple[str, str | None, str]] = [
    ("none.py", None, "none.py"),
    ("notes.txt", "hello", "notes.txt"),
    ("empty.py", "", "it is empty"),
    ("norun.py", "x = 1", "it has no `run`"),
    ("number.py", "run = 3", "its `run` is of type int, not a workflow"),
    ("broken.py", "def (", "broken.py:1"),
    ("missing.py", "import not_a_module_anywhere", "not_a_module_anywhere"),
    ("raises.py", "\nraise ValueError('at import')", "raises.py:2"),
    ("environ.py", "import os\nos.environ['SOME_KEY_OF_MINE']", "without environment variables"),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD_ENTRIES, ids=lambda each: str(each)[:12])
async def test_a_bad_entry_is_one_clear_line_and_leaves_nothing(
    uwf: Cli, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        uwf.write(name, text)
    for command in (["bundle", name], ["add", "some-name", name], ["run", f"./{name}", "x"]):
        done = await uwf(*command)
        assert done.code == 1
        assert words in done.err
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) == 1
        assert done.out == ""
    assert not (uwf.home / "bundles").exists()
    assert (await uwf("workflow", "list")).out == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import asyncio\nasync def f(): ...\nasyncio.run(f())\n", "running event loop"),
        ("class Odd(BaseException): ...\nraise Odd('odd')\n", "Odd: odd"),
        ("raise SystemExit\n", "must not end the process"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine")
async def test_an_import_with_side_effects_is_refused_alike_by_every_command(
    uwf: Cli, text: str, words: str
) -> None:
    uwf.write("odd.py", text)
    for command in (["bundle", "odd.py"], ["add", "odd-one", "odd.py"], ["run", "odd.py", "x"]):
        done = await uwf(*command)
        assert (done.code, words in done.err) == (1, True), done.err
        assert "Traceback" not in done.err
    gc.collect()  # the coroutine that nobody awaits, while its warning is ignored


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_check_that_is_interrupted_leaves_no_process(uwf: Cli, end: signal.Signals) -> None:
    marker = uwf.folder.parent / "started"
    lines = [
        "import os, time",
        f"open('{marker}.new', 'w').write(str(os.getpid()))",
        f"os.rename('{marker}.new', '{marker}')",
        "time.sleep(1000)",
    ]
    uwf.write("hang.py", "\n".join(lines))
    with anyio.fail_after(40):
        async with await uwf.start("bundle", "hang.py") as process:
            await until(marker.exists)
            process.send_signal(end)
            assert await process.wait() == 130
    child = int(marker.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
