"""What holds for every package of the workspace."""

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any, get_origin

import pytest

from .pages.read_pages import Block, python_blocks, read_page

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
NAMES = {path.name for path in PACKAGES}
every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def module_of(package: Path) -> str:
    return package.name.replace("-", "_")


def requirements(package: Path) -> list[str]:
    data = project(package)
    extras = data.get("optional-dependencies", {}).values()
    return [*data["dependencies"], *(each for extra in extras for each in extra)]


def test_the_workspace_has_one_version() -> None:
    assert {project(package)["version"] for package in PACKAGES} == {
        project(PACKAGES[0])["version"]
    }


def test_the_root_installs_every_package() -> None:
    listed = {re.split(r"[\[=<>]", each)[0] for each in project(ROOT)["dependencies"]}

    assert listed == NAMES


@every_package
def test_siblings_are_pinned_to_the_version_of_the_tree(package: Path) -> None:
    version = project(package)["version"]
    siblings = [each for each in requirements(package) if re.split(r"[\[=<>]", each)[0] in NAMES]

    assert [each for each in siblings if not each.endswith(f"=={version}")] == []


@every_package
def test_what_is_imported_is_required(package: Path) -> None:
    """Siblings only: for the rest each package is imported alone, from its wheel."""
    required = {re.split(r"[\[=<>]", each)[0] for each in requirements(package)}
    imported: set[str] = set()
    for file in (package / "src").rglob("*.py"):
        for item in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(item, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in item.names}
            elif isinstance(item, ast.ImportFrom) and item.module:
                imported.add(item.module.partition(".")[0])
    siblings = {each.replace("_", "-") for each in imported} & NAMES - {package.name}

    assert siblings - required == set()


