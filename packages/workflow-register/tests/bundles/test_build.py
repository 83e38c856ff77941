import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_register import EntryError, build_bundle


def lay_out(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files in the order given and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


FILES = {
    "review-code.py": "import helpers\nfrom tools import search\n\ndef f():\n    import late\n",
    "helpers.py": "import os, json as j\nimport tools.deep.down\n",
    "late.py": "try:\n    from tools.extra import X\nexcept ImportError:\n    import fallback\n",
    "fallback.py": "import helpers  # around again\n",
    "tools/__init__.py": "from . import base\n",
    "tools/base.py": "",
    "tools/search.py": "from .deep import down as d\n",
    "tools/extra.py": "from tools import *\n",
    "tools/deep/__init__.py": "VALUE = 1\n",
    "tools/deep/down.py": "from .. import base, missing\nfrom ..base import thing\n",
    "tools/unused.py": "",
    "unused.py": "not even Python (",
    "data.json": "{}",
}
MODULES = (
    "fallback.py",
    "helpers.py",
    "late.py",
    "review-code.py",
    "tools/__init__.py",
    "tools/base.py",
    "tools/deep/__init__.py",
    "tools/deep/down.py",
    "tools/extra.py",
    "tools/search.py",
)


def test_a_bundle_holds_the_entry_and_the_local_modules_that_it_imports(tmp_path: Path) -> None:
    bundle = build_bundle(lay_out(tmp_path, FILES) / "review-code.py")
    assert bundle.manifest.entry == "review-code.py"
    assert bundle.manifest.modules == MODULES
    assert bundle.sources["tools/base.py"] == b""
    assert bundle.origin == tmp_path
    assert bundle.place("tools/base.py") == str(tmp_path / "tools" / "base.py")


@settings(deadline=None, max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_same_modules_are_the_same_bytes_whatever_their_history(
    tmp_path_factory: pytest.TempPathFactory, order: random.Random
) -> None:
    names = list(FILES)
    order.shuffle(names)
    folder = lay_out(tmp_path_factory.mktemp("entry"), {name: FILES[name] for name in names})
    for name in names:
        os.utime(folder / name, (order.randrange(2**31), order.randrange(2**31)))
        (folder / name).chmod(order.choice([0o600, 0o644, 0o755]))
    (folder / "new.py").write_text("")
    assert build_bundle(folder / "review-code.py").hash == HASH


HASH = "cd22af7e0d7ea46a0ca073f355946b4f33821b1840a6fd7c245f109fe107479e"


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONHASHSEED": "1", "PYTHONUTF8": "0"},
        {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"},
    ],
)
def test_the_same_modules_are_the_same_bytes_in_any_process(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    lay_out(tmp_path, FILES)
    code = """
import os
os.umask(0o077)
from pathlib import Path
from workflow_register import build_bundle
print(build_bundle(Path("review-code.py")).hash)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == HASH


def test_the_folder_of_a_linked_entry_is_the_one_it_leads_to(tmp_path: Path) -> None:
    lay_out(tmp_path / "real", FILES)
    (tmp_path / "review-code.py").symlink_to(tmp_path / "real" / "review-code.py")
    assert build_bundle(tmp_path / "review-code.py").hash == HASH


def test_names_and_sources_need_not_be_ascii(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {
            "grüße.py": "import wörter\n",
            "wörter.py": "# -*- coding: latin-1 -*-\nX = 'ü'\n".encode("latin-1"),
        },
    )
    bundle = build_bundle(tmp_path / "grüße.py")
    assert bundle.manifest.modules == ("grüße.py", "wörter.py")


def test_escapes_that_python_warns_of_are_no_fault(tmp_path: Path) -> None:
    lay_out(tmp_path, {"a.py": "X = '\\d'\n"})
    assert build_bundle(tmp_path / "a.py").manifest.modules == ("a.py",)


@pytest.mark.parametrize(
    ("files", "entry", "message"),
    [
        ({}, "none.py", "none.py: there is no such file; check the path"),
        ({"a/b.py": ""}, "a", "a: this is a folder; name the entry script in it"),
        (
            {"a.txt": ""},
            "a.txt",
            "a.txt: this is not a Python script; the name of an entry ends in .py",
        ),
        (
            {"__init__.py": ""},
            "__init__.py",
            "__init__.py: a package can't be an entry; name a script that imports it",
        ),
        (
            {"my flow.py": ""},
            "my flow.py",
            "my flow.py: use letters, digits, '-' and '_' in the name: review-code.py",
        ),
        (
            {"a.py": "# nothing\n"},
            "a.py",
            "a.py: it is empty; end it with `run = create_workflow(…)`",
        ),
        ({"a.py": "x = (\n"}, "a.py", "a.py:1: SyntaxError: '(' was never closed"),
        ({"a.py": "if x:\ny\n"}, "a.py", "a.py:2: IndentationError: expected an indented block"),
        ({"a.py": b"x = '\xff'\n"}, "a.py", "a.py:1: SyntaxError: (unicode error) 'utf-8' codec"),
        ({"a.py": b"x\0y"}, "a.py", "source code string cannot contain null bytes"),
        ({"a.py": "import b\n", "b.py": "\n1 +\n"}, "a.py", "b.py:2: SyntaxError: invalid syntax"),
        (
            {"a.py": "\nfrom . import b\n"},
            "a.py",
            "a.py:2: this relative import leads out of the entry's packages; "
            "import the module by its name",
        ),
        (
            {"a.py": "import p.m", "p/__init__.py": "", "p/m.py": "from ...x import y"},
            "a.py",
            "p/m.py:1: this relative import leads out of the entry's packages",
        ),
        (
            {"a.py": "import calendar", "calendar.py": ""},
            "a.py",
            "a.py:1: the local module 'calendar' has the name of a standard module; rename it",
        ),
        (
            {"a.py": "import b", "b.py": "import a", "a/__init__.py": ""},
            "a.py",
            "a.py: ['a'] is a module and a package at once; rename one",
        ),
        ({"a.py": "import b", "b.py/x": ""}, "a.py", "b.py: it can't be read: Is a directory"),
    ],
)
def test_an_entry_that_cannot_be_bundled_is_one_clear_line(
    tmp_path: Path, files: Mapping[str, str | bytes], entry: str, message: str
) -> None:
    lay_out(tmp_path, files)
    with pytest.raises(EntryError) as caught:
        build_bundle(tmp_path / entry)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_device_or_an_impossible_path_is_no_entry(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(EntryError, match="this is not a regular file"):
        build_bundle(tmp_path / "pipe.py")
    with pytest.raises(EntryError, match=r"the path can't be used|there is no such file"):
        build_bundle(tmp_path / "a\0.py")
    with pytest.raises(EntryError, match=r"the path can't be used: .*File name too long"):
        build_bundle(tmp_path / f"{'a' * 300}.py")


def test_modules_have_a_size_limit_together(tmp_path: Path) -> None:
    big = "#" * (9 * 2**20)
    lay_out(tmp_path, {"a.py": "import b, c", "b.py": big, "c.py": big})
    with pytest.raises(EntryError, match="at most 2,000 files of 16,777,216 bytes together"):
        build_bundle(tmp_path / "a.py")
