import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react._errors import OutsideWorkspace, ToolError
from workflow_agent_react.workspace._workspace import NotRegular, Workspace

BOTH = pytest.mark.parametrize("kernel", [True, False], ids=["openat2", "walk"])


def build(base: Path) -> Path:
    """A workspace with everything in it that has led somebody out of one."""
    root = base / "proj"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "f").write_text("f in a")
    (root / "a" / "b" / "g").write_text("g in b")
    (base / "proj-evil").mkdir()
    (base / "proj-evil" / "x").write_text("secret")
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("secret")
    (root / "out").symlink_to(base / "outside")
    (root / "up").symlink_to("..")
    (root / "dangling").symlink_to(base / "outside" / "new")
    (root / "inner").symlink_to("a/b")
    (root / "whole").symlink_to(root / "a")
    (root / "back").symlink_to("../proj/a/f")
    (root / "loop").symlink_to("loop")
    (root / "a" / "over").symlink_to("../a/./b/../f")
    os.link(root / "a" / "f", root / "hard")
    os.mkfifo(root / "fifo")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture
def outside(root: Path) -> Iterator[None]:
    """What is outside is the same afterwards."""

    def seen() -> dict[str, str]:
        folders = ("outside", "proj-evil")
        files = [item for name in folders for item in (root.parent / name).iterdir()]
        return {str(item): item.read_text() for item in files}

    before = seen()
    yield
    assert seen() == before
    assert sorted(os.listdir(root.parent)) == ["outside", "proj", "proj-evil"]


def read(root: Path, path: str, *, kernel: bool) -> bytes:
    with Workspace(root, kernel=kernel) as workspace:
        return workspace.read(path, max_bytes=100)


@BOTH
@pytest.mark.parametrize(
    "path",
    [
        "../proj-evil/x",
        "out/secret",
        "dangling",
        "/etc/hostname",
        "a/../../outside/secret",
        "up/outside/secret",
        "a/../..",
        "inner/../../../outside/secret",
        "back",
        "..",
        "/",
    ],
)
@pytest.mark.usefixtures("outside")
def test_a_path_that_leads_out_is_refused_with_one_error(
    root: Path, path: str, kernel: bool
) -> None:
    with pytest.raises(OutsideWorkspace) as caught:
        read(root, path, kernel=kernel)

    assert caught.value.path == path
    assert repr(path) in str(caught.value)


@BOTH
def test_an_absolute_path_beside_the_workspace_is_outside_of_it(root: Path, kernel: bool) -> None:
    with pytest.raises(OutsideWorkspace):
        read(root, f"{root}-evil/x", kernel=kernel)


@BOTH
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a/f", b"f in a"),
        ("./a//f", b"f in a"),
        ("a/b/../f", b"f in a"),
        ("inner/g", b"g in b"),
        ("inner/../f", b"f in a"),
        ("whole/b/g", b"g in b"),
        ("a/over", b"f in a"),
        ("hard", b"f in a"),
        ("out/../a/f", None),
    ],
)
def test_what_stays_inside_works_and_so_do_links_that_stay_inside(
    root: Path, path: str, text: bytes | None, kernel: bool
) -> None:
    if text is None:
        with pytest.raises(OutsideWorkspace):
            read(root, path, kernel=kernel)
    else:
        assert read(root, path, kernel=kernel) == text


@BOTH
def test_an_absolute_path_into_the_workspace_works(root: Path, kernel: bool) -> None:
    assert read(root, str(root / "a" / "f"), kernel=kernel) == b"f in a"


@BOTH
def test_a_workspace_that_is_reached_by_a_link_takes_both_its_names(
    root: Path, kernel: bool
) -> None:
    (root.parent / "outside" / "alias").symlink_to(root)
    alias = root.parent / "outside" / "alias"

    assert read(alias, str(alias / "a" / "f"), kernel=kernel) == b"f in a"
    assert read(alias, str(root / "a" / "f"), kernel=kernel) == b"f in a"


@BOTH
def test_a_pipe_a_socket_and_a_folder_are_told_apart_without_waiting(
    root: Path, kernel: bool
) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))

        for path in ("fifo", "sock"):
            with pytest.raises(NotRegular):
                read(root, path, kernel=kernel)
        with pytest.raises(IsADirectoryError):
            read(root, "a", kernel=kernel)


