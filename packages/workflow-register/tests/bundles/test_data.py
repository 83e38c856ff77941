"""Files of a bundle: which are packed, which never, and how a workflow reads them."""

import os
import shutil
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflow_register import EntryError, build_bundle, check_bundle, load_workflow, read_bundle

from .test_layout import WORKFLOW, lay_out

SCRIPT = """# /// script
# dependencies = ["httpx>=0.20", "not-installed-anywhere"]
# requires-python = ">=3.11"
# [tool.uwf]
# files = {files}
# exclude = {exclude}
# ///
"""


def script(*files: str, exclude: tuple[str, ...] = ()) -> str:
    return SCRIPT.format(files=list(files), exclude=list(exclude)).replace("'", '"')


def files_of(folder: Path, *patterns: str, exclude: tuple[str, ...] = ()) -> tuple[str, ...]:
    (folder / "entry.py").write_text(script(*patterns, exclude=exclude) + "x = 1\n")
    return build_bundle(folder / "entry.py").manifest.files


READERS = {
    "file": "from pathlib import Path\nsaid = (Path(__file__).parent / 'prompts/a.md').read_text()",
    "resources": "from importlib import resources\n"
    "said = resources.files('prompts').joinpath('a.md').read_text()",
    "resources of a package": "import importlib.resources\nimport pkg\n"
    "said = importlib.resources.files('pkg').joinpath('deep', 'a.md').read_text()",
    "resources of the module": "import importlib.resources as r\nimport pkg\n"
    "said = (r.files(pkg) / 'deep' / 'a.md').read_text()",
    "as_file": "from importlib.resources import as_file, files\nimport pkg\n"
    "with as_file(files('pkg') / 'deep/a.md') as path:\n    said = path.read_text()",
    "get_data": "import pkgutil\nsaid = pkgutil.get_data('pkg', 'deep/a.md').decode()",
    "inside the package": "from pkg import said",
}


@pytest.mark.parametrize("reader", READERS)
async def test_files_are_read_in_every_usual_way_with_the_origin_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setenv("UWF_HOME", str(tmp_path / "home"))
    files = {
        "flow.py": WORKFLOW,
        "prompts/a.md": "Be kind.",
        "pkg/__init__.py": "from importlib.resources import files\n"
        "said = files(__package__).joinpath('deep/a.md').read_text()\n",
        "pkg/deep/a.md": "Be kind.",
        "entry.py": f"{script('prompts/*.md')}import pkg\nfrom flow import Workflow\n"
        f"{READERS[reader]}\nrun = Workflow(said=said, file=__file__)\n",
    }
    built = build_bundle(lay_out(tmp_path / "origin", files) / "entry.py")
    assert built.manifest.files == ("pkg/deep/a.md", "prompts/a.md")
    shutil.rmtree(tmp_path / "origin")
    assert (await check_bundle(built)).workflow.roles
    run = cast("Any", load_workflow(read_bundle(built.data)))
    assert run.said == "Be kind."
    assert Path(run.file).is_relative_to(tmp_path / "home" / "unpacked")


async def test_a_file_that_is_not_declared_is_a_fault_that_says_so(tmp_path: Path) -> None:
    files = {
        "flow.py": WORKFLOW,
        "prompts/a.md": "Be kind.",
        "entry.py": f"from flow import Workflow\n{READERS['file']}\nrun = Workflow()\n",
    }
    with pytest.raises(EntryError) as caught:
        await check_bundle(build_bundle(lay_out(tmp_path, files) / "entry.py"))
    assert str(caught.value).startswith(f"{tmp_path}/entry.py:3: FileNotFoundError: ")
    assert "a bundle has the files that it declares: name it in `files`" in str(caught.value)


def test_the_hash_changes_with_a_file_and_not_with_its_history(tmp_path: Path) -> None:
    files = {"entry.py": script("data") + "x = 1\n", "data/a.txt": "a", "data/b.txt": "b"}
    first = build_bundle(lay_out(tmp_path / "one", files) / "entry.py")
    other = lay_out(tmp_path / "two", dict(reversed(files.items())))
    os.utime(other / "data/a.txt", (1, 1))
    (other / "data/b.txt").chmod(0o600)
    assert build_bundle(other / "entry.py").hash == first.hash
    (other / "data/b.txt").write_text("c")
    assert build_bundle(other / "entry.py").hash != first.hash
    assert first.files == {"data/a.txt": b"a", "data/b.txt": b"b"}


