import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react import ToolError, Toolset, workspace_tools
from workflow_agent_react._errors import OutsideWorkspace, SandboxUnavailable
from workflow_agent_react.shell._sandbox import sandbox_fault
from workflow_protocol import Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor import Profile, ToolCall


def context(workspace: Path) -> ThreadContext:
    start = StartStep(prompt="p", workspace=workspace, timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("01J"), start=start)


async def use(tools: Toolset, workspace: Path, name: str, **arguments: object) -> str:
    text = msgspec.json.encode(arguments).decode()
    call = ToolCall(id="1", name=name, arguments=text)
    return await tools.handler(call, context(workspace))


ALL = [
    *("read_file", "list_files", "search_files", "write_file", "patch_file"),
    *("move_file", "delete_file", "shell_exec"),
]


def test_the_tools_come_in_a_fixed_order_with_their_effects() -> None:
    tools = workspace_tools().tools

    assert [item.name for item in tools] == ALL
    assert [item.effect for item in tools] == [
        Effect.READ,
        Effect.READ,
        Effect.READ,
        Effect.REPEATABLE,
        Effect.UNSAFE,
        Effect.UNSAFE,
        Effect.UNSAFE,
        Effect.UNSAFE,
    ]
    assert [item.json for item in tools] == [item.json for item in workspace_tools().tools]


@pytest.mark.parametrize(
    ("arguments", "effect"),
    [
        ('{"path": "a", "content": "x"}', Effect.REPEATABLE),
        ('{"path": "a", "content": "x", "append": false}', Effect.REPEATABLE),
        ('{"path": "a", "content": "x", "append": true}', Effect.UNSAFE),
        ('{"path": "a", "content": "x", "append": "false"}', Effect.UNSAFE),
        ('{"path": "a", "con', Effect.UNSAFE),
    ],
)
def test_adding_to_a_file_must_not_be_done_twice(arguments: str, effect: Effect) -> None:
    write = workspace_tools().tools[3]

    assert write.effect_of(ToolCall(id="1", name="write_file", arguments=arguments)) is effect


@pytest.mark.parametrize(
    ("shell", "write", "names"),
    [(False, True, ALL[:7]), (True, False, [*ALL[:3], "shell_exec"]), (False, False, ALL[:3])],
)
def test_tools_can_be_left_out(shell: bool, write: bool, names: list[str]) -> None:
    assert [item.name for item in workspace_tools(shell=shell, write=write).tools] == names


def test_what_a_small_model_reads_is_short_and_plain() -> None:
    for item in workspace_tools().tools:
        text = item.sent(Profile(refs=False)).decode()
        assert "$" not in text
        assert '"title"' not in text
        assert item.parameters["additionalProperties"] is False
        for parameter in item.parameters["properties"].values():
            assert 5 < len(parameter["description"]) < 60
        assert len(text) < 900


async def test_a_task_from_looking_to_checking(tmp_path: Path) -> None:
    tools = workspace_tools(sandbox="off")
    (tmp_path / "add.py").write_bytes(b"def add(a, b):\r\n    return a - b\r\n")

    assert await use(tools, tmp_path, "list_files") == "add.py"
    assert "\nadd.py:2:     return a - b\n" in await use(
        tools, tmp_path, "search_files", pattern="return a"
    )
    assert (await use(tools, tmp_path, "read_file", path="add.py", offset=2)).startswith(
        "2|    return a - b\n"
    )
    assert await use(tools, tmp_path, "patch_file", path="add.py", old="a - b", new="a + b") == (
        "patched add.py: 1 place changed, at line 2"
    )
    assert (tmp_path / "add.py").read_bytes() == b"def add(a, b):\r\n    return a + b\r\n"
    check = "from add import add\nassert add(1, 2) == 3\n"
    await use(tools, tmp_path, "write_file", path="check.py", content=check)
    assert (await use(tools, tmp_path, "shell_exec", command="python3 check.py")).startswith(
        "[exit code 0, "
    )


async def test_more_edits_of_one_file_are_made_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    more = [{"old": "two", "new": "2"}]

    text = await use(
        workspace_tools(), tmp_path, "patch_file", path="a", old="one", new="1", more=more
    )

    assert text == "patched a: 2 places changed, at line 1, 2"
    assert (tmp_path / "a").read_text() == "1\n2\n"


async def test_each_call_works_in_the_workspace_of_its_thread(tmp_path: Path) -> None:
    tools = workspace_tools(sandbox="off")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        await use(tools, tmp_path / name, "write_file", path="name", content=name)

    texts = [
        await use(tools, tmp_path / n, "shell_exec", command="cat name") for n in ("one", "two")
    ]

    assert [text.split("\n")[0] for text in texts] == ["one", "two"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {}),
        ("list_files", {}),
        ("search_files", {"pattern": "secret"}),
        ("write_file", {"content": "x"}),
        ("patch_file", {"old": "secret", "new": "x"}),
    ],
)
@pytest.mark.parametrize("path", ["../theirs/f", "out/f", "/etc/hostname", "a/../../theirs/f"])
async def test_every_tool_refuses_a_path_out_with_the_same_error(
    tmp_path: Path, tool: str, arguments: dict[str, object], path: str
) -> None:
    root = tmp_path / "proj"
    (root / "a").mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "f").write_text("secret")
    (root / "out").symlink_to("../theirs")

    with pytest.raises(OutsideWorkspace):
        await use(workspace_tools(), root, tool, path=path, **arguments)

    assert (tmp_path / "theirs" / "f").read_text() == "secret"
    assert await use(workspace_tools(), root, "search_files", pattern="secret") == (
        "no match for 'secret' in 0 files; try another word, or read a likely file"
    )


