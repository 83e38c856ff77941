import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from workflow_agent_react._errors import SandboxUnavailable, ToolError
from workflow_agent_react.shell._environment import command_environment
from workflow_agent_react.shell._sandbox import (
    SandboxFolders,
    SandboxMode,
    sandbox_fault,
    use_sandbox,
    warn_once,
)
from workflow_agent_react.shell._shell import Shell

needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())


async def output(
    workspace: Path,
    command: str,
    *,
    readable: tuple[Path, ...] = (),
    writable: tuple[Path, ...] = (),
) -> str:
    folders = SandboxFolders(readable=readable, writable=writable)
    shell = Shell(sandbox="require", env={}, folders=folders)
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


# Opens for writing, and writes nothing. What a process says of itself is its own.
OPEN_ALL = """
import os, stat, sys
tried = 0
for top in sys.argv[1:]:
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in names):
            try:
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    continue
                tried += 1
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            print("writable:", path)
print("tried", tried)
"""


@needs_sandbox
async def test_nothing_of_the_kernel_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "open_all.py").write_text(OPEN_ALL)

    text = await output(tmp_path, "/usr/bin/python3 open_all.py /proc /sys")

    assert "writable" not in text
    assert int(text.split("tried ")[1].split()[0]) > 500


@needs_sandbox
async def test_the_kernels_settings_stay_unwritable_whatever_namespaces_a_command_makes(
    tmp_path: Path,
) -> None:
    (tmp_path / "open_all.py").write_text(OPEN_ALL)
    mount = "mount -t proc proc /tmp/p; mount -t sysfs sysfs /tmp/s; mount -o remount,rw /proc"
    script = f"mkdir -p /tmp/p /tmp/s; {mount}; /usr/bin/python3 open_all.py /proc /tmp/p /tmp/s"
    wrapped = "".join(
        f"unshare {how} sh -c '{script}' 2>/dev/null;"
        for how in ("-Urm", "-Um", "-Urmpf", "-Umpfn", "-UmpfnC --mount-proc")
    )

    assert "writable" not in await output(tmp_path, wrapped)


@needs_sandbox
async def test_a_command_is_nobodys_root_and_writes_what_the_engine_can_read_and_change(
    tmp_path: Path,
) -> None:
    text = await output(tmp_path, "id -u; id -un; grep CapEff /proc/self/status; echo x > new")

    assert text.startswith("1000\nagent\nCapEff:\t0000000000000000\n")
    state = (tmp_path / "new").stat()
    assert (state.st_uid, state.st_gid) == (os.geteuid(), os.getegid())


@needs_sandbox
@pytest.mark.parametrize("place", ["outside", "in the workspace", "in a readable folder"])
async def test_the_folder_of_uwf_is_hidden_wherever_it_is(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, shown = tmp_path / "proj", tmp_path / "shown"
    own = {"outside": tmp_path, "in the workspace": root, "in a readable folder": shown}[place]
    (own / "uwf").mkdir(parents=True)
    (own / "uwf" / "workflow.yaml").write_text("sk-secret")
    root.mkdir(exist_ok=True)
    monkeypatch.setenv("UWF_HOME", str(own / "uwf"))

    text = await output(
        root, f"cat {own}/uwf/workflow.yaml; echo x > {own}/uwf/x; ls", readable=(shown,)
    )

    assert "sk-secret" not in text
    assert os.listdir(own / "uwf") == ["workflow.yaml"]


@needs_sandbox
async def test_the_folder_of_uwf_is_no_workspace_and_a_folder_in_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("sk-secret")
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("UWF_HOME", str(tmp_path))

    with pytest.raises(ToolError, match="is the folder of uwf itself"):
        await output(tmp_path, "true")
    text = await output(tmp_path / "work", "echo x > f; cat f ../key; ls ..")
    assert "sk-secret" not in text
    assert text.startswith("x\n")


@needs_sandbox
@pytest.mark.parametrize("folder", ["/", "/proc", "/proc/self", "/sys/kernel", "/dev/shm"])
async def test_a_folder_of_the_kernel_is_no_workspace(folder: str) -> None:
    with pytest.raises(ToolError, match="can't be the workspace of a command in the sandbox"):
        await output(Path(folder), "true")


@needs_sandbox
async def test_of_etc_only_what_programs_need_is_shown(tmp_path: Path) -> None:
    text = await output(
        tmp_path, "find /etc -maxdepth 1 -mindepth 1 -printf '%f\\n'; cat /etc/passwd"
    )
    shown = text.splitlines()

    assert {"hosts", "passwd", "group", "ld.so.cache", "nsswitch.conf"} <= set(shown)
    assert {"shadow", "gshadow", "ssh", "sudoers", "machine-id", "pip.conf"}.isdisjoint(shown)
    assert "agent:x:1000:" in text
    assert len([line for line in shown if line.count(":") == 6]) == 3  # no user of this machine


@needs_sandbox
async def test_of_the_root_only_programs_are_shown(tmp_path: Path) -> None:
    text = await output(tmp_path, "ls -A / /var /var/lib 2>/dev/null; ls /root /home")
    programs = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "opt", "nix", "gnu"}
    below = {"lib", "tmp", "guix", "dpkg", "gems", "ghc", "texmf"}
    made = {"dev", "proc", "sys", "tmp", "etc", "var", "/:", "/var:", "/var/lib:"}

    assert set(text.partition("ls:")[0].split()) <= programs | below | made