def test_patterns_name_files_folders_and_all_below(tmp_path: Path) -> None:
    names = ["a.md", "b.txt", "p/a.md", "p/q/a.md", "p/q/b.txt", "p/.hidden.md", "r/a.md"]
    lay_out(tmp_path, dict.fromkeys(names, ""))
    assert files_of(tmp_path, "a.md") == ("a.md",)
    assert files_of(tmp_path, "*.md") == ("a.md",)
    assert files_of(tmp_path, "*/a.md") == ("p/a.md", "r/a.md")
    assert files_of(tmp_path, "p/**/*.md") == ("p/a.md", "p/q/a.md")
    assert files_of(tmp_path, "**/b.txt") == ("b.txt", "p/q/b.txt")
    assert files_of(tmp_path, "p/.hidden.md") == ("p/.hidden.md",)
    assert files_of(tmp_path, "p/", exclude=("p/q", ".hidden.md", "p/.*")) == ("p/a.md",)


def test_a_project_declares_files_and_requirements_for_its_entries(tmp_path: Path) -> None:
    project = (
        '[project]\nname = "x"\nrequires-python = ">=3.11"\ndependencies = ["httpx", "Py_Yaml>=6"]'
        '\n[tool.uwf]\nfiles = ["prompts/*.md"]\n'
    )
    lock = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
        for name, version in (("httpx", "0.1"), ("anyio", "4"), ("py-yaml", "6.1"))
    )
    files = {
        "pyproject.toml": project,
        "uv.lock": lock,
        "prompts/a.md": "",
        "flows/entry.py": "x = 1\n",
    }
    manifest = build_bundle(lay_out(tmp_path, files) / "flows" / "entry.py").manifest
    assert (manifest.entry, manifest.roots) == ("flows/entry.py", ("flows",))
    assert manifest.files == ("prompts/a.md",)
    assert manifest.requires is not None
    assert manifest.requires.source == "pyproject.toml"
    assert manifest.requires.dependencies == ("Py_Yaml>=6", "httpx")
    assert manifest.requires.locked == {"httpx": "0.1", "py-yaml": "6.1"}


NEVER = [
    ".env", ".env.local", "prod.env", "server.pem", "id_rsa", "id_ed25519", "tls.key", ".netrc",
    "credentials.json", "secrets.yaml", "a.pyc", "SERVER.PEM",
    ".git/config", ".venv/x.md", "env2/pyvenv.cfg", "node_modules/a/b.md", "__pycache__/x.md",
    ".pytest_cache/README.md", "mine.egg-info/PKG-INFO",
]  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_what_may_hold_keys_or_is_a_cache_is_never_packed(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path, {"data/ok.md": "", f"data/{name}": "", f"data/deep/{name}": ""})
    assert files_of(tmp_path, "data", exclude=()) == ("data/ok.md",)
    assert files_of(tmp_path, "data/**/*") == ("data/ok.md",)
    with pytest.raises(EntryError, match=r"is never packed: .*; remove it from `files`"):
        files_of(tmp_path, f"data/{name}")


def test_a_private_key_under_any_name_is_refused(tmp_path: Path) -> None:
    key = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n"
    lay_out(tmp_path, {"data/a.md": f"hello\n{key}"})
    with pytest.raises(EntryError, match=r"data/a.md: it holds a private key, which no bundle may"):
        files_of(tmp_path, "data")