@pytest.mark.parametrize("tool", ALL)
async def test_a_workspace_that_is_gone_is_told(tmp_path: Path, tool: str) -> None:
    needed = {
        "path": "a",
        "content": "b",
        "old": "c",
        "new": "d",
        "pattern": "e",
        "command": "f",
        "to": "g",
    }
    tools = workspace_tools()
    (definition,) = tools.only(tool).tools
    arguments = {key: needed[key] for key in definition.parameters.get("required", [])}

    with pytest.raises(ToolError, match="the workspace folder"):
        await use(tools, tmp_path / "gone", tool, **arguments)


@given(
    name=st.sampled_from(ALL[:7]),
    path=st.one_of(st.text(max_size=20), st.text("./a~\0\\", max_size=9)),
    text=st.text(max_size=9),
)
@settings(max_examples=150)
def test_whatever_a_model_gives_a_file_tool_answers_or_raises_a_tool_error(
    tmp_path_factory: pytest.TempPathFactory, name: str, path: str, text: str
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "a").write_text("some text\n")
    given = {
        "path": path,
        "content": text,
        "old": text,
        "new": "x",
        "to": text,
        "pattern": text or "x",
    }
    tools = workspace_tools()
    (definition,) = tools.only(name).tools
    arguments = {key: given[key] for key in definition.parameters["properties"] if key in given}

    with suppress(ToolError):
        assert anyio.run(lambda: use(tools, root, name, **arguments))


async def test_commands_get_what_the_caller_names_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    tools = workspace_tools(sandbox="off", env={"GREETING": "hello"})

    text = await use(tools, tmp_path, "shell_exec", command="echo $GREETING $OPENAI_API_KEY.")

    assert text.startswith("hello .\n")


async def test_the_time_for_a_command_is_the_models_within_bounds(tmp_path: Path) -> None:
    tools = workspace_tools(sandbox="off")

    with anyio.fail_after(5), pytest.raises(ToolError, match="it took longer than 1 s"):
        await use(tools, tmp_path, "shell_exec", command="sleep 1000", timeout_s=-3)
    (definition,) = tools.only("shell_exec").tools
    assert definition.timeout_s is not None
    assert definition.timeout_s > 600


def test_a_required_sandbox_that_is_not_there_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_fault.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable):
            workspace_tools(sandbox="require")
        assert len(workspace_tools(sandbox="require", shell=False).tools) == 7
        assert len(workspace_tools(sandbox="auto").tools) == 8
    finally:
        sandbox_fault.cache_clear()


ENGINE = """
import sys, anyio
from pathlib import Path
from workflow_agent_react import workspace_tools
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import ToolCall
start = StartStep(prompt="p", workspace=Path(sys.argv[1]), timestamp_ms=0)
ctx = ThreadContext(thread_id=ThreadId("01J"), start=start)
call = ToolCall(id="1", name="shell_exec", arguments=sys.argv[3])
anyio.run(workspace_tools(sandbox=sys.argv[2]).handler, call, ctx)
"""


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_when_the_engine_is_killed_its_commands_die_too(tmp_path: Path, sandbox: str) -> None:
    command = "mkfifo gone; (setsid sh -c 'exec sleep 1000 3> gone' &); touch begun; sleep 1000"
    arguments = msgspec.json.encode({"command": command}).decode()
    with subprocess.Popen([sys.executable, "-c", ENGINE, tmp_path, sandbox, arguments]) as engine:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        # Opens once the sleeper has opened its end, reads the end when the sleeper is dead.
        with open(tmp_path / "gone", "rb") as held:
            engine.send_signal(signal.SIGKILL)
            assert held.read() == b""


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "out").symlink_to("/etc")
    tools = workspace_tools(sandbox="off")

    async def everything() -> None:
        for path in ("a", "out/passwd", "gone", "a/b", "."):
            for name, more in [
                ("read_file", {}),
                ("list_files", {}),
                ("search_files", {"pattern": "x+"}),
                ("write_file", {"content": "x\n"}),
                ("patch_file", {"old": "y", "new": "z"}),
            ]:
                try:
                    await use(tools, tmp_path, name, path=path, **more)
                except ToolError:
                    continue
        await use(tools, tmp_path, "shell_exec", command="true")

    anyio.run(everything)
    before = len(os.listdir("/proc/self/fd"))
    anyio.run(everything)
    assert len(os.listdir("/proc/self/fd")) == before