@BOTH
def test_a_read_stops_one_byte_after_its_limit(root: Path, kernel: bool) -> None:
    (root / "big").write_bytes(b"x" * 1000)

    assert read(root, "big", kernel=kernel) == b"x" * 101


@BOTH
@pytest.mark.parametrize("path", ["nul\0", "lone\ud800", "n" * 300, "loop", "a/f/x", "a/f/"])
def test_a_path_that_cannot_be_opened_is_an_ordinary_error(
    root: Path, path: str, kernel: bool
) -> None:
    with pytest.raises((ToolError, OSError)):
        read(root, path, kernel=kernel)


def test_a_workspace_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="workspace folder can't be opened"):
        Workspace(tmp_path / "gone")


@pytest.mark.parametrize("path", ["dangling", "out/new", "up/new", "a/../../x", "/etc/new"])
@pytest.mark.usefixtures("outside")
def test_no_place_to_write_is_outside(root: Path, path: str) -> None:
    with (
        Workspace(root) as workspace,
        pytest.raises(OutsideWorkspace),
        workspace.place(path, make_folders=True),
    ):
        pytest.fail("a place outside was given")


def test_a_place_behind_a_link_is_where_the_link_leads(root: Path) -> None:
    (root / "later").symlink_to("fresh/folder/file")
    with Workspace(root) as workspace, workspace.place("later", make_folders=True) as place:
        fd = os.open(place.name, os.O_WRONLY | os.O_CREAT, dir_fd=place.folder_fd)
        os.close(fd)

    assert (root / "fresh" / "folder" / "file").exists()
    assert (root / "later").is_symlink()


@BOTH
@pytest.mark.usefixtures("outside")
def test_a_swap_between_look_and_open_never_leads_out(root: Path, kernel: bool) -> None:
    done = threading.Event()
    swaps = 0
    (root / "box").mkdir()
    (root / "box" / "secret").write_text("inside")

    def swap() -> None:
        nonlocal swaps
        while not done.is_set():
            os.rename(root / "box", root / "kept")
            os.symlink(root.parent / "outside", root / "box")
            os.unlink(root / "box")
            os.rename(root / "kept", root / "box")
            swaps += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes | type[Exception]] = set()
    try:
        with Workspace(root, kernel=kernel) as workspace:
            tries = 0
            while tries < 1_500 or swaps < 20 or not {b"inside", OutsideWorkspace} <= seen:
                tries += 1
                try:
                    seen.add(workspace.read("box/secret", max_bytes=100))
                except (OutsideWorkspace, FileNotFoundError) as error:
                    seen.add(type(error))
    finally:
        done.set()
        swapper.join()

    assert b"secret" not in seen


NAMES = [
    "a",
    "b",
    "f",
    "g",
    "..",
    ".",
    "",
    "out",
    "up",
    "inner",
    "whole",
    "back",
    "loop",
    "dangling",
    "secret",
    "hard",
    "over",
    "fifo",
    "outside",
    "proj",
    "missing",
]
PATHS = st.one_of(
    st.lists(st.sampled_from(NAMES), max_size=8).map("/".join),
    st.lists(st.sampled_from(NAMES), max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.text(max_size=30),
)


@pytest.fixture(scope="module")
def shared_root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield build(Path(folder))


def outcome(root: Path, path: str, *, kernel: bool) -> tuple[object, ...]:
    try:
        return ("read", read(root, path, kernel=kernel))
    except OSError as error:
        return (type(error), error.errno)
    except ToolError as error:
        return (type(error), str(error))


@given(path=PATHS, absolute=st.booleans())
@settings(max_examples=500)
def test_no_path_leads_out_and_both_ways_to_open_agree(
    shared_root: Path, path: str, absolute: bool
) -> None:
    path = f"{shared_root}/{path}" if absolute else path

    by_kernel = outcome(shared_root, path, kernel=True)
    by_walk = outcome(shared_root, path, kernel=False)

    assert by_kernel == by_walk
    assert b"secret" not in by_kernel
