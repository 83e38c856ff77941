"""The plugin as pytest runs it: in processes of its own, on projects of a few files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
LOOPS = ("-o", "asyncio_default_fixture_loop_scope=function")
FEW_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_asyncio.plugin,pytest_uwf._plugin",
}
"""Each of the others takes a while at pytest's start."""
CONFIG = '[tool.pytest.ini_options]\nasyncio_mode = "auto"\nuwf_home = "home"\n'


def run_pytest(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "UWF_", "OPENAI_"))}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "error",
            *LOOPS,
            *words,
        ],
        cwd=folder,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of the page on testing, its code as it stands there."""
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        if named := re.match(r"# (\w+\.py)\n", code):
            (tmp_path / named[1]).write_text(code, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.slow
def test_the_project_of_the_page_is_recorded_replayed_and_fails_with_the_first_difference(
    project: Path,
) -> None:
    recorded = run_pytest(project, "--uwf-record", **FEW_PLUGINS)
    assert "5 passed" in recorded.stdout, recorded.stdout + recorded.stderr
    file = project / "threads" / "review.uwf"
    before = file.read_bytes()
    replayed = run_pytest(project, "-k", "asked", **FEW_PLUGINS)
    assert "1 passed" in replayed.stdout
    assert file.read_bytes() == before

    entry = project / "review.py"
    entry.write_text(
        entry.read_text("utf-8").replace("Is it good?", "Is it long and good?"), encoding="utf-8"
    )
    changed = run_pytest(project, "-k", "asked", **FEW_PLUGINS)
    assert "1 failed" in changed.stdout
    assert f"the workflow does not come to the same as {file}" in changed.stdout
    assert re.search(r"where: thread \w{26}, step 1, role 'critic', llm/0\n", changed.stdout)
    assert re.search(r"what: its input has changed \(\d+ bytes before, \d+ now\)", changed.stdout)
    assert re.search(r"now, from byte \d+: .*Is it long and good\?", changed.stdout)
    assert "Traceback" not in changed.stdout
    assert "_replay.py" not in changed.stdout


def test_pytest_starts_without_an_import_of_ours_and_other_projects_notice_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_nothing_of_it_is_there():\n"
        "    ours = ('workflow_', 'pytest_uwf._replay', 'uwf', 'httpx', 'msgspec')\n"
        "    assert [name for name in sys.modules if name.startswith(ours)] == []\n"
        "def test_the_plugin_is_there(uwf_replay):\n"
        "    assert callable(uwf_replay)\n",
        encoding="utf-8",
    )
    done = run_pytest(tmp_path, "-p", "no:anyio", "-p", "no:hypothesispytest")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.slow
def test_the_models_of_a_recorded_thread_are_named_by_a_configuration_of_the_project(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "home").mkdir()
    settings = tmp_path / "home" / "workflow.yaml"
    provider = "providers: {a: {base_url: 'http://127.0.0.1:%s/v1', api_key: '${A_KEY}'}}\n"
    (tmp_path / "test_it.py").write_text(
        "import anyio, pathlib, pytest\n"
        "from pytest_uwf import loopback_server, say\n"
        "from uwf import *\n"
        "role = RoleDefinition(name='r', system_prompt='S', schema=int)\n"
        "run = create_workflow(WorkflowDefinition(table={START: role, role: END}),\n"
        "                      AdapterBinding(create_llm_adapter('a/model-7')))\n"
        "async def test_it(uwf_replay, request):\n"
        "    if not request.config.getoption('--uwf-record'):\n"
        "        return uwf_replay('x.uwf', run, input='p')\n"
        "    async with loopback_server([say('7')]) as server:\n"
        "        settings = pathlib.Path('home/workflow.yaml')\n"
        f"        settings.write_text({provider!r} % server.port + 'models: {{default: a/m}}\\n')\n"
        "        await anyio.to_thread.run_sync(\n"
        "            lambda: uwf_replay('x.uwf', run, input='p'))\n",
        encoding="utf-8",
    )
    recorded = run_pytest(tmp_path, "--uwf-record", A_KEY="sk-0123456789", **FEW_PLUGINS)
    assert "1 passed" in recorded.stdout, recorded.stdout
    assert b"model-7" not in settings.read_bytes()

    replayed = run_pytest(tmp_path, **FEW_PLUGINS)  # without the key, and without the server

    assert "1 passed" in replayed.stdout, replayed.stdout
