"""The form of a bundle: one zip whose bytes depend on nothing but its files."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from workflow_protocol import Hash
from workflow_register._errors import BundleCorrupt
from workflow_register._files import read_regular, write_atomically
from workflow_register.bundles._names import (
    ENTRY_FILE,
    MANIFEST,
    clash,
    module_fault,
    module_name,
    path_fault,
)

MAX_BUNDLE_BYTES = 16 * 2**20
MAX_FILES = 2_000
FORMAT_VERSION = 2

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_UNIX, _VERSION_2_0 = 3, 20


class Requirements(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle's author says that it needs, read from the script or its project."""

    source: str
    """The file that says so: the entry, or `pyproject.toml`."""
    python: str = ""
    """As in `requires-python`, such as `>=3.11`; empty if nothing is said."""
    dependencies: tuple[str, ...] = ()
    """As they are written, such as `httpx>=0.28`, sorted."""
    locked: Mapping[str, str] = {}
    """The versions of these dependencies in the lock file beside it, by name."""


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle says of itself, as `bundle.json` in the archive."""

    kind: Literal["workflow-bundle"]
    """Tells it from other archives."""
    format: int
    """Of the archive; a reader refuses a higher one."""
    entry: str
    """The path of the entry script in the archive, such as `review-code.py`."""
    modules: tuple[str, ...]
    """All Python modules by their path in the archive, the entry included, sorted."""
    files: tuple[str, ...] = ()
    """All other files by their path in the archive, sorted."""
    roots: tuple[str, ...] = ("",)
    """The folders in the archive where top-level modules are looked up; empty is the whole."""
    requires: Requirements | None = None
    """What its author says that it needs: Python, packages, a lock file."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An entry script with its local modules and files. Two are equal if their bytes are."""

    hash: Hash
    """SHA-256 of `data`: what `sha256sum` says of the file."""
    data: bytes = field(repr=False, compare=False)
    """The archive."""
    manifest: BundleManifest = field(compare=False)
    """What it says of itself."""
    sources: Mapping[str, bytes] = field(repr=False, compare=False)
    """The Python modules by their path in the archive."""
    files: Mapping[str, bytes] = field(repr=False, compare=False)
    """The other files by their path in the archive."""
    origin: Path | None = field(default=None, compare=False)
    """The folder that it was built from just now, which tracebacks and errors then name."""
    local_folders: tuple[Path, ...] = field(default=(), compare=False)
    """Where it was built: folders whose modules must come out of the bundle and nowhere else."""

    def place(self, file: str) -> str:
        """Say where a file is, for people: where it was built from, or the bundle's hash."""
        return os.path.join(self.origin or f"<bundle {self.hash[:12]}>", *file.split("/"))


def pack(
    entry: str,
    sources: Mapping[str, bytes],
    files: Mapping[str, bytes] | None = None,
    *,
    roots: tuple[str, ...] = ("",),
    requires: Requirements | None = None,
    origin: Path | None = None,
    local_folders: tuple[Path, ...] = (),
) -> Bundle:
    """Put modules and files into an archive: equal ones give equal bytes on any machine.

    Raises:
        BundleCorrupt: a name or the size is not one that a bundle may have.
    """
    files = files or {}
    manifest = BundleManifest(
        kind="workflow-bundle",
        format=FORMAT_VERSION,
        entry=entry,
        modules=tuple(sorted(sources)),
        files=tuple(sorted(files)),
        roots=roots,
        requires=requires,
    )
    if message := _manifest_fault(manifest):
        raise BundleCorrupt(message)
    if sum(map(len, (*sources.values(), *files.values()))) > MAX_BUNDLE_BYTES:
        raise BundleCorrupt(
            f"the files of {entry!r} have more than {MAX_BUNDLE_BYTES:,} bytes together; "
            "leave large ones out"
        )
    written = msgspec.json.encode(manifest, order="deterministic")
    data = _zip({**sources, **files, MANIFEST: written})
    return Bundle(_sha256(data), data, manifest, dict(sources), dict(files), origin, local_folders)


