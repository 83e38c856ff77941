import io
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_register import Bundle, BundleCorrupt, build_bundle, read_bundle, write_bundle
from workflow_register.bundles._archive import pack

SOURCES = {"greet.py": b"import lib\n", "lib.py": b"X = 1\n"}
BUNDLE = pack("greet.py", SOURCES)
MANIFEST = msgspec.json.encode(BUNDLE.manifest)


def zipped(files: Iterable[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def manifest(**changes: object) -> bytes:
    whole = {"kind": "workflow-bundle", "format": 2, "entry": "a.py", "modules": ["a.py"]}
    return msgspec.json.encode({**whole, **changes})


def test_the_bytes_of_a_bundle_never_change() -> None:
    # The names of bundles that people have registered depend on this. Changing it means raising
    # the format's version.
    assert BUNDLE.hash == "b8e761403e871b3eba005b7aedd7c8d44dfe98a1305b9d1faf48b3672acf0eaf"


def test_a_bundle_is_read_back_as_it_was() -> None:
    again = read_bundle(BUNDLE.data, expected=BUNDLE.hash)
    assert again == BUNDLE
    assert (again.data, again.manifest, again.sources) == (BUNDLE.data, BUNDLE.manifest, SOURCES)
    assert again.manifest.modules == ("greet.py", "lib.py")
    assert hash(again) == hash(BUNDLE)


def test_writing_is_named_by_the_hash_and_again_a_no_op(tmp_path: Path) -> None:
    path = write_bundle(BUNDLE, tmp_path / "bundles")
    before = path.stat()
    assert path == tmp_path / "bundles" / f"{BUNDLE.hash}.zip"
    assert write_bundle(BUNDLE, tmp_path / "bundles") == path
    assert path.stat().st_ino == before.st_ino
    assert read_bundle(path) == BUNDLE
    assert os.listdir(path.parent) == [path.name]


def test_writing_mends_a_damaged_file(tmp_path: Path) -> None:
    path = write_bundle(BUNDLE, tmp_path)
    path.write_bytes(BUNDLE.data[:-1])
    with pytest.raises(BundleCorrupt, match=r"is damaged: its SHA-256 is [0-9a-f]{64}; build or"):
        read_bundle(path)
    write_bundle(BUNDLE, tmp_path)
    assert read_bundle(path) == BUNDLE


def test_another_bundle_than_the_expected_one_is_refused() -> None:
    other = pack("greet.py", {"greet.py": b"run = 1\n"})
    with pytest.raises(BundleCorrupt, match="the archive is damaged"):
        read_bundle(other.data, expected=BUNDLE.hash)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BundleCorrupt, match="can't be read: No such file"):
        read_bundle(tmp_path / "none.zip")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "File is not a zip file"),
        (b"PK\x05\x06" + bytes(18), "it has no bundle.json"),
        (zipped([("a.py", b"")]), "it has no bundle.json"),
        (zipped([("bundle.json", b"{}")]), "missing required field `format`"),
        (zipped([("bundle.json", manifest(kind="other")), ("a.py", b"")]), "Invalid enum value"),
        (zipped([("bundle.json", manifest(format=3)), ("a.py", b"")]), "format is 3.* upgrade"),
        (zipped([("bundle.json", manifest(format=1)), ("a.py", b"")]), "1.* `uwf bundle` makes"),
        (zipped([("bundle.json", manifest()), ("../a.py", b"")]), "'a.py' can't be an entry"),
        (
            zipped([("bundle.json", MANIFEST), *SOURCES.items()], zipfile.ZIP_DEFLATED),
            "'bundle.json' is compressed",
        ),
        (b"x" * (33 * 2**20), "has more than 33,554,432 bytes"),
        (zipped((f"m{n}.py", b"") for n in range(2_002)), "more than 2,000 files"),
    ],
)
def test_what_is_not_a_bundle_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BundleCorrupt, match=message):
        read_bundle(data)


@pytest.mark.parametrize(
    "name",
    [
        "../a.py",
        "/a.py",
        "a/../b.py",
        "./a.py",
        "a//b.py",
        "a\\b.py",
        "C:/a.py",
        "a.txt",
        "a/.py",
        "a-b/c.py",
        "a.b/c.py",
        "a/b-c.py",
        "con fig.py",
        "a/b",
        ".py",
        "",
    ],
)
def test_no_name_leads_out_of_the_archive(name: str) -> None:
    data = zipped(
        [
            ("a.py", b""),
            ("bundle.json", manifest(modules=sorted(["a.py", name]))),
            (name, b""),
        ]
    )
    with pytest.raises(BundleCorrupt, match="is not a workflow bundle"):
        read_bundle(data)


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab./\\-_ \0é"), max_size=12))
def test_a_name_is_refused_or_stays_inside(name: str) -> None:
    try:
        bundle = pack("entry.py", {"entry.py": b"", f"{name}.py": b""})
    except BundleCorrupt:
        return
    for module in bundle.manifest.modules:
        assert Path("/root/x", module).resolve().is_relative_to("/root/x")
        assert "\\" not in module
    assert read_bundle(bundle.data) == bundle


def test_one_name_cannot_be_a_module_and_a_package() -> None:
    with pytest.raises(BundleCorrupt, match=r"\['a'\] is a module and a package at once"):
        pack("a.py", {"a.py": b"", "a/__init__.py": b""})


def test_only_the_one_form_of_a_bundle_is_accepted() -> None:
    for files in (
        [("bundle.json", MANIFEST), *SOURCES.items()],  # other times and modes
        [*SOURCES.items(), ("bundle.json", MANIFEST), ("extra.py", b"")],
    ):
        with pytest.raises(BundleCorrupt, match=r"form of a bundle"):
            read_bundle(zipped(files))
    with pytest.raises(BundleCorrupt):
        read_bundle(BUNDLE.data + b"trailing")


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(BUNDLE.data) - 1), st.integers(1, 255), st.booleans())
def test_a_changed_or_cut_archive_is_never_taken_for_the_bundle(
    position: int, change: int, cut: bool
) -> None:
    damaged = bytearray(BUNDLE.data)
    damaged[position] ^= change
    data = BUNDLE.data[:position] if cut else bytes(damaged)
    with pytest.raises(BundleCorrupt):
        read_bundle(data, expected=BUNDLE.hash)
    try:
        found: Bundle = read_bundle(data)
    except BundleCorrupt:
        return
    assert found != BUNDLE  # another bundle, in the right form


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_bundle_or_refused(data: bytes) -> None:
    with pytest.raises(BundleCorrupt):
        read_bundle(data)


def test_an_entry_from_disk_has_the_bytes_of_its_modules(tmp_path: Path) -> None:
    for name, source in SOURCES.items():
        (tmp_path / name).write_bytes(source)
    assert build_bundle(tmp_path / "greet.py").data == BUNDLE.data
