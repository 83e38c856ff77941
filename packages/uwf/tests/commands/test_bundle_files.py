"""Workflows with prompts in files: bundled, added, run and resumed with their origin gone."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest

from ..cli import Cli
from ..entries import ASKING

BLOCK = '# /// script\n# [tool.uwf]\n# files = ["prompts/*.md"]\n# ///\n'
READING = f"""{BLOCK}
from pathlib import Path
from workflow_execute.testing import in_turn
from workflow_protocol import Question

HERE = Path(__file__).parent

async def turn(ctx):
    question = Question(text=(HERE / "prompts/a.md").read_text())
    return (await ctx.journal.ask("key", question)).text

run = in_turn(turn, schema=str)
"""


def write_flow(uwf: Cli, words: str = "May I?") -> Path:
    (uwf.folder / "prompts").mkdir(exist_ok=True)
    uwf.write("prompts/a.md", words)
    return uwf.write("flow.py", READING)


def unpacked(uwf: Cli) -> list[Path]:
    return list((uwf.home / "unpacked").iterdir())


async def test_a_bundle_carries_its_files_and_says_so(uwf: Cli) -> None:
    entry = write_flow(uwf)
    done = await uwf("bundle", entry)
    assert (done.code, "bundled 1 module and 1 file; roles: " in done.err) == (0, True), done.err
    again = await uwf("bundle", entry, "--json")
    (data,) = again.lines
    assert data["files"] == ["prompts/a.md"]
    assert set(data["environment"]) == {"python", "engine", "packages"}
    write_flow(uwf, "Shall I?")
    (other,) = (await uwf("bundle", entry, "--json")).lines
    assert other["hash"] != data["hash"]


@pytest.mark.parametrize("origin", ["deleted", "changed"])
@pytest.mark.parametrize("by", ["script", "archive", "name"])
async def test_a_suspended_thread_resumes_from_its_stored_bundle(
    uwf: Cli, origin: str, by: str
) -> None:
    entry = write_flow(uwf)
    archive = (await uwf("bundle", entry)).out.strip()
    assert (await uwf("add", "ask-me", archive)).code == 0
    given = {"script": entry, "archive": archive, "name": "ask-me"}[by]
    assert (await uwf("run", given, "x")).code == 3
    if origin == "deleted":
        entry.unlink()
        shutil.rmtree(uwf.folder / "prompts")
    else:
        entry.write_text("1 / 0\n")
        write_flow(uwf, "Something else.")
        entry.write_text("1 / 0\n")
    shutil.rmtree(uwf.home / "unpacked")
    answered = await uwf("thread", "answer", "latest", "key", "--approve", "--text", "yes")
    assert answered.code == 0, answered.err
    resumed = await uwf("thread", "resume")
    assert (resumed.code, json.loads(resumed.out)) == (0, "yes"), resumed.err
    assert "warning" not in resumed.err
    assert (await uwf("thread", "replay", "latest")).code == 0


async def test_a_file_that_somebody_changed_in_the_home_is_not_believed(uwf: Cli) -> None:
    assert (await uwf("run", write_flow(uwf), "x")).code == 3
    (folder,) = unpacked(uwf)
    (folder / "prompts/a.md").chmod(0o644)
    (folder / "prompts/a.md").write_text("Send me your keys.")
    assert (await uwf("thread", "resume")).code == 3  # the same question: no mismatch
    assert (folder / "prompts/a.md").read_text() == "May I?"


@pytest.mark.parametrize("command", [["bundle"], ["add", "some-name"], ["run"]])
async def test_a_file_that_is_read_at_import_and_not_declared_is_told(
    uwf: Cli, command: Sequence[str]
) -> None:
    write_flow(uwf)
    code = READING.replace(BLOCK, "").replace("\nasync", "\n(HERE / 'prompts/a.md').open()\nasync")
    entry = uwf.write("flow.py", code)
    done = await uwf(*command, entry, *(["x"] if command == ["run"] else []))
    assert done.code == 1
    assert "a bundle has the files that it declares: name it in `files` of `[tool.uwf]`" in done.err


async def test_gc_removes_what_was_unpacked_with_the_bundle(uwf: Cli) -> None:
    assert (await uwf("run", write_flow(uwf), "x")).code == 3
    (folder,) = unpacked(uwf)
    os.utime(folder, (1, 1))
    (kept,) = (await uwf("cas", "gc", "--json")).lines
    assert (kept["unpacked"], folder.exists()) == (0, True)
    assert (await uwf("thread", "delete", "latest", "--yes")).code == 0
    dry = await uwf("cas", "gc", "--older-than", "0", "--dry-run")
    assert "would remove 1 folders of unpacked bundles" in dry.err
    (gone,) = (await uwf("cas", "gc", "--older-than", "0", "--json")).lines
    assert (gone["unpacked"], folder.exists()) == (1, False)


def install_other_httpx(uwf: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another version of httpx be installed, as far as its metadata tells."""
    info = uwf.home / "site" / "httpx-99.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: httpx\nVersion: 99.0\n")
    monkeypatch.setattr(sys, "path", [str(info.parent), *sys.path])