def read_bundle(source: bytes | Path, *, expected: Hash | None = None) -> Bundle:
    """Read an archive and prove that it is a bundle, whole and in the one form that bundles have.

    Args:
        source: the bytes, or a file. A file that `write_bundle` named must have that hash.
        expected: the hash that it must have.

    Raises:
        BundleCorrupt: it isn't a bundle, it is damaged, or it is another one than expected.
    """
    if isinstance(source, Path):
        name, data = repr(str(source)), _read_file(source)
        if expected is None and re.fullmatch(r"[0-9a-f]{64}", source.stem):
            expected = Hash(source.stem)
    else:
        name, data = "the archive", source
    if len(data) > 2 * MAX_BUNDLE_BYTES:
        raise BundleCorrupt(f"{name} has more than {2 * MAX_BUNDLE_BYTES:,} bytes; build it again")
    found = _sha256(data)
    if expected is not None and found != expected:
        raise BundleCorrupt(f"{name} is damaged: its SHA-256 is {found}; build or fetch it again")
    try:
        bundle = _unpack(data)
    except (
        zipfile.BadZipFile, msgspec.MsgspecError, KeyError, ValueError, EOFError, OSError,
        NotImplementedError, RuntimeError, BundleCorrupt,
    ) as error:  # fmt: skip
        raise BundleCorrupt(f"{name} is not a workflow bundle: {error}; build it again") from error
    if bundle.data != data:
        raise BundleCorrupt(f"{name} is not in the form of a bundle; build it again")
    return bundle


def write_bundle(bundle: Bundle, folder: Path) -> Path:
    """Write `<folder>/<hash>.zip` and return its path. To write it again changes nothing.

    Raises:
        OSError: the folder can't be made or written.
    """
    path = folder / f"{bundle.hash}.zip"
    try:
        if read_regular(path, len(bundle.data) + 1) == bundle.data:
            return path
    except FileNotFoundError:
        pass
    write_atomically(path, bundle.data, mode=0o644)
    return path


def _sha256(data: bytes) -> Hash:
    return Hash(hashlib.sha256(data).hexdigest())


def _zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = _UNIX, 0o100644 << 16
            info.create_version = info.extract_version = _VERSION_2_0
            archive.writestr(info, files[name])
    return out.getvalue()


def _unpack(data: bytes) -> Bundle:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_FILES + 1:
            raise BundleCorrupt(f"it has more than {MAX_FILES:,} files")
        if sum(info.file_size for info in infos) > len(data):
            raise BundleCorrupt("its files are larger than the archive")
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED:
                raise BundleCorrupt(f"{info.filename!r} is compressed")
        contents = {info.filename: archive.read(info) for info in infos}
    if MANIFEST not in contents:
        raise BundleCorrupt(f"it has no {MANIFEST}")
    written = contents.pop(MANIFEST)
    version = msgspec.json.decode(written, type=_FormatOnly).format
    if version != FORMAT_VERSION:
        what = "upgrade uwf" if version > FORMAT_VERSION else "`uwf bundle` makes a new one"
        raise BundleCorrupt(
            f"its format is {version}, and this version reads only {FORMAT_VERSION}: {what}"
        )
    manifest = msgspec.json.decode(written, type=BundleManifest)
    modules = set(manifest.modules)
    return pack(
        manifest.entry,
        {name: each for name, each in contents.items() if name in modules},
        {name: each for name, each in contents.items() if name not in modules},
        roots=manifest.roots,
        requires=manifest.requires,
    )


class _FormatOnly(msgspec.Struct):
    """The part of a manifest that says how to read the rest."""

    format: int


def _manifest_fault(manifest: BundleManifest) -> str | None:
    """Say what no bundle may have. Names that pass can't lead out of any folder."""
    paths = (*manifest.modules, *manifest.files)
    if len(paths) > MAX_FILES:
        return f"{manifest.entry!r} has more than {MAX_FILES:,} files"
    entry_folder, _, entry_file = manifest.entry.rpartition("/")
    if not ENTRY_FILE.fullmatch(entry_file) or manifest.entry not in manifest.modules:
        return f"{manifest.entry!r} can't be an entry; name it like 'review-code.py'"
    for path in manifest.modules:
        if fault := path_fault(path) if path == manifest.entry else module_fault(path):
            return fault
    for path in (*manifest.files, *filter(None, (*manifest.roots, entry_folder))):
        if fault := path_fault(path):
            return fault
    dotted = [module_name(module) for module in manifest.modules]
    if twice := {name for name in dotted if dotted.count(name) > 1}:
        return f"{sorted(twice)} is a module and a package at once; rename one"
    return clash(paths)


def _read_file(path: Path) -> bytes:
    try:
        return read_regular(path, 2 * MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise BundleCorrupt(f"{str(path)!r} can't be read: {error.strerror or error}") from error