def constants_classes_functions(name: str) -> tuple[int, str]:
    """The order of ruff's RUF022."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@every_package
def test_public_names_are_sorted_and_are_all_that_is_imported(package: Path) -> None:
    module = importlib.import_module(module_of(package))
    tree = ast.parse((package / "src" / module_of(package) / "__init__.py").read_bytes())
    imported = [
        alias.asname or alias.name
        for part in tree.body
        for item in (part.body if isinstance(part, ast.If) else [part])  # `if TYPE_CHECKING`
        if isinstance(item, ast.ImportFrom)
        for alias in item.names
    ]

    assert module.__all__ == sorted(module.__all__, key=constants_classes_functions)
    assert sorted(imported) == sorted(module.__all__)
    assert module.__doc__


@every_package
def test_public_names_have_docstrings(package: Path) -> None:
    module = importlib.import_module(module_of(package))
    public = [getattr(module, name) for name in module.__all__]
    own = [each for each in public if getattr(each, "__module__", "").startswith(module.__name__)]

    classes_functions = [each for each in own if get_origin(each) is None]  # no `Workflow[Any]`
    assert [each.__name__ for each in classes_functions if not each.__doc__] == []


@every_package
def test_a_package_has_its_readme_licence_and_guard_against_publishing(package: Path) -> None:
    data = project(package)

    assert (package / "README.md").read_text(encoding="utf-8").startswith(f"# {data['name']}")
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "Private :: Do Not Upload" in data["classifiers"]


def test_no_file_but_the_lock_names_a_package_index() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True)
    hosts = re.compile(rb"pypi\.org|pythonhosted\.org|npmjs\.org|deb\.debian\.org")
    named = [
        name
        for name in listed.stdout.decode().splitlines()
        if name not in {"uv.lock", "tests/test_packaging.py"}
        and hosts.search((ROOT / name).read_bytes())
    ]

    assert named == []


def test_the_page_names_each_package_that_pip_has_to_be_told_of() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^([\w-]+) ?@ ?git\+https://HOST/\S+#subdirectory=packages/(\S+)$", page, re.M
    )
    wanted, ahead = set[str](), ["uwf"]
    while ahead:
        name = ahead.pop()
        if name not in wanted:
            wanted.add(name)
            needs = project(ROOT / "packages" / name)["dependencies"]
            ahead += [each.partition("==")[0] for each in needs if each.partition("==")[0] in NAMES]

    assert [name for name, folder in lines if name != folder] == []
    assert sorted(name for name, _ in lines) == sorted(wanted)
    assert set(re.findall(r"==([\d.]+)", page)) == {project(PACKAGES[0])["version"]}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packages built, from an sdist each."""
    folder = tmp_path_factory.mktemp("dist")
    command = ["uv", "build", "--all-packages", "--no-sources", "--out-dir", str(folder), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_wheels_hold_their_types_and_nothing_of_the_tests(wheels: Path) -> None:
    built = sorted(wheels.glob("*.whl"))

    assert len(built) == len(PACKAGES)
    for wheel in built:
        module = wheel.name.partition("-")[0]
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{module}/py.typed" in names
        assert not [name for name in names if re.search(r"(^|/)(test_|tests/)", name)]


def clean_environment(folder: Path, wheels: Path, *wanted: str) -> str:
    """The interpreter of a new environment with what is wanted and what that asks for."""
    version = project(PACKAGES[0])["version"]
    python = str(folder / "bin" / "python")
    install = ["uv", "pip", "install", "--quiet", "--python", python, "--find-links", str(wheels)]
    pinned = [f"{each}=={version}" if each.partition("[")[0] in NAMES else each for each in wanted]
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    subprocess.run([*install, *pinned], check=True)
    return python


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_project_depends_on_one_package_by_git_and_has_its_siblings(tmp_path: Path) -> None:
    bare = {
        k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")
    }

    def run(*words: str, cwd: Path = tmp_path) -> str:
        return subprocess.run(
            words, cwd=cwd, env=bare, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    run("git", "clone", "--quiet", "--bare", str(ROOT), "workforce.git")
    mine = tmp_path / "mine"
    run("uv", "init", "--quiet", "--bare", "--python", sys.executable, "mine")
    wanted = f"uwf @ git+{(tmp_path / 'workforce.git').as_uri()}#subdirectory=packages/uwf"
    run("uv", "add", "--quiet", wanted, cwd=mine)

    greet = "from uwf.examples.greet import run; import uwf; print(run, uwf.__file__)"
    said = run("uv", "run", "--quiet", "python", "-c", greet, cwd=mine)
    assert said.startswith("Workflow(greeter) ")
    assert str(mine / ".venv") in said
    assert "workflow-protocol" in (mine / "uv.lock").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(300)
@every_package
def test_each_package_imports_alone_from_its_wheel(
    package: Path, wheels: Path, tmp_path: Path
) -> None:
    """In a clean environment with what the wheel asks for, and nothing else of the workspace."""
    python = clean_environment(tmp_path, wheels, package.name)
    script = f"import {module_of(package)} as m; print(m.__file__)"
    done = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode()
    assert Path(done.stdout.decode().strip()).is_relative_to(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
@every_package
def test_the_examples_of_a_readme_run_with_what_it_says_to_install(
    package: Path, wheels: Path, tmp_path: Path
) -> None:
    """That is the package alone, unless the page has a line `pip install …`."""
    blocks = read_page(package / "README.md")
    python = clean_environment(tmp_path / "env", wheels, *said_to_install(blocks, package.name))
    page = tmp_path / "page.json"
    page.write_text(json.dumps([f"{package.name}/README.md", python_blocks(blocks)]))
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [python, "-I", str(ROOT / "tests" / "pages" / "run_blocks.py"), str(page)],
        cwd=tmp_path / "work",
        env={"PATH": os.environ["PATH"], "UWF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def said_to_install(blocks: list[Block], package: str) -> list[str]:
    """What the page's first `pip install` names, else the package."""
    lines = [line for each in blocks if each.language == "" for line in each.code.splitlines()]
    said = [line for line in lines if line.startswith("pip install ")]
    return shlex.split(said[0].partition("#")[0])[2:] if said else [package]
