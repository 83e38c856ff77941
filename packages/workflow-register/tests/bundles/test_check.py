import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from workflow_protocol import Edge, RoleDescription, WorkflowDescription
from workflow_register import EntryError, build_bundle, check_bundle

WORKFLOW = """
from workflow_protocol import END, START, RoleDefinition, WorkflowDefinition

class Workflow:
    def __init__(self, schema=str):
        role = RoleDefinition(
            name="greeter", description="greets", system_prompt="Hi", schema=schema
        )
        self.definition = WorkflowDefinition(
            description="says hello",
            table={START: role, role: END},
        )
"""
DESCRIPTION = WorkflowDescription(
    description="says hello",
    roles={
        "greeter": RoleDescription(
            description="greets", system_prompt="Hi", schema={"type": "string"}
        )
    },
    edges=[Edge(source="__start__", target="greeter"), Edge(source="greeter", target="__end__")],
)


async def check(
    folder: Path, files: Mapping[str, str], *, timeout_s: float = 30
) -> WorkflowDescription:
    for name, text in {"flow.py": WORKFLOW, **files}.items():
        (folder / name).write_text(text)
    checked = await check_bundle(build_bundle(folder / "entry.py"), timeout_s=timeout_s)
    return checked.workflow


async def test_a_workflow_is_described_without_being_imported_here(tmp_path: Path) -> None:
    entry = "from flow import Workflow\nrun = Workflow()\n"
    assert await check(tmp_path, {"entry.py": entry}) == DESCRIPTION


async def test_what_the_import_prints_breaks_nothing(tmp_path: Path) -> None:
    entry = """
import os, sys, subprocess
from flow import Workflow
print("{}" * 200_000)
sys.stderr.write("noise" * 200_000)
os.write(1, b"raw")
subprocess.run([sys.executable, "-c", "print('child')"])
assert sys.stdin.read() == ""
run = Workflow()
"""
    assert await check(tmp_path, {"entry.py": entry}) == DESCRIPTION


async def test_the_import_sees_nothing_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    entry = """
import os
from pathlib import Path
from flow import Workflow
from workflow_register import configured_llm, find_home
llm = configured_llm("anything")
assert not find_home().exists()
assert list(Path.cwd().iterdir()) == [] and Path.home() == Path.cwd()
raise RuntimeError(" ".join(sorted(os.environ)))
"""
    with pytest.raises(EntryError) as caught:
        await check(tmp_path, {"entry.py": entry})
    names = caught.value.reason.removeprefix("RuntimeError: ").split()
    assert set(names) <= {"HOME", "PATH", "TMPDIR", "UWF_HOME", "LC_CTYPE"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("import flow\n", "entry.py: it has no `run`; end it with `run = create_workflow(…)`"),
        ("run = 1\n", "entry.py: its `run` is of type int, not a workflow"),
        ("\nimport nowhere_at_all\n", "entry.py:2: ModuleNotFoundError: No module named 'nowhere"),
        ("import os\nos.environ['KEY']\n", "entry.py:2: KeyError: 'KEY'; an entry must import"),
        (
            "import os, sys\nprint('last', file=sys.stderr, flush=True)\nos._exit(3)\n",
            "entry.py: importing it ended the process (exit code 3); its last words were: last",
        ),
        (
            "import os\nos.kill(os.getpid(), 11)\n",
            "entry.py: importing it ended the process (SIGSEGV)",
        ),
        (
            "import flow, msgspec\n"
            "class S(msgspec.Struct):\n"
            "    x: msgspec.UnsetType | object = 1\n"
            "class R:\n"
            "    def __getattr__(self, name): raise RuntimeError('a trap')\n"
            "run = flow.Workflow()\n"
            "object.__setattr__(run.definition, 'roles', [R()])\n",
            "entry.py: a role's schema can't be given as JSON Schema: a trap; change the role's",
        ),
    ],
)
async def test_what_is_wrong_is_one_clear_line(tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(EntryError) as caught:
        await check(tmp_path, {"entry.py": entry})
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


async def test_an_import_that_hangs_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(EntryError) as caught:
        await check(tmp_path, {"entry.py": "import time\ntime.sleep(600)\n"}, timeout_s=0.5)
    assert str(caught.value) == (
        f"{tmp_path}/entry.py: importing it took longer than 0.5 s; "
        "move work and waiting from the top level into the roles"
    )


LEAVES_A_CHILD = """
import os, subprocess, sys, threading, time
from flow import Workflow
pipe = open({pipe!r}, "wb", buffering=0)
os.set_inheritable(pipe.fileno(), True)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
threading.Thread(target=time.sleep, args=(600,)).start()
pipe.write(b"up")
time.sleep({sleep_s})
run = Workflow()
"""


async def test_what_an_import_leaves_behind_is_killed_and_holds_nothing_up(tmp_path: Path) -> None:
    with held_by_children(tmp_path / "pipe") as pipe, anyio.fail_after(30):
        entry = LEAVES_A_CHILD.format(pipe=str(tmp_path / "pipe"), sleep_s=0)
        assert await check(tmp_path, {"entry.py": entry}) == DESCRIPTION
        await all_are_dead(pipe)


async def test_a_cancelled_check_leaves_no_process(tmp_path: Path) -> None:
    with held_by_children(tmp_path / "pipe") as pipe, anyio.fail_after(30):
        entry = LEAVES_A_CHILD.format(pipe=str(tmp_path / "pipe"), sleep_s=600)
        async with anyio.create_task_group() as group:
            group.start_soon(check, tmp_path, {"entry.py": entry})
            await anyio.wait_readable(pipe)
            group.cancel_scope.cancel()
        await all_are_dead(pipe)


@contextmanager
def held_by_children(path: Path) -> Generator[int]:
    """The reading end of a pipe whose writing end is open as long as a child lives."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def all_are_dead(pipe: int) -> None:
    said = b""
    while said != b"up\0":
        await anyio.wait_readable(pipe)
        said += os.read(pipe, 10) or b"\0"
