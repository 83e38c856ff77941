"""`cas get` and `cas ls`: an object by its hash or by a ref, and the refs."""

from __future__ import annotations

import base64
import difflib

import msgspec

from uwf._errors import Failed
from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, pretty
from uwf.terminal._style import Styled
from uwf.terminal._table import Column
from workflow_cas import ObjectMissing, Store, Stored
from workflow_protocol import Hash
from workflow_register import find_home, store_path


def get(output: Output, name: str) -> int:
    """Print a content as its raw bytes, or a node as indented JSON."""
    _require_store()

    async def main() -> Stored:
        async with open_existing(find_home()) as store:
            return await store.get(await _find(store, name))

    found = run_async(main)
    if output.json:
        output.record({"hash": found.hash, "kind": found.kind, **_value(found)})
    elif found.kind == "content":
        output.raw(found.data)
    else:
        output.data(None, pretty(found.data))
    return 0


def ls(output: Output, prefix: str) -> int:
    """List the refs that begin with `prefix`, and where each leads."""
    _require_store()

    async def main() -> dict[str, Hash]:
        async with open_existing(find_home()) as store:
            return await store.refs(prefix)

    columns = (Column("ref"), Column("hash"))
    output.table(
        columns,
        (
            ({"ref": name, "hash": target}, [name, Styled(target[:12], "dim")])
            for name, target in run_async(main).items()
        ),
    )
    return 0


def _require_store() -> None:
    """Refuse to read where nothing is: opening the store would make one.

    Raises:
        Failed: nothing is stored.
    """
    home = find_home()
    if not store_path(home).exists():
        raise Failed(1, f"nothing is stored in {home}")


async def _find(store: Store, name: str) -> Hash:
    """The hash that a ref, a hash or its beginning stands for.

    Raises:
        Failed: there is neither, with the nearest ref.
    """
    if (target := await store.ref(name)) is not None:
        return target
    try:
        return await store.find(name)
    except ObjectMissing as error:
        near = difflib.get_close_matches(name, await store.refs(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`uwf cas ls` lists the refs"
        raise Failed(1, f"there is no ref and no object {name!r}; {hint}") from error


def _value(found: Stored) -> dict[str, object]:
    """What an object holds, as JSON: bytes that are no text in base64."""
    if found.kind == "node":
        return {"node": msgspec.Raw(found.data)}
    try:
        return {"text": found.text()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(found.data).decode()}