@needs_sandbox
async def test_what_is_made_for_the_sandbox_cannot_be_written_or_filled(tmp_path: Path) -> None:
    text = await output(
        tmp_path,
        "for f in / /etc /dev /sys /usr /var /etc/hosts /etc/gitconfig; do "
        "(echo x > $f/x || echo x > $f) 2>/dev/null && echo wrote $f; done; true",
    )

    assert text.startswith("[exit code 0")


@needs_sandbox
async def test_folders_can_be_shown_and_made_writable(tmp_path: Path, home: Path) -> None:
    root, cache, gone = tmp_path / "proj", home / "cache", home / "gone"
    root.mkdir()
    (cache / "kept").mkdir(parents=True)

    text = await output(
        root,
        f"echo x > {cache}/new; echo x > {cache}/kept/new; cat {cache}/new; ls {home}",
        writable=(cache, gone),
        readable=(cache / "kept", gone),
    )

    assert "x\n" in text
    assert (cache / "new").read_text() == "x\n"
    assert not (cache / "kept" / "new").exists()


@needs_sandbox
async def test_a_home_folder_in_a_folder_that_is_shown_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, root = tmp_path / "shown" / "me", tmp_path / "proj"
    (me / "tools").mkdir(parents=True)
    (me / "key").write_text("sk-secret")
    (me / "tools" / "tool").write_text("a tool\n")
    root.mkdir()
    monkeypatch.setenv("HOME", str(me))

    script = f"cat {me}/key {me}/tools/tool; echo x > {me}/new"
    text = await output(root, script, readable=(tmp_path / "shown", me / "tools"))

    assert "sk-secret" not in text
    assert "a tool\n" in text
    assert not (me / "new").exists()


@needs_sandbox
async def test_a_workspace_may_lie_in_var_tmp() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        script = (
            "echo fine > file; echo fine > /var/tmp/other; cat file /var/tmp/other; ls /var/tmp"
        )
        text = await output(Path(folder), script)

    assert text.splitlines()[:4] == ["fine", "fine", "other", Path(folder).name]


@needs_sandbox
async def test_a_socket_is_reached_where_it_is_shown_and_nowhere_else(home: Path) -> None:
    root, shown = home / "proj", home / "shown"
    for folder in (root, shown):
        folder.mkdir()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
        places = [root / "s", shown / "s", home / "s", Path(elsewhere) / "s"]
        servers = [socket.socket(socket.AF_UNIX) for _ in places]
        for server, place in zip(servers, places, strict=True):
            server.bind(str(place))
            server.listen()
        code = (
            "import socket, sys\n"
            "for path in sys.argv[1:]:\n"
            "    try: socket.socket(socket.AF_UNIX).connect(path); print(path)\n"
            "    except OSError: pass\n"
        )
        paths = " ".join(map(str, places))

        text = await output(root, f"/usr/bin/python3 -c '{code}' {paths}", readable=(shown,))

        for server in servers:
            server.close()
    assert text.partition("[exit")[0].splitlines() == [str(place) for place in places[:2]]


PROGRAMS = {
    "python": "/usr/bin/python3 -c 'import ssl, ctypes, sqlite3, zoneinfo, socket; "
    'ssl.create_default_context(); print(socket.gethostbyname("localhost"), "fine")\'',
    "gcc": "printf 'int puts(const char *); int main(){{puts(\"fine\");}}' > x.c; "
    "gcc -o /tmp/x x.c && /tmp/x",
    "node": 'node -e \'console.log(require("os").userInfo().username, "fine")\'',
    "perl": "perl -MPOSIX -e 'print \"fine\"'",
    "java": "java -version 2>&1 && echo fine",
    "openssl": "openssl rand -hex 3 && echo fine",
    "git": "git init -q x && git -C x commit -q --allow-empty -m fine && git -C x log",
    "make": "printf 'all:\\n\\t@echo fine\\n' | make -f -",
    "locale": "date && whoami && getent hosts localhost && echo fine",
}


@needs_sandbox
@pytest.mark.parametrize("program", PROGRAMS)
async def test_programs_find_what_they_need(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    if program not in {"python", "locale"} and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")

    text = await output(tmp_path, PROGRAMS[program].replace("{{", "{").replace("}}", "}"))

    assert "fine" in text, text
    assert "[exit code 0, " in text, text


@needs_sandbox
async def test_what_is_written_to_standard_output_by_name_arrives(tmp_path: Path) -> None:
    text = await output(tmp_path, "echo a > /dev/stdout; echo b > /dev/stderr; echo c > /dev/fd/1")

    assert text.startswith("a\nb\nc\n[exit code 0")


def test_without_bubblewrap_a_command_runs_and_the_words_say_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_fault.cache_clear()
    warn_once.cache_clear()
    try:
        assert use_sandbox("auto") == (False, "no sandbox: bwrap is not installed")
        assert use_sandbox("auto") == (False, "no sandbox: bwrap is not installed")
        assert use_sandbox("off") == (False, "no sandbox")
        with pytest.raises(SandboxUnavailable, match="bwrap is not installed; install bubblewrap"):
            use_sandbox("require")
        assert [record.getMessage() for record in caplog.records] == [
            "commands run without a sandbox: bwrap is not installed"
        ]
    finally:
        sandbox_fault.cache_clear()


@pytest.mark.parametrize("mode", ["off", "auto", "require"])
def test_the_rule_of_the_machine_goes_before_what_a_workflow_says(
    mode: SandboxMode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UWF_SANDBOX", "require")
    if not sandbox_fault():
        assert use_sandbox(mode) == (True, "sandbox")
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_fault.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match=r"`sandbox: auto` in workflow\.yaml"):
            use_sandbox(mode)
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
