"""Which paths the files of a bundle may have: none leads out, and none means two files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

PACKAGE_FILE = "__init__.py"
MANIFEST = "bundle.json"
MAX_PATH_BYTES = 1_000
MAX_NAME_BYTES = 200

ENTRY_FILE = re.compile(r"\w[\w-]*\.py")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')


def module_name(file: str) -> str:
    """Turn a path in the archive into a dotted name: `a/b.py` is `a.b`, `a/__init__.py` is `a`."""
    return file.removesuffix(f"/{PACKAGE_FILE}").removesuffix(".py").replace("/", ".")


def is_identifier(name: str) -> bool:
    """Whether an `import` statement can have this word."""
    return _IDENTIFIER.fullmatch(name) is not None


def path_fault(path: str) -> str | None:
    """Say why a path can't be a file's in an archive. One without a fault stays in its folder."""
    names = path.split("/")
    if path == MANIFEST:
        return f"the name {MANIFEST!r} is the bundle's own; rename the file"
    if not all(names) or any(name in {".", ".."} for name in names):
        return f"{path!r} can't be a file's path in a bundle"
    if _FORBIDDEN.search(path):
        return f"{path!r} has characters that not every system allows in a name; rename it"
    if any(name != name.rstrip(" .") for name in names):
        return f"{path!r} has a name that ends in a space or a dot; rename it"
    try:
        if len(path.encode()) > MAX_PATH_BYTES or max(map(_bytes_of, names)) > MAX_NAME_BYTES:
            return f"{path[:80]!r}… is too long; shorten it"
    except UnicodeEncodeError:
        return f"{path!r} is no valid text; rename the file"
    if unicodedata.normalize("NFC", path) != path:
        return f"{path!r} isn't in the Unicode form NFC"
    return None


def module_fault(path: str) -> str | None:
    """Say why a path can't be a module's, which `import` statements have to reach."""
    *folders, file = path.split("/")
    names = [*folders, file.removesuffix(".py")]
    if file.endswith(".py") and all(map(is_identifier, names)):
        return path_fault(path)
    return f"{path!r} can't be a module's path"


def clash(paths: Iterable[str]) -> str | None:
    """Say which two paths can't be together on every system."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        names = path.split("/")
        for depth in range(1, len(names)):
            folder = "/".join(names[:depth])
            if (seen := folders.setdefault(_folded(folder), folder)) != folder:
                return f"{seen!r} and {folder!r} differ only in case; rename one"
        if (seen := files.setdefault(_folded(path), path)) != path:
            return f"{seen!r} and {path!r} differ only in case; rename one"
    both = sorted(set(files) & set(folders))
    return f"{files[both[0]]!r} is a file and a folder at once; rename one" if both else None


def _folded(path: str) -> str:
    """The same text for all paths that some system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def _bytes_of(name: str) -> int:
    return len(name.encode())
