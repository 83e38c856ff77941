import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from workflow_agent_react._errors import SandboxUnavailable
from workflow_agent_react.shell._sandbox import command_environment, sandbox_fault, use_sandbox
from workflow_agent_react.shell._shell import Shell

needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())


async def output(workspace: Path, command: str, *, readable: tuple[Path, ...] = ()) -> str:
    shell = Shell(sandbox="require", env={}, readable=readable)
    return await shell.run(workspace, command, timeout_s=20)


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        yield Path(folder)


SECRETS = ["OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET", "DB_PASSWORD", "AWS_CREDENTIALS", "X"]


@pytest.mark.parametrize("sandboxed", [False, True])
def test_the_environment_is_a_fixed_few(monkeypatch: pytest.MonkeyPatch, sandboxed: bool) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "sk-secret")

    env = command_environment({"JAVA_HOME": "/opt/java"}, sandboxed=sandboxed)

    assert "sk-secret" not in env.values()
    assert env.keys() - {"USER", "LOGNAME", "TZ"} == {
        "PATH", "HOME", "LANG", "LC_ALL", "TERM", "PAGER", "GIT_PAGER", "JAVA_HOME",
    }  # fmt: skip
    assert (env["LANG"], env["LC_ALL"], env["TERM"]) == ("C.UTF-8", "C.UTF-8", "dumb")
    assert env["HOME"] == ("/tmp" if sandboxed else os.environ["HOME"])


async def test_no_key_of_the_engine_reaches_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "sk-secret")

    text = await Shell(sandbox="off", env={}).run(
        tmp_path, "env; tr '\\0' '\\n' < /proc/$PPID/environ", timeout_s=20
    )

    assert "sk-secret" not in text
    assert "LANG=C.UTF-8" in text


def existing(paths: Sequence[str | Path]) -> list[str | Path]:
    return [path for path in paths if os.path.lexists(path)]


def make_environment(folder: Path) -> None:
    """As `uv venv` does, for an interpreter that the sandbox can see."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/usr/bin/python3")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")


@needs_sandbox
async def test_the_sandbox_can_write_to_the_workspace_and_its_own_tmp_alone(
    tmp_path: Path,
) -> None:
    root = tmp_path / "proj"
    root.mkdir()
    (tmp_path / "theirs").write_text("theirs")
    targets = [tmp_path / "theirs", tmp_path / "new", "/etc/uwf", "/usr/uwf", "/uwf", "/var/uwf"]
    tries = "".join(
        f"(echo x > {target}) 2>/dev/null && echo wrote {target};" for target in targets
    )

    text = await output(root, f"{tries} echo a > inside && echo b > /tmp/t && cat inside /tmp/t")

    assert "a\nb\n[exit code 0, " in text
    assert (root / "inside").read_text() == "a\n"
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert existing([*targets[1:], "/tmp/t"]) == []


@needs_sandbox
async def test_home_folders_and_password_files_are_hidden(tmp_path: Path, home: Path) -> None:
    (home / "key").write_text("sk-secret")

    text = await output(tmp_path, f"cat {home}/key /etc/shadow; ls -A ~ {Path.home()} /run")

    assert "sk-secret" not in text
    assert home.name not in text.partition("/tmp:")[2]
    assert "\nroot:" not in f"\n{text}"  # a line of /etc/shadow


@needs_sandbox
async def test_a_workspace_in_a_home_folder_works_and_the_rest_of_it_stays_hidden(
    home: Path,
) -> None:
    (home / "key").write_text("sk-secret")
    root = home / "proj"
    root.mkdir()

    text = await output(root, "pwd; echo x > f; cat f ../key; ls ..")

    assert text.startswith(f"{root}\nx\n")
    assert "sk-secret" not in text
    assert (root / "f").read_text() == "x\n"


@needs_sandbox
async def test_a_folder_can_be_shown_though_it_is_in_a_home(tmp_path: Path, home: Path) -> None:
    (home / "tool").write_text("#!/bin/sh\necho ran\n")
    (home / "tool").chmod(0o755)

    text = await output(tmp_path, f"{home}/tool; echo x > {home}/new", readable=(home,))

    assert text.startswith("ran\n")
    assert not (home / "new").exists()


@needs_sandbox
async def test_there_is_no_network_not_even_to_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"

        text = await output(tmp_path, f'/usr/bin/python3 -c "{code}"')

    assert "ConnectionRefusedError" in text


@needs_sandbox
async def test_other_processes_are_not_seen_and_the_mounts_cannot_be_changed(
    tmp_path: Path,
) -> None:
    text = await output(
        tmp_path,
        "cat /proc/[0-9]*/comm; mount -o remount,rw / 2>/dev/null && echo changed; "
        "umount /tmp 2>/dev/null && echo changed",
    )

    assert set(text.partition("[exit code")[0].split()) <= {"bwrap", "sh", "cat"}


@needs_sandbox
async def test_a_virtual_environment_in_the_workspace_keeps_working(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")

    text = await output(tmp_path, ".venv/bin/python -c 'import sys; print(sys.prefix)'")

    assert text.startswith(f"{tmp_path}/.venv\n")


def test_without_bubblewrap_a_command_runs_and_the_words_say_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_fault.cache_clear()
    try:
        assert use_sandbox("auto") == (False, "no sandbox: bwrap is not installed")
        assert use_sandbox("off") == (False, "no sandbox")
        with pytest.raises(SandboxUnavailable, match="bwrap is not installed; install bubblewrap"):
            use_sandbox("require")
    finally:
        sandbox_fault.cache_clear()


def test_a_bubblewrap_that_does_not_work_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bwrap").write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_fault.cache_clear()
    try:
        assert use_sandbox("auto") == (False, "no sandbox: bwrap does not work here")
    finally:
        sandbox_fault.cache_clear()
