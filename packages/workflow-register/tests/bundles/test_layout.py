"""Where local modules may lie: each layout is packed whole, and loads with its origin gone."""

import itertools
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from workflow_register import EntryError, build_bundle, check_bundle, load_workflow, read_bundle
from workflow_register.bundles._layout import ENGINE

WORKFLOW = """
from workflow_protocol import END, START, RoleDefinition, WorkflowDefinition

role = RoleDefinition(name="greeter", description="greets", system_prompt="Hi", schema=str)

class Workflow:
    def __init__(self, **values):
        self.definition = WorkflowDefinition(
            description="d",
            table={START: role, role: END},
        )
        self.__dict__.update(values)
"""
PROJECT = "[project]\nname = 'mine'\nversion = '1'\ndependencies = ['httpx>=0.20']\n"


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def load_elsewhere(folder: Path, entry: str) -> Any:
    """Build a bundle, take its origin away, check it and load it as it is read from a store."""
    built = build_bundle(folder / entry)
    shutil.rmtree(folder)
    await check_bundle(built)
    return cast("Any", load_workflow(read_bundle(built.data)))


LAYOUTS: dict[str, tuple[str, dict[str, str]]] = {
    "beside": ("entry.py", {"flow.py": WORKFLOW, "entry.py": "from flow import Workflow\n"}),
    "a package beside": (
        "entry.py",
        {"p/__init__.py": "", "p/flow.py": WORKFLOW, "entry.py": "from p.flow import Workflow\n"},
    ),
    "a namespace package beside": (
        "entry.py",
        {"p/q/flow.py": WORKFLOW, "entry.py": "import p.q.flow\nWorkflow = p.q.flow.Workflow\n"},
    ),
    "entry in a package, by name": (
        "mypkg/flows/entry.py",
        {
            "mypkg/__init__.py": "",
            "mypkg/flow.py": WORKFLOW,
            "mypkg/flows/__init__.py": "",
            "mypkg/flows/entry.py": "from mypkg.flow import Workflow\n",
        },
    ),
    "entry in a package, relative": (
        "mypkg/flows/entry.py",
        {
            "mypkg/__init__.py": "from . import flow\n",
            "mypkg/flow.py": WORKFLOW,
            "mypkg/flows/__init__.py": "",
            "mypkg/flows/near.py": "from ..flow import Workflow\n",
            "mypkg/flows/logging.py": "1 / 0  # not the standard one\n",
            "mypkg/flows/entry.py": "import logging\nfrom .near import Workflow\nlogging.INFO\n",
        },
    ),
    "entry in a namespace package, by name": (
        "mypkg/flows/entry.py",
        {
            "mypkg/lib/flow.py": WORKFLOW,
            "mypkg/flows/entry.py": "from mypkg.lib import flow\nWorkflow = flow.Workflow\n",
        },
    ),
    "entry in a namespace package of a project, relative": (
        "src/mypkg/flows/entry.py",
        {
            "pyproject.toml": PROJECT,
            "src/mypkg/flow.py": WORKFLOW,
            "src/mypkg/flows/entry.py": "from ..flow import Workflow\n",
        },
    ),
    "src layout": (
        "flows/my-entry.py",
        {
            "pyproject.toml": PROJECT,
            "src/mypkg/__init__.py": "",
            "src/mypkg/flow.py": WORKFLOW,
            "flows/helpers.py": "from mypkg.flow import Workflow\n",
            "flows/my-entry.py": "import httpx\nfrom helpers import Workflow\n",
        },
    ),
    "flat project": (
        "flows/entry.py",
        {
            "pyproject.toml": PROJECT,
            "mypkg/__init__.py": WORKFLOW,
            "flows/entry.py": "from mypkg import Workflow\n",
        },
    ),
    "a package below a namespace": (
        "src/ns/mypkg/entry.py",
        {
            "pyproject.toml": PROJECT,
            "src/ns/mypkg/__init__.py": "",
            "src/ns/mypkg/flow.py": WORKFLOW,
            "src/ns/mypkg/entry.py": "from ns.mypkg.flow import Workflow\nfrom . import flow\n",
        },
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_every_layout_is_packed_whole(tmp_path: Path, layout: str) -> None:
    entry, files = LAYOUTS[layout]
    files = {**files, entry: f"{files[entry]}run = Workflow(done=__name__)\n"}
    run = await load_elsewhere(lay_out(tmp_path / "origin", files), entry)
    assert run.done.startswith("uwf_bundle_")


def test_where_a_project_lies_does_not_change_the_hash(tmp_path: Path) -> None:
    for entry, files in LAYOUTS.values():
        hashes = {
            build_bundle(lay_out(tmp_path / where / entry.replace("/", "_"), files) / entry).hash
            for where in ("one", "another/and deeper")
        }
        assert len(hashes) == 1


USES = {
    "{p}": "import {p}.flow as flow\n",
    "from {p}": "from {p}.flow import Workflow as W\nimport {p}.flow as flow\n",
    "relative": "from .{up} import flow\n",
    "late": "def f():\n    import {p}.flow\n    return {p}.flow\nflow = f()\n",
    "importlib": "import importlib\nimport {p}.flow\nflow = importlib.import_module('{p}.flow')\n",
    "importlib relative": "from importlib import import_module\nfrom .{up} import flow\n"
    "flow = import_module('.{up}flow', __package__)\n",
}


@pytest.mark.parametrize("use", USES)
def test_generated_packages_load_whatever_their_depth_and_project(tmp_path: Path, use: str) -> None:
    kinds = itertools.product(["", "src/"], [True, False], [1, 2, 3], [True, False])
    for number, (root, has_init, depth, has_project) in enumerate(kinds):
        folders = [f"pkg{level}" for level in range(depth)]
        below = "/".join(folders)
        files = {f"{root}pkg0/flow.py": WORKFLOW}
        if has_project:
            files["pyproject.toml"] = ""
        if has_init:
            for level in range(1, depth + 1):
                files[f"{root}{'/'.join(folders[:level])}/__init__.py"] = ""
        entry = f"{root}{below}/entry.py"
        code = USES[use].format(p="pkg0", up="." * (depth - 1))
        files[entry] = f"{code}run = flow.Workflow(depth={depth})\n"
        folder = lay_out(tmp_path / f"origin-{number}", files)
        if "relative" in use and not has_init and not has_project:
            with pytest.raises(EntryError, match="relative import leads out"):
                build_bundle(folder / entry)
            continue
        run = cast("Any", load_workflow(read_bundle(build_bundle(folder / entry).data)))
        assert run.depth == depth, (root, has_init, has_project)


def test_a_local_folder_of_a_name_is_no_reason_to_pack_what_is_installed(tmp_path: Path) -> None:
    files = {"flow.py": WORKFLOW, "httpx/readme.md": "", "entry.py": "import httpx, flow\n"}
    bundle = build_bundle(lay_out(tmp_path, files) / "entry.py")
    assert bundle.manifest.modules == ("entry.py", "flow.py")


def test_of_what_is_installed_only_the_entrys_own_package_is_packed(tmp_path: Path) -> None:
    files = {
        "site-packages/mine/__init__.py": "",
        "site-packages/mine/words.py": "",
        "site-packages/mine/entry.py": "from mine import words\nimport other\n",
        "site-packages/other.py": "",
    }
    bundle = build_bundle(lay_out(tmp_path, files) / "site-packages/mine/entry.py")
    assert bundle.manifest.modules == ("mine/__init__.py", "mine/entry.py", "mine/words.py")


def test_the_engine_itself_is_never_packed(tmp_path: Path) -> None:
    packages = Path(__file__).parents[3]
    assert {path.name for path in packages.glob("*/src/*") if path.is_dir()} <= ENGINE
    files = {"uwf/__init__.py": "", "workflow_protocol.py": "", "entry.py": "import uwf\nimport "
             "workflow_protocol\n"}  # fmt: skip
    bundle = build_bundle(lay_out(tmp_path, files) / "entry.py")
    assert bundle.manifest.modules == ("entry.py",)


@pytest.mark.parametrize("installed", ["pth", "current folder"])
async def test_a_module_that_is_only_found_beside_the_origin_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str
) -> None:
    files = {
        "flow.py": WORKFLOW,
        "plugin_of_mine.py": "X = 1\n",
        "entry.py": "import importlib\nfrom flow import Workflow\nNAME = 'plugin_of_mine'\n"
        "importlib.import_module(NAME)\nrun = Workflow()\n",
    }
    lay_out(tmp_path, files)
    if installed == "pth":
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    else:
        monkeypatch.chdir(tmp_path)
    with pytest.raises(EntryError) as caught:
        await check_bundle(build_bundle(tmp_path / "entry.py"))
    assert str(caught.value) == (
        f"{tmp_path}/entry.py:4: ModuleNotFoundError: No module named 'plugin_of_mine'; it is only "
        f"found at '{tmp_path}/plugin_of_mine.py', which is not in the bundle: write an `import` "
        "statement for it, or name it in `files` of `[tool.uwf]`, in a `# /// script` block or in "
        "pyproject.toml"
    )
    block = '# /// script\n# [tool.uwf]\n# files = ["plugin_*.py"]\n# ///\n'
    (tmp_path / "entry.py").write_text(block + files["entry.py"])
    assert (await check_bundle(build_bundle(tmp_path / "entry.py"))).workflow.roles


def test_what_a_run_takes_from_beside_the_origin_is_a_fault_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "flow.py": WORKFLOW,
        "plugin_beside.py": "",
        "entry.py": "import importlib\nfrom flow import Workflow\n"
        "importlib.import_module('plugin_' + 'beside')\nrun = Workflow()\n",
    }
    monkeypatch.setattr(sys, "path", [str(lay_out(tmp_path, files)), *sys.path])
    for _ in range(2):
        with pytest.raises(EntryError, match=r"'plugin_beside' was imported from '.*', not from"):
            load_workflow(build_bundle(tmp_path / "entry.py"))


def test_a_folder_that_no_import_can_name_is_no_package(tmp_path: Path) -> None:
    files = {"my-pkg/__init__.py": "", "my-pkg/a.py": "", "my-pkg/entry.py": "from . import a\n"}
    with pytest.raises(EntryError, match="its folder 'my-pkg' can't be a package's"):
        build_bundle(lay_out(tmp_path, files) / "my-pkg" / "entry.py")
