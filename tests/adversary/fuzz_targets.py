"""What the fuzzers try: each target makes one input of a random source and lets no fault through.

A target raises when a promise is broken; that a hostile input is refused by a typed error is none.
"""

import os
import random
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import anyio
import msgspec
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from workflow_agent_react import (
    Allow,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    ToolError,
    create_react_adapter,
    tool,
)
from workflow_agent_react.workspace._workspace import Workspace
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import MaxRoundsExceeded, NoProgress
from workflow_reactor.testing import ScriptedLlm, call
from workflow_register import BundleCorrupt, ConfigError, build_bundle, read_bundle
from workflow_register.config._yaml import parse_config
from workflow_workspace import Effort, Rules

from .fuzz_replies import dialects, replies, schemas, texts
from .fuzz_thread_files import thread_files

Target = Callable[[random.Random], None]

_YAML = [
    "providers:", "models:", "p:", "base_url: http://x/v1", "extra_body:", " ", "\n", "\n  ",
    "\n    ", "- ", "? ", ": ", ", ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "!x ", "!!int ",
    "!!set ", "'", '"', "#", "---\n", "%YAML 1.2\n", "~", "true", "-1.5e3", ".nan",
    "2020-01-01", "0x1f", "\t", "\x00", "\ufeff", '"\\ud800"', "\x85", "é", "${K}",
    "sk-SECRET-123456789",
]  # fmt: skip
_RULES = (
    rb"a|b|*|**|***|?|/|[ab]|[!a]|[a-c]|[]|[[:alpha:]]|[[:x:]]|[|]|\|\*| |!|#|x.log|-|.|"
    + b"\xff|\n|\r"
).split(b"|")
_PARTS = ["a", "b", "..", ".", "", "link", "up", "abs", "loop", "\0", "é", "\udcff", "x" * 300, "~"]
_WORDS: list[object] = [
    " Delete_All",
    "DELETE_all ",
    "x",
    "",
    "1",
    "5 ",
    None,
    7,
    1.5,
    True,
    [],
    {},
    ["1"],
    "é\u202e",
]


def bundles(rng: random.Random) -> None:
    """A bundle with some bytes changed is refused, or is read to what its hash says."""
    data = bytearray(_bundle())
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at : at + rng.randint(1, 64)]
            case _:
                data[at:at] = rng.randbytes(rng.randint(1, 16))
    with suppress(BundleCorrupt):
        read_bundle(bytes(data))


def workflow_yaml(rng: random.Random) -> None:
    """A file is a configuration, or has faults that repeat no key."""
    text = "".join(rng.choices(_YAML, k=rng.randint(1, 40)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            parse_config(Path("workflow.yaml"), text)
        except ConfigError as error:
            if "SECRET" in str(error):
                raise AssertionError(f"a key is repeated: {error}") from error


def paths(rng: random.Random) -> None:
    """Nothing outside of a workspace is read or written."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "w"
        (root / "a").mkdir(parents=True)
        (Path(folder) / "b").write_text("outside")
        for name, target in (("link", "a"), ("up", ".."), ("abs", folder), ("loop", "loop")):
            (root / name).symlink_to(target)
        path = rng.choice(["", "/", f"{root}/", f"{folder}/"]) + "/".join(
            rng.choices(_PARTS, k=rng.randint(1, 6))
        )
        with Workspace(root, kernel=rng.random() < 0.5) as workspace:
            with suppress(ToolError, OSError):
                if workspace.read(path, max_bytes=99) == b"outside":
                    raise AssertionError(f"{path!r} leads out")
            with suppress(ToolError, OSError), workspace.place(path) as place:
                os.close(os.open(place.name, os.O_CREAT | os.O_EXCL, dir_fd=place.folder_fd))
        if sorted(os.listdir(folder)) != ["b", "w"]:
            raise AssertionError(f"{path!r} wrote outside")


def gitignore(rng: random.Random) -> None:
    """Rules say something of each path, and take no more than was allowed."""
    effort = Effort(rng.choice([0, 100, 10_000, 1_000_000]))
    rules = Rules.of(b"".join(rng.choices(_RULES, k=rng.randint(0, 200))), effort)
    for _ in range(20):
        path = b"/".join(rng.choices([b"a", b"b", b"ab", b"x.log", b"\xff", b"a" * 255], k=4))
        before = effort.steps
        rules.decide(path, folder=rng.random() < 0.5, effort=effort)
        if before - effort.steps > max(before, 0) + 5_000:
            raise AssertionError(f"{before - effort.steps} steps of {before}")


class _Order(BaseModel):
    action: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)] = Field(
        alias="a"
    )
    note: Annotated[str, AfterValidator(lambda text: text + "!")] = "n"
    amount: float = 1


def guards(rng: random.Random) -> None:
    """What a guard saw is what the function got, and nothing that it denied ran."""
    seen: list[bytes] = []
    got: list[bytes] = []

    def act(order: _Order, word: Annotated[str, StringConstraints(to_lower=True)] = "W") -> None:
        got.append(msgspec.json.encode([order.model_dump(mode="json", by_alias=True), word]))

    def guard(call: ProposedCall, ctx: ThreadContext) -> Decision:
        if call.name == "act":
            seen.append(msgspec.json.encode([call.arguments["order"], call.arguments["word"]]))
        return Allow()

    keys = rng.sample(["a", "action", "note", "amount", "x"], k=rng.randint(0, 4))
    arguments: dict[str, object] = {"order": {key: rng.choice(_WORDS) for key in keys}}
    if rng.random() < 0.5:
        arguments["word"] = rng.choice(_WORDS)
    llm = ScriptedLlm([call("act", **arguments), call("resolve", value="x")])
    config = ReactAdapterConfig(llm=llm, toolset=tool(act), guards=[guard], max_rounds=2)
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
    ctx = ThreadContext(thread_id=ThreadId("T"), start=start)

    async def turn() -> str:
        return await create_react_adapter(config)("p", str)(ctx)

    with suppress(MaxRoundsExceeded, NoProgress):
        anyio.run(turn)
    if seen != got:
        raise AssertionError(f"saw {seen}, ran {got}")


_made: list[bytes] = []


def _bundle() -> bytes:
    if not _made:
        with tempfile.TemporaryDirectory() as folder:
            entry = Path(folder) / "entry.py"
            entry.write_text("x = 1\n")
            _made.append(build_bundle(entry).data)
    return _made[0]


TARGETS: dict[str, Target] = {
    "bundles": bundles,
    "workflow.yaml": workflow_yaml,
    "paths": paths,
    "gitignore": gitignore,
    "guards": guards,
    "replies": replies,
    "texts": texts,
    "dialects": dialects,
    "schemas": schemas,
    "thread files": thread_files,
}