def test_a_link_that_leads_out_is_refused_and_one_inside_is_a_file(tmp_path: Path) -> None:
    lay_out(tmp_path, {"outside.md": "secret", "in/data/a.md": "a", "in/x/data.md": ""})
    (tmp_path / "in/data/b.md").symlink_to("a.md")
    (tmp_path / "in/data/around").symlink_to(tmp_path / "in")
    (tmp_path / "in/data/away").symlink_to("/etc")
    assert files_of(tmp_path / "in", "data") == ("data/a.md", "data/b.md")
    (tmp_path / "in/data/c.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(EntryError, match=r"c.md: it is a link that leads out of '.*'; copy the"):
        files_of(tmp_path / "in", "data")


def test_what_is_too_much_is_told_with_the_file_and_the_limit(tmp_path: Path) -> None:
    lay_out(tmp_path, {"data/a.md": "", "data/big.bin": ""})
    os.truncate(tmp_path / "data/big.bin", 300 * 2**20)
    with pytest.raises(EntryError, match=r"big.bin: a bundle has at most 2,000 files of 16,777,21"):
        files_of(tmp_path, "data")
    assert files_of(tmp_path, "data", exclude=("data/*.bin",)) == ("data/a.md",)
    for number in range(2_001):
        (tmp_path / f"data/{number}.txt").touch()
    with pytest.raises(EntryError, match="a bundle has at most 2,000 files"):
        files_of(tmp_path, "data/*.txt")


def test_what_is_no_file_is_a_fault(tmp_path: Path) -> None:
    lay_out(tmp_path, {"data/a.md": ""})
    os.mkfifo(tmp_path / "data/pipe")
    with pytest.raises(EntryError, match="pipe: it can't be read: this is not a regular file"):
        files_of(tmp_path, "data")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('files = "a"', "entry.py: `files` must be a list of patterns"),
        ("files = [1]", "entry.py: 1 in `files` can't be used: a pattern names a path below"),
        ('files = ["../a"]', "'../a' in `files` can't be used: a pattern names a path below the f"),
        ('files = ["/etc/passwd"]', "'/etc/passwd' in `files` can't be used"),
        (r"files = ['a\b']", "joins folders with '/'"),
        ('files = ["none/*.md"]', "the pattern 'none/*.md' in `files` names no file in"),
        ('files = ["a/**/b/**/c/**/d/**"]', "at most three '**'"),
        ('file = ["a"]', "entry.py: `[tool.uwf]` has no 'file'; use `files` and `exclude`"),
        ("files = [", "entry.py: its TOML can't be read: Invalid value"),
        ('files = ["a*"]', "differ only in case; rename one"),
        ('files = ["x?y"]', "has characters that not every system allows in a name"),
        ('files = ["bundle.json"]', "the name 'bundle.json' is the bundle's own"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, block: str, message: str
) -> None:
    lay_out(tmp_path, {"a1b": "", "A1b": "", "aXb": "", "x:y": "", "bundle.json": "{}"})
    (tmp_path / "a1b").rename(tmp_path / "aXB")
    (tmp_path / "entry.py").write_text(
        f"# /// script\n# [tool.uwf]\n# {block}\n# ///\nx = 1\n", encoding="utf-8"
    )
    with pytest.raises(EntryError) as caught:
        build_bundle(tmp_path / "entry.py")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("tool = 3", "`tool` must be a table"),
        ("tool.uwf = []", "`uwf` must be a table"),
        ("requires-python = 3.11", "`requires-python` must be text, such as '>=3.11'"),
        ('dependencies = "httpx"', "`dependencies` must be a list of texts"),
        ('dependencies = ["httpx", 3]', "`dependencies` must be a list of texts"),
        ("dependencies = {}", "`dependencies` must be a list of texts"),
    ],
)
@pytest.mark.parametrize("place", ["script", "project"])
def test_what_a_script_or_project_says_in_another_type_is_never_ignored(
    tmp_path: Path, block: str, message: str, place: str
) -> None:
    script, project = ("x = 1\n", f"[project]\n{block}\n")
    if block.startswith("tool"):
        project = f"{block}\n"
    if place == "script":
        script, project = f"# /// script\n# {block}\n# ///\nx = 1\n", ""
    lay_out(tmp_path, {"entry.py": script, "pyproject.toml": project})
    with pytest.raises(EntryError) as caught:
        build_bundle(tmp_path / "entry.py")
    file = "entry.py" if place == "script" else "pyproject.toml"
    assert f"{file}: {message}" in str(caught.value)


def test_a_byte_order_mark_hides_no_block(tmp_path: Path) -> None:
    lay_out(tmp_path, {"a.md": "text"})
    script = b"\xef\xbb\xbf# /// script\r\n# tool.uwf.files = ['a.md']\r\n# ///\r\nx = 1\r\n"
    (tmp_path / "entry.py").write_bytes(script)
    assert build_bundle(tmp_path / "entry.py").manifest.files == ("a.md",)


NAMES = st.text(st.sampled_from("aB.é\u0301-_ :\\"), min_size=1, max_size=6)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=5), st.binary(max_size=20))
def test_any_files_are_packed_exactly_or_refused(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]], data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("entry")
    written: Mapping[str, bytes] = {}
    for path in paths:
        if {".", ".."} & set(path):
            continue
        file = folder.joinpath("data", *path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        except OSError:  # a file and a folder of one name
            continue
        name = unicodedata.normalize("NFC", file.relative_to(folder).as_posix())
        written = {**written, name: data}  # macOS writes names in another form
    (folder / "entry.py").write_text(script("data") + "x = 1\n")
    try:
        bundle = build_bundle(folder / "entry.py")
    except EntryError:
        return
    assert read_bundle(bundle.data).files == written
