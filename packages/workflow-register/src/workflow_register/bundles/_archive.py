"""The form of a bundle: one zip whose bytes depend on nothing but its modules."""

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

MAX_BUNDLE_BYTES = 16 * 2**20
MAX_MODULES = 2_000
MANIFEST = "bundle.json"
PACKAGE_FILE = "__init__.py"
FORMAT_VERSION = 1

_SEGMENT = re.compile(r"[^\W\d]\w*")
ENTRY = re.compile(r"\w[\w-]*\.py")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_UNIX, _VERSION_2_0 = 3, 20


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle says of itself, as `bundle.json` in the archive."""

    kind: Literal["workflow-bundle"] = "workflow-bundle"
    format: int = FORMAT_VERSION
    entry: str
    """The name of the entry script, such as `review-code.py`."""
    modules: tuple[str, ...]
    """All Python files by their path in the archive, the entry included, sorted."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """An entry script with its local modules. Two bundles are equal if their bytes are."""

    hash: Hash
    """SHA-256 of `data`: what `sha256sum` says of the file."""
    data: bytes = field(repr=False, compare=False)
    """The archive."""
    manifest: BundleManifest = field(compare=False)
    sources: Mapping[str, bytes] = field(repr=False, compare=False)
    """The Python files by their path in the archive."""
    origin: Path | None = field(default=None, compare=False)
    """The folder that it was built from just now, which tracebacks and errors then name."""

    def place(self, module: str) -> str:
        """Say where a module is, for people: where it was built from, or the bundle's hash."""
        return os.path.join(self.origin or f"<bundle {self.hash[:12]}>", *module.split("/"))


def pack(entry: str, sources: Mapping[str, bytes], *, origin: Path | None = None) -> Bundle:
    """Put modules into an archive: equal modules give equal bytes on any machine.

    Raises:
        BundleCorrupt: a name or the size is not one that a bundle may have.
    """
    modules = tuple(sorted(sources))
    manifest = BundleManifest(entry=entry, modules=modules)
    if message := _manifest_fault(manifest):
        raise BundleCorrupt(message)
    if sum(map(len, sources.values())) > MAX_BUNDLE_BYTES:
        raise BundleCorrupt(
            f"the modules of {entry!r} have more than {MAX_BUNDLE_BYTES:,} bytes together; "
            "move data out of them"
        )
    data = _zip({**sources, MANIFEST: msgspec.json.encode(manifest)})
    return Bundle(_sha256(data), data, manifest, dict(sources), origin)


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
        manifest, sources = _unpack(data)
        bundle = pack(manifest.entry, sources)
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


def module_name(file: str) -> str:
    """Turn a path in the archive into a dotted name: `a/b.py` is `a.b`, `a/__init__.py` is `a`."""
    return file.removesuffix(f"/{PACKAGE_FILE}").removesuffix(".py").replace("/", ".")


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


def _unpack(data: bytes) -> tuple[BundleManifest, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MODULES + 1:
            raise BundleCorrupt(f"it has more than {MAX_MODULES:,} modules")
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data):
                raise BundleCorrupt(f"{info.filename!r} is compressed")
        files = {info.filename: archive.read(info) for info in infos}
    if MANIFEST not in files:
        raise BundleCorrupt(f"it has no {MANIFEST}")
    manifest = msgspec.json.decode(files.pop(MANIFEST), type=BundleManifest)
    if manifest.format != FORMAT_VERSION:
        raise BundleCorrupt(
            f"its format is {manifest.format}, and this version reads only {FORMAT_VERSION}: "
            "upgrade uwf"
        )
    return manifest, files


def _manifest_fault(manifest: BundleManifest) -> str | None:
    """Say what no bundle may have. Names that pass can't lead out of any folder."""
    if len(manifest.modules) > MAX_MODULES:
        return f"{manifest.entry!r} has more than {MAX_MODULES:,} modules"
    if not ENTRY.fullmatch(manifest.entry) or manifest.entry not in manifest.modules:
        return f"{manifest.entry!r} can't be an entry; name it like 'review-code.py'"
    for module in manifest.modules:
        *folders, file = module.split("/")
        stem = file.removesuffix(".py")
        names = folders if module == manifest.entry else [*folders, stem]
        if stem == file or not all(_SEGMENT.fullmatch(name) for name in names):
            return f"{module!r} can't be a module's path"
    dotted = [module_name(module) for module in manifest.modules]
    if twice := {name for name in dotted if dotted.count(name) > 1}:
        return f"{sorted(twice)} is a module and a package at once; rename one"
    return None


def _read_file(path: Path) -> bytes:
    try:
        return read_regular(path, 2 * MAX_BUNDLE_BYTES + 1)
    except OSError as error:
        raise BundleCorrupt(f"{str(path)!r} can't be read: {error.strerror or error}") from error