ANSWERED = ASKING.replace('f"May I {key}?"', 'f"May I {key}?" + MARK').replace(
    "async def turn", "import httpx\nfrom pathlib import Path\nasync def turn"
)


async def answered(uwf: Cli, *, marker: Path) -> None:
    """A thread that has begun, and that another file changes."""
    code = ANSWERED.replace("MARK", f"str(Path({str(marker)!r}).exists())")
    assert (await uwf("run", uwf.write("asking.py", code), "x")).code == 3
    for key in ("build", "push"):
        assert (await uwf("thread", "answer", "latest", key, "--approve")).code == 0


async def test_a_resume_and_a_replay_under_other_versions_say_which_changed(
    uwf: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(uwf, marker=uwf.folder / "marker")
    install_other_httpx(uwf, monkeypatch)
    now = f"httpx {version_of_the_real('httpx')} → 99.0"
    for command in ("resume", "replay"):
        done = await uwf("thread", command, "latest")
        assert done.code == 0, done.err
        assert f"uwf: warning: since the thread began, versions have changed: {now}\n" in done.err


async def test_a_mismatch_under_other_versions_names_them(
    uwf: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answered(uwf, marker=uwf.folder / "marker")
    assert (await uwf("thread", "resume")).code == 0
    (uwf.folder / "marker").touch()
    plain = await uwf("thread", "replay", "latest")
    assert (plain.code, "ersions" in plain.err) == (1, False)
    install_other_httpx(uwf, monkeypatch)
    done = await uwf("thread", "replay", "latest")
    assert done.code == 1
    assert "Versions have changed since the thread began: httpx " in done.err
    assert "Install the earlier ones to repeat it exactly" in done.err


async def test_a_registered_workflow_says_what_changed_since_it_was_added(
    uwf: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = uwf.write("asking.py", f"import httpx\n{ASKING}")
    assert (await uwf("add", "ask-me", entry)).code == 0
    install_other_httpx(uwf, monkeypatch)
    done = await uwf("run", "ask-me", "x")
    assert done.code == 3
    assert "since ask-me was registered, versions have changed: httpx " in done.err


async def test_a_lock_that_the_installed_packages_do_not_follow_is_told(uwf: Cli) -> None:
    uwf.write("pyproject.toml", '[project]\nname = "mine"\ndependencies = ["httpx"]\n')
    uwf.write("uv.lock", '[[package]]\nname = "httpx"\nversion = "0.1"\n')
    done = await uwf("bundle", uwf.write("asking.py", ASKING))
    assert done.code == 0
    assert "uwf: warning: other versions than in the lock file: httpx 0.1 → " in done.err


def version_of_the_real(package: str) -> str:
    """The version that was there before `install_other_httpx`."""
    (found,) = [each for each in distributions(name=package) if each.version != "99.0"]
    return found.version
