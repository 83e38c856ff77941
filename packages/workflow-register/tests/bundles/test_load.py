import inspect
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from workflow_protocol import WorkflowDefinition
from workflow_register import (
    Bundle,
    EntryError,
    build_bundle,
    load_workflow,
    read_bundle,
)

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


def bundle_of(folder: Path, files: Mapping[str, str], entry: str = "entry.py") -> Bundle:
    """A bundle as it is read from a store: it doesn't know from where it was built."""
    for name, text in {"flow.py": WORKFLOW, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_bundle(build_bundle(folder / entry).data)


def load(bundle: Bundle) -> Any:
    return cast("Any", load_workflow(bundle))


def test_a_bundle_may_be_unpacked_below_the_folder_it_was_built_from(tmp_path: Path) -> None:
    bundle_of(
        tmp_path, {"entry.py": "from flow import Workflow\nHERE = __file__\nrun = Workflow()\n"}
    )
    built = build_bundle(tmp_path / "entry.py")  # as `uwf run` has it: it knows its origin
    home = tmp_path / ".uwf" / "unpacked"
    workflow = cast("Any", load_workflow(built, unpack_to=home))
    assert workflow.definition
    assert sum(1 for _ in home.rglob("entry.py")) == 1


def test_a_bundle_gives_its_run_and_the_same_one_again(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, {"entry.py": "from flow import Workflow\nrun = Workflow(x=1)\n"})
    before = list(sys.path)
    run = load(bundle)
    assert isinstance(run.definition, WorkflowDefinition)
    assert run.x == 1
    assert load_workflow(bundle) is run
    assert "flow" not in sys.modules
    assert "entry" not in sys.modules
    assert sys.path == before


def test_every_form_of_import_finds_the_bundles_modules(tmp_path: Path) -> None:
    bundle = bundle_of(
        tmp_path,
        {
            "entry.py": """
import os.path, json as j
import flow
import pkg.sub.leaf
import pkg.sub.leaf as leaf
import pkg.other as other
from pkg import first, second as two
from pkg.sub import *
from pkg.sub.leaf import VALUE as value
import entry as myself
assert pkg.sub.leaf is leaf and pkg.other is other and os.path.join and j.dumps
assert first.NAME == "first" and two.NAME == "second" and star == "star"
run = flow.Workflow(value=value, myself=myself)
""",
            "pkg/__init__.py": "from . import first\n",
            "pkg/first.py": "NAME = 'first'\n",
            "pkg/second.py": "from .first import NAME as other\nNAME = 'second'\n",
            "pkg/other.py": "import pkg, pkg.first\nassert pkg.first\n",
            "pkg/sub/__init__.py": "star = 'star'\nhidden = 1\n__all__ = ['star']\n",
            "pkg/sub/leaf.py": "from ..second import NAME\nfrom pkg.first import NAME\nVALUE = 7\n",
        },
    )
    run = load(bundle)
    assert run.value == 7
    assert run.myself.run is run


def test_bundles_with_modules_of_one_name_keep_their_own_also_later(tmp_path: Path) -> None:
    def one(word: str) -> Bundle:
        return bundle_of(
            tmp_path / word,
            {
                "entry.py": f"""
import helpers
from flow import Workflow
def later():
    import late.words
    from late import words
    return late.words.WORD, words.WORD, helpers.WORD
run = Workflow(later=later, word="{word}", cls=helpers.Thing)
""",
                "helpers.py": f"WORD = '{word}'\nclass Thing: pass\n",
                "late/__init__.py": "",
                "late/words.py": f"WORD = 'late {word}'\n",
            },
        )

    first, second = load(one("first")), load(one("second"))
    assert first.later() == ("late first", "late first", "first")
    assert second.later() == ("late second", "late second", "second")
    assert first.cls is not second.cls
    assert sys.modules[first.cls.__module__].Thing is first.cls


def test_a_local_module_comes_before_an_installed_one_inside_and_only_inside(
    tmp_path: Path,
) -> None:
    bundle = bundle_of(
        tmp_path,
        {
            "entry.py": "import flow\nimport httpx\nrun = flow.Workflow(mine=httpx.MINE)\n",
            "httpx.py": "MINE = True\n",
        },
    )
    assert load(bundle).mine
    import httpx

    assert not hasattr(httpx, "MINE")


def test_types_of_a_bundle_resolve_their_annotations(tmp_path: Path) -> None:
    bundle = bundle_of(
        tmp_path,
        {
            "entry.py": "import shapes\nfrom flow import Workflow\nrun = Workflow(shapes=shapes)\n",
            "shapes.py": """
from __future__ import annotations
import dataclasses, msgspec, pydantic
class Leaf(pydantic.BaseModel):
    n: int
class Tree(pydantic.BaseModel):
    leaves: list[Leaf]
    up: Tree | None = None
class Wire(msgspec.Struct):
    below: list[Wire]
@dataclasses.dataclass
class Data:
    tree: Tree
""",
        },
    )
    shapes = load(bundle).shapes
    assert shapes.Tree.model_validate({"leaves": [{"n": 1}]}).leaves[0].n == 1
    import msgspec

    assert msgspec.json.decode(b'{"below":[]}', type=shapes.Wire).below == []


def test_tracebacks_and_inspect_show_the_source_of_a_bundle(tmp_path: Path) -> None:
    source = (
        "from flow import Workflow\ndef boom():\n    return 1 / 0  # here\nrun = Workflow(f=boom)\n"
    )
    bundle = bundle_of(tmp_path, {"entry.py": source})
    (tmp_path / "entry.py").unlink()
    run = load(bundle)
    with pytest.raises(ZeroDivisionError) as caught:
        run.f()
    shown = "".join(traceback.format_exception(caught.value))
    assert f'File "<bundle {bundle.hash[:12]}>/entry.py", line 3, in boom' in shown
    assert "return 1 / 0  # here" in shown
    assert inspect.getsource(run.f) == "def boom():\n    return 1 / 0  # here\n"


def test_a_bundle_that_was_just_built_names_the_files_of_its_author(tmp_path: Path) -> None:
    bundle_of(tmp_path, {"entry.py": "from flow import Workflow\nrun = Workflow(a=1)\n1 / 0\n"})
    with pytest.raises(EntryError) as caught:
        load_workflow(build_bundle(tmp_path / "entry.py"))
    assert str(caught.value) == f"{tmp_path / 'entry.py'}:3: ZeroDivisionError: division by zero"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"entry.py": "x = 1\n"}, "entry.py: it has no `run`; end it with `run = create_work"),
        (
            {"entry.py": "def run(): ...\n"},
            "entry.py: its `run` is of type function, not a workflow; "
            "write `run = create_workflow(…)`",
        ),
        (
            {"entry.py": "from flow import Workflow as run\nrun.definition = run().definition\n"},
            "entry.py: its `run` is of type type, not a workflow",
        ),
        (
            {"entry.py": "import bad\n", "bad.py": "\nraise ValueError('two\\n  lines')\n"},
            "bad.py:2: ValueError: two lines",
        ),
        (
            {"entry.py": "import nowhere_at_all.x\n"},
            "entry.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'; "
            "install it where uwf runs, or put nowhere_at_all.py beside the entry",
        ),
        (
            {"entry.py": "import p.gone\n", "p/__init__.py": ""},
            "entry.py:1: ModuleNotFoundError: No module named 'p.gone'; "
            "the bundle has no such module: check the name",
        ),
        (
            {
                "entry.py": "import flow, pkgutil\nimport sys\n"
                "sys.modules['pkgutil'].resolve_name('flow')\n"
            },
            "entry.py:3: ModuleNotFoundError: No module named 'flow'; "
            "only the bundle's own code sees its modules: import it there",
        ),
        (
            {"entry.py": "from flow import nothing\n"},
            "entry.py:1: ImportError: cannot import name 'nothing' from 'flow'",
        ),
        (
            {"entry.py": "import os\nKEY = os.environ['NO_SUCH_KEY']\n"},
            "entry.py:2: KeyError: 'NO_SUCH_KEY'; an entry must import without environment "
            "variables: use configured_llm(), or read them when a role runs",
        ),
        ({"entry.py": "{}['key']\n"}, "entry.py:1: KeyError: 'key'"),
        (
            {"entry.py": "import sys\nsys.exit('bye')\n"},
            "entry.py:2: SystemExit: bye; importing an entry must not end the process",
        ),
        ({"entry.py": "assert False\n"}, "entry.py:1: AssertionError"),
        (
            {"entry.py": "x = 1\nreturn\n"},
            "entry.py:2: SyntaxError: 'return' outside function",
        ),
        (
            {"entry.py": "import json\njson.loads('{')\n"},
            "entry.py:2: JSONDecodeError: Expecting property name",
        ),
        (
            {"entry.py": "from flow import *\nWorkflowDefinition(table={})\n"},
            "entry.py:2: DefinitionError: the workflow definition has ",
        ),
    ],
)
def test_an_entry_that_cannot_be_loaded_is_one_clear_line(
    tmp_path: Path, files: Mapping[str, str], message: str
) -> None:
    bundle = bundle_of(tmp_path, files)
    for _ in range(2):  # the second time is no different
        with pytest.raises(EntryError) as caught:
            load_workflow(bundle)
        assert str(caught.value).startswith(f"<bundle {bundle.hash[:12]}>/{message}")
        assert "\n" not in str(caught.value) or "DefinitionError" in message
        assert "uwf_bundle" not in str(caught.value)


def test_the_faults_of_a_definition_keep_their_lines(tmp_path: Path) -> None:
    code = "from flow import *\nWorkflowDefinition(table={})\n"
    bundle = bundle_of(tmp_path, {"entry.py": code})
    with pytest.raises(EntryError) as caught:
        load_workflow(bundle)
    first, *faults = str(caught.value).splitlines()
    assert first.endswith(f"has {len(faults)} faults:")
    assert len(faults) > 1
    assert all(each.startswith("  ") for each in faults)


def test_an_import_that_failed_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = bundle_of(
        tmp_path,
        {"entry.py": "import os, flow\nos.environ['SWITCH']\nrun = flow.Workflow(done=True)\n"},
    )
    with pytest.raises(EntryError):
        load_workflow(bundle)
    monkeypatch.setenv("SWITCH", "on")
    assert load(bundle).done


def test_an_interrupt_is_not_taken_for_a_fault_of_the_entry(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, {"entry.py": "raise KeyboardInterrupt\n"})
    with pytest.raises(KeyboardInterrupt):
        load_workflow(bundle)
