"""Git in the sandbox: its daily commands work, and nothing planted there runs on this machine."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from workflow_agent_react.shell._sandbox import SandboxFolders, SandboxMode, sandbox_fault
from workflow_agent_react.shell._shell import Shell

pytestmark = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
HOST = {**CLEAN, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
IDENTITY = ["-c", "user.name=host", "-c", "user.email=host@example.com"]


def git(folder: Path, *words: str | Path) -> str:
    """Git on this machine, as a person runs it."""
    command = ["git", "-C", folder, *IDENTITY, "-c", "protocol.file.allow=always", *words]
    ran = subprocess.run(command, env=HOST, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def shell(
    workspace: Path,
    command: str,
    *,
    sandbox: SandboxMode = "require",
    writable: tuple[Path, ...] = (),
) -> str:
    made = Shell(sandbox=sandbox, env={}, folders=SandboxFolders(writable=writable))
    return await made.run(workspace, command, timeout_s=30)


def make_clone(folder: Path) -> Path:
    """A clone without an identity, with one commit."""
    git(folder, "init", "-q", "-b", "main", "first")
    (folder / "first" / "a").write_text("1\n")
    git(folder / "first", "add", "a")
    git(folder / "first", "commit", "-qm", "first")
    git(folder, "clone", "-q", "first", "clone")
    return folder / "clone"


def make_worktree(folder: Path) -> Path:
    git(make_clone(folder), "worktree", "add", "-q", folder / "worktree", "-b", "other")
    return folder / "worktree"


def make_submodule(folder: Path) -> Path:
    make_clone(folder)
    git(folder, "init", "-q", "-b", "main", "outer")
    git(folder / "outer", "submodule", "--quiet", "add", folder / "first", "libs/inner")
    git(folder / "outer", "commit", "-qm", "with a submodule")
    return folder / "outer" / "libs" / "inner"


KINDS: list[Callable[[Path], Path]] = [make_clone, make_worktree, make_submodule]

FLOW = """
set -e
base=$(git rev-parse --abbrev-ref HEAD)
git status --short
echo 2 >> a; git add a; git commit -qm second
git checkout -q -b topic
echo 3 > b; git add b; git commit -qm third
git checkout -q "$base"
echo 4 > c; git add c; git commit -qm fourth
git merge -q --no-edit topic
git checkout -q topic
echo 5 > d; git add d; git commit -qm fifth
git rebase -q "$base"
echo 6 >> a; git stash -q; git stash pop -q; git checkout -q a
git worktree list
git gc -q
git checkout -q "$base"; git merge -q topic; git branch -D topic 2>/dev/null
git tag done; git reset -q --hard
git log --format='%s %an %ae' -1
git fsck --strict 2>&1 | grep -v dangling || true
"""


@pytest.mark.parametrize("make", KINDS)
async def test_the_daily_commands_of_git_work(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    workspace = await to_thread.run_sync(make, tmp_path)

    text = await shell(workspace, FLOW)

    assert "[exit code 0, " in text, text
    assert "error" not in text
    assert "fatal" not in text
    assert "prunable" not in text
    log = git(workspace, "log", "--format=%s")
    assert {"first", "second", "third", "fourth", "fifth"} <= set(log.splitlines())
    assert git(workspace, "status", "--short") == ""
    git(workspace, "fsck", "--strict")


ANN = """[user]
	name = "Ann \\"A\\" O'Hara"
	email = ann@example.com
