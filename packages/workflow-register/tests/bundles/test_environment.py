"""Which versions a bundle ran under, and which have changed since."""

import sys
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from workflow_cas import MemoryStore, ObjectMissing, StoreFormat, content, node
from workflow_register import (
    Environment,
    build_bundle,
    bundle_objects,
    changes_since,
    check_bundle,
    read_stored_bundle,
    unlike_lock,
)
from workflow_register.bundles._archive import Requirements, pack

from .test_data import script
from .test_layout import WORKFLOW, lay_out

ENVIRONMENT = Environment(python="3.11.0", engine="0.1.0", packages={"httpx": "0.28.1"})


async def test_a_check_records_python_the_engine_and_what_is_imported_or_required(
    tmp_path: Path,
) -> None:
    files = {
        "flow.py": WORKFLOW,
        "entry.py": script() + "from flow import Workflow\nimport json, ruamel.yaml\n"
        "import _pytest\nrun = Workflow()\n",
    }
    found = (await check_bundle(build_bundle(lay_out(tmp_path, files) / "entry.py"))).environment
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.engine == version("workflow-register")
    names = ("httpx", "msgspec", "pydantic", "pytest", "ruamel-yaml")
    assert {name: found.packages.get(name) for name in names} == {n: version(n) for n in names}
    assert "not-installed-anywhere" not in found.packages
    assert changes_since(found) == []


def test_what_changed_is_named_with_both_versions() -> None:
    then = Environment(
        python="3.9.1", engine="0.0.1", packages={"httpx": "0.1", "gone-away": "2", "anyio": ""}
    )
    now = ".".join(map(str, sys.version_info[:3]))
    assert changes_since(then) == [
        f"Python 3.9.1 → {now}",
        f"uwf 0.0.1 → {version('workflow-register')}",
        f"httpx 0.1 → {version('httpx')}",
        "gone-away 2 → not installed",
        f"anyio  → {version('anyio')}",
    ]


def test_what_is_installed_is_compared_with_the_lock() -> None:
    locked = {"httpx": "0.1", "anyio": version("anyio")}
    requires = Requirements(source="entry.py", dependencies=("httpx", "anyio"), locked=locked)
    bundle = pack("entry.py", {"entry.py": b""}, requires=requires)
    assert unlike_lock(bundle) == [f"httpx 0.1 → {version('httpx')}"]
    assert unlike_lock(pack("entry.py", {"entry.py": b""})) == []


async def test_a_stored_bundle_is_read_back_with_its_environment() -> None:
    store, bundle = MemoryStore(), pack("entry.py", {"entry.py": b"x = 1\n"}, {"a.md": b"a"})
    objects = bundle_objects(bundle, ENVIRONMENT)
    await store.commit(objects)
    assert await read_stored_bundle(store, objects[-1].hash) == (bundle, ENVIRONMENT)
    assert bundle_objects(bundle, ENVIRONMENT) == objects
    assert objects[-1].refs == (content(bundle.data).hash,)
    assert await read_stored_bundle(store, objects[0].hash) == (bundle, None)


async def test_what_is_stored_and_no_bundle_is_refused() -> None:
    store, other = MemoryStore(), node("other", {})
    await store.commit([other])
    with pytest.raises(StoreFormat, match="is a 'other', not a bundle"):
        await read_stored_bundle(store, other.hash)
    with pytest.raises(ObjectMissing):
        await read_stored_bundle(store, content(b"x").hash)


def test_an_environment_goes_into_json_and_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ENVIRONMENT), type=Environment) == ENVIRONMENT