"""


@pytest.mark.parametrize(
    ("config", "expected"),
    [(ANN, 'Ann "A" O\'Hara ann@example.com'), ("", "agent agent@localhost")],
)
async def test_a_commit_has_the_name_of_gits_configuration_else_a_default(
    tmp_path: Path, config: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_clone(tmp_path)
    (tmp_path / "global").write_text(config)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))

    await shell(workspace, "git commit -q --allow-empty -m x")

    author = git(workspace, "log", "-1", "--format=%an %ae|%cn %ce").strip()
    assert author == f"{expected}|{expected}"


async def test_the_identity_of_a_repository_goes_before(tmp_path: Path) -> None:
    workspace = make_clone(tmp_path)
    script = "git init -q own; cd own; git config user.name own; git config user.email own@x;"

    text = await shell(
        workspace, f"{script} git commit -q --allow-empty -m x; git log --format=%an"
    )

    assert text.startswith("own\n")


async def test_a_repository_of_another_user_can_be_used(tmp_path: Path) -> None:
    workspace = make_clone(tmp_path)
    if os.geteuid() == 0:
        os.chown(workspace, 1234, 1234)
        os.chown(workspace / ".git", 1234, 1234)

    assert (await shell(workspace, "git log --format=%s")).startswith("first\n")


async def test_a_folder_of_a_repository_sees_the_rest_of_it_and_cannot_write_there(
    tmp_path: Path,
) -> None:
    clone = make_clone(tmp_path)
    (clone / "deep").mkdir()

    text = await shell(
        clone / "deep", "git log --format=%s; cat ../a; echo x > ../a; git commit -m x"
    )

    assert text.startswith("first\n1\n")
    assert (clone / "a").read_text() == "1\n"
    assert git(clone, "log", "--format=%s") == "first\n"


async def test_a_repository_outside_can_be_made_writable_and_its_configuration_is_not(
    tmp_path: Path,
) -> None:
    clone = make_clone(tmp_path)
    (clone / "deep").mkdir()

    await shell(
        clone / "deep", "git commit -q --allow-empty -m more; git config a.b c", writable=(clone,)
    )

    assert git(clone, "log", "-1", "--format=%s") == "more\n"
    assert git(clone, "config", "--get", "--default", "none", "a.b") == "none\n"


async def test_a_git_file_that_a_command_wrote_shows_no_other_repository(tmp_path: Path) -> None:
    theirs = make_clone(tmp_path)
    (theirs / ".git" / "secret").write_text("sk-secret")
    workspace = tmp_path / "mine"
    workspace.mkdir()
    worktree = tmp_path / "worktree"
    git(theirs, "worktree", "add", "-q", worktree)
    for target in (theirs / ".git", theirs / ".git" / "worktrees" / "worktree"):
        (workspace / ".git").write_text(f"gitdir: {target}\n")

        text = await shell(workspace, f"cat {theirs}/.git/secret; ls {theirs}; git log")

        assert "sk-secret" not in text
        assert "first" not in text


@pytest.mark.parametrize("make", KINDS)
async def test_other_worktrees_survive_what_takes_them_for_deleted(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    workspace = make(tmp_path)
    git(workspace, "worktree", "add", "-q", tmp_path / "more", "-b", "more")

    text = await shell(workspace, "git worktree prune -v --expire=now; git gc -q --prune=now")

    assert "[exit code 0, " in text
    assert git(tmp_path / "more", "status", "--short") == ""
    assert git(tmp_path / "more", "log", "--format=%s", "-1") != ""


# ---- what is planted


RUN = "touch {ran}; cat"
KEYS = {
    "core.fsmonitor": "touch {ran}; false",
    "core.hooksPath": "{workspace}/planted",
    "core.pager": RUN,
    "core.editor": RUN,
    "core.sshCommand": RUN,
    "core.askPass": RUN,
    "core.worktree": "/",
    "core.gitProxy": RUN,
    "core.attributesFile": "{workspace}/planted-attributes",
    "diff.external": RUN,
    "diff.x.textconv": RUN,
    "diff.x.command": RUN,
    "filter.x.clean": RUN,
    "filter.x.smudge": RUN,
    "filter.x.process": RUN,
    "merge.x.driver": RUN,
    "alias.status": "!" + RUN,
    "pager.log": RUN,
    "interactive.diffFilter": RUN,
    "credential.helper": "!" + RUN,
    "gpg.program": "{workspace}/planted/gpg",
    "log.showSignature": "true",
    "include.path": "{workspace}/planted-config",
    "includeIf.gitdir:/.path": "{workspace}/planted-config",
    "extensions.worktreeConfig": "true",
}  # fmt: skip


def plant_by_git(key: str, value: str) -> str:
    return f"git config {key} '{value}'"


def plant_by_hand(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    return f"printf '%s\\n' '{head}' '{name} = \"{value}\"' >> $(git rev-parse --git-path config)"


def watch(workspace: Path) -> None:
    """What a person does afterwards, with a change to look at."""
    (workspace / "a").write_text("changed\n")
    for words in (["status"], ["diff"], ["log", "-p"], ["add", "a"], ["commit", "-qm", "x"]):
        subprocess.run(
            ["git", *IDENTITY, *words],
            cwd=workspace,
            env=HOST,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )


@pytest.mark.parametrize("plant", [plant_by_git, plant_by_hand])
@pytest.mark.parametrize("make", KINDS)
async def test_no_key_can_be_put_into_a_configuration(
    tmp_path: Path, make: Callable[[Path], Path], plant: Callable[[str, str], str]
) -> None:
    workspace, ran = make(tmp_path), tmp_path / "ran"
    config = workspace / git(workspace, "rev-parse", "--git-path", "config").strip()
    before = config.read_bytes()
    values = {key: v.format(ran=ran, workspace=workspace) for key, v in KEYS.items()}
    script = "\n".join(plant(key, value) for key, value in values.items())
    script += f"\nprintf '[core]\\nfsmonitor = \"touch {ran}; false\"\\n' > planted-config"
    script += "\necho '* filter=x diff=x merge=x' > .gitattributes"

    await shell(workspace, script)
    await to_thread.run_sync(watch, workspace)

    assert config.read_bytes() == before
    assert not ran.exists()


async def test_without_the_sandbox_the_same_would_have_run(tmp_path: Path) -> None:
    workspace, ran = make_clone(tmp_path), tmp_path / "ran"
    for key in ("core.fsmonitor", "diff.external", "filter.x.clean", "diff.x.textconv"):
        script = plant_by_hand(key, KEYS[key].format(ran=ran))
        await shell(
            workspace, f"{script}; echo '* filter=x diff=x' > .gitattributes", sandbox="off"
        )
        await to_thread.run_sync(watch, workspace)
        assert ran.exists(), key
        ran.unlink()
        git(workspace, "reset", "-q", "--hard", "origin/main")
        git(workspace, "config", "--unset", key)


CONFIG = "$(git rev-parse --git-path config)"
EVIL = "[core]\\n\\tfsmonitor = touch {ran}; false\\n\\trepositoryformatversion = 0\\n"
MOVES = {
    "the folder of git is replaced": "mv .git old; cp -r old .git; printf '{evil}' >> .git/config",
    "the file of git is replaced": "cp .git x; rm -f .git; mv x .git; printf '{evil}' > evil; "
    "echo 'gitdir: evil' > .git",
    "a configuration is put over it": f"printf '{{evil}}' > x; mv -f x {CONFIG}",
    "a link is put over it": f"printf '{{evil}}' > x; ln -sf $PWD/x {CONFIG}",
    "hooks": "h=$(git rev-parse --git-path hooks); for n in pre-commit post-index-change "
    "post-checkout reference-transaction; do printf '#!/bin/sh\\ntouch {ran}\\n' > $h/$n; "
    "chmod +x $h/$n; done; mv $h x; mkdir $h",
    "another common folder": "mkdir -p evil/objects evil/refs; printf '{evil}' > evil/config; "
    "for d in $(git rev-parse --absolute-git-dir) $(git rev-parse --git-common-dir); do "
    "echo $PWD/evil > $d/commondir; done",
    "a configuration of the worktree": "for d in $(git rev-parse --absolute-git-dir) "
    "$(git rev-parse --git-common-dir); do printf '{evil}' > $d/config.worktree; done",
    "objects from elsewhere": "echo /tmp > $(git rev-parse --git-path objects/info/alternates)",
}  # fmt: skip


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
@pytest.mark.parametrize("make", KINDS)
async def test_nothing_can_be_put_where_git_looks_for_what_it_runs(
    tmp_path: Path, make: Callable[[Path], Path], move: str
) -> None:
    workspace, ran = make(tmp_path), tmp_path / "ran"
    git(workspace, "config", "extensions.worktreeConfig", "true")
    evil = EVIL.format(ran=ran)

    text = await shell(workspace, move.format(evil=evil, ran=ran))
    await to_thread.run_sync(watch, workspace)

    assert not ran.exists(), text
    assert git(workspace, "log", "--format=%s").splitlines()[-1] == "first"
    for name in ("config.worktree", "objects/info/alternates"):
        found = anyio.Path(workspace, git(workspace, "rev-parse", "--git-path", name).strip())
        assert not await found.exists(), text


async def test_what_git_would_follow_is_removed_and_told(tmp_path: Path) -> None:
    workspace = make_clone(tmp_path)

    text = await shell(workspace, "echo evil > .git/commondir")

    assert text.startswith(
        "[removed .git/commondir: git would look there for programs]\n[exit code 0, "
    )
    assert not (workspace / ".git" / "commondir").exists()


async def test_a_link_does_not_make_the_engine_remove_a_file_elsewhere(tmp_path: Path) -> None:
    workspace, theirs = make_clone(tmp_path), tmp_path / "theirs"
    (theirs / "info").mkdir(parents=True)
    (theirs / "info" / "alternates").write_text("theirs")

    await shell(workspace, f"mv .git/objects x; ln -s {theirs} .git/objects")

    assert (theirs / "info" / "alternates").read_text() == "theirs"


async def test_the_files_of_a_submodule_and_of_a_nested_repository_are_held_too(
    tmp_path: Path,
) -> None:
    inner, ran = make_submodule(tmp_path), tmp_path / "ran"
    outer = tmp_path / "outer"
    git(outer, "clone", "-q", "../first", "vendor/nested")
    git(outer, "init", "-q", "--bare", "vendor/bare.git")
    evil = EVIL.format(ran=ran)
    script = f"""
        for part in .git/modules/libs/inner vendor/nested/.git vendor/bare.git; do
            printf '{evil}' >> $part/config
            git config -f $part/config core.fsmonitor 'touch {ran}'
        done
        mv libs x; mkdir -p libs/inner; echo gitdir: evil > libs/inner/.git
        mv vendor z; mkdir -p vendor/nested; cp -r z/nested/.git vendor/nested
        printf '{evil}' >> vendor/nested/.git/config
    """

    text = await shell(outer, script)
    for folder in (outer, inner, outer / "vendor/nested"):
        await to_thread.run_sync(watch, folder)

    assert not ran.exists(), text
    for config in (".git/modules/libs/inner", "vendor/nested/.git", "vendor/bare.git"):
        assert "fsmonitor" not in (outer / config / "config").read_text()


async def test_files_that_the_configuration_names_are_held_as_well(tmp_path: Path) -> None:
    workspace, ran = make_clone(tmp_path), tmp_path / "ran"
    (workspace / "included").write_text("[alias]\n\tx = status\n")
    (workspace / "hooks").mkdir()
    (workspace / "tools").mkdir()
    (workspace / "tools/clean").write_text("#!/bin/sh\nexec cat\n")
    (workspace / "tools/clean").chmod(0o755)
    (workspace / ".gitattributes").write_text("* filter=x\n")
    git(workspace, "config", "include.path", "../included")
    git(workspace, "config", "core.hooksPath", "hooks")
    git(workspace, "config", "filter.x.clean", "sh tools/clean")
    evil = EVIL.format(ran=ran)
    script = f"""
        printf '{evil}' >> included; mv included y; printf '{evil}' > included
        echo 'touch {ran}' > hooks/pre-commit; chmod +x hooks/pre-commit; rm -r hooks; mkdir hooks
        echo 'touch {ran}' > tools/clean; mv tools z; mkdir tools; echo 'touch {ran}' > tools/clean
        echo ours > tools/ours
    """

    text = await shell(workspace, script)
    await to_thread.run_sync(watch, workspace)

    assert not ran.exists(), text
    assert (workspace / "tools/ours").read_text() == "ours\n"


NESTED = (
    "git init -q nested; git -C nested commit -q --allow-empty -m x; "
    "git -C nested config core.fsmonitor 'touch {ran}; false'; "
)
LINKS = {
    "one command": [NESTED + "git add nested"],
    "two commands": [NESTED, "git add nested"],
    "committed": [NESTED + "git add nested; git commit -qm nested"],
    "a split index": [NESTED + "git add nested; git update-index --split-index"],
    "deep": [NESTED + "mkdir -p x/y; mv nested x/y; git add x"],
    "another": ["git init -q nested", NESTED.replace("nested", "other") + "git add other"],
}


@pytest.mark.parametrize(
    ("make", "commands"),
    [
        *((make_clone, commands) for commands in LINKS.values()),
        (make_worktree, LINKS["one command"]),
        (make_submodule, LINKS["one command"]),
    ],
)
async def test_a_repository_that_a_command_puts_into_the_index_runs_nothing(
    tmp_path: Path, make: Callable[[Path], Path], commands: list[str]
) -> None:
    workspace, ran = make(tmp_path), tmp_path / "ran"
    texts = [await shell(workspace, command.format(ran=ran)) for command in commands]
    await to_thread.run_sync(watch, workspace)

    assert not ran.exists(), texts
    assert "it stands in the index of the repository around it" in texts[-1]


async def test_an_index_that_looks_unchanged_is_read_again(tmp_path: Path) -> None:
    workspace, ran = make_clone(tmp_path), tmp_path / "ran"
    stage = "git update-index --add --cacheinfo 160000,$(git -C nested rev-parse HEAD)"
    old = "touch -d @1000000000 .git/index"
    kept = f"{stage},nested; cp .git/index evil; git update-index --force-remove nested"

    await shell(workspace, f"{NESTED.format(ran=ran)} {kept}; {stage},absent; {old}")
    assert (workspace / ".git/index").stat().st_size == (workspace / "evil").stat().st_size
    text = await shell(workspace, f"cat evil > .git/index; {old}")
    await to_thread.run_sync(watch, workspace)

    assert not ran.exists(), text


async def test_without_the_sandbox_a_repository_in_the_index_would_have_run(
    tmp_path: Path,
) -> None:
    workspace, ran = make_clone(tmp_path), tmp_path / "ran"
    await shell(workspace, NESTED.format(ran=ran) + "git add nested", sandbox="off")
    await to_thread.run_sync(watch, workspace)

    assert ran.exists()


async def test_a_submodule_that_is_empty_cannot_be_filled_with_another_repository(
    tmp_path: Path,
) -> None:
    make_submodule(tmp_path)
    git(tmp_path, "clone", "-q", "outer", "again")
    workspace, ran = tmp_path / "again", tmp_path / "ran"
    move = "mv nested/.git libs/inner/.git"

    text = await shell(workspace, f"{NESTED.format(ran=ran)} {move}")
    await to_thread.run_sync(watch, workspace)

    assert not ran.exists(), text


async def test_submodules_and_repositories_of_a_person_stay_as_they_are(tmp_path: Path) -> None:
    inner = make_submodule(tmp_path)
    outer = tmp_path / "outer"
    git(outer, "clone", "-q", "../first", "vendor")

    text = await shell(outer, "git add vendor; git -C libs/inner log --format=%s")

    assert text.startswith("warning: adding embedded") or text.startswith("first\n")
    assert "renamed" not in text
    assert git(inner, "log", "--format=%s") == "first\n"
    assert git(outer / "vendor", "log", "--format=%s") == "first\n"


async def test_commands_at_the_same_time_share_a_repository(tmp_path: Path) -> None:
    workspace = make_clone(tmp_path)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(shell, workspace, f"git branch topic-{number}; echo x > {number}")

    assert len(git(workspace, "branch").splitlines()) == 5
