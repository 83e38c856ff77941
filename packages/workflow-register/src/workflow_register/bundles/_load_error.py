"""What went wrong with the import of a bundle, in one line that names the place and the remedy."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from workflow_protocol import WorkflowError
from workflow_register._errors import EntryError
from workflow_register.bundles._archive import Bundle

_DECLARE = "name it in `files` of `[tool.uwf]`, in a `# /// script` block or in pyproject.toml"


def import_error(
    bundle: Bundle, prefix: str, has_module: Callable[[str], bool], error: BaseException
) -> EntryError:
    """One line that says where in the bundle it went wrong, and what to do.

    Args:
        prefix: what the names of the bundle's modules begin with in this process.
        has_module: whether a name is one of the bundle's modules.
    """
    place, line = bundle.place(bundle.manifest.entry), None
    for frame, line_number in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).startswith(f"{prefix}."):
            place, line = frame.f_code.co_filename, line_number
    if isinstance(error, SyntaxError):
        place, line = error.filename or place, error.lineno or line
    words = str(error.msg if isinstance(error, SyntaxError) else error)
    words = words.replace(f"{prefix}.", "")
    if not isinstance(error, WorkflowError):  # whose lines are made for people
        words = " ".join(words.split())
    kind = type(error).__name__
    advice = _advice(bundle, prefix, has_module, error)
    return EntryError(place, f"{kind}{': ' if words else ''}{words}{advice}", line=line)


def _advice(
    bundle: Bundle, prefix: str, has_module: Callable[[str], bool], error: BaseException
) -> str:
    match error:
        case SystemExit():
            return "; importing an entry must not end the process: guard it with `if __name__ …`"
        case ModuleNotFoundError(name=str(name)) if name.startswith(prefix):
            return "; the bundle has no such module: check the name"
        case ModuleNotFoundError(name=str(name)) if has_module(name):
            return "; only the bundle's own code sees its modules: import it there"
        case ModuleNotFoundError(name=str(name)) if place := _beside_origin(bundle, name):
            return (
                f"; it is only found at {place!r}, which is not in the bundle: "
                f"write an `import` statement for it, or {_DECLARE}"
            )
        case ModuleNotFoundError(name=str(name)):
            first = name.partition(".")[0]
            return f"; install it where uwf runs, or put {first}.py beside the entry"
        case FileNotFoundError(filename=str(name)):
            return (
                f"; a bundle has the files that it declares: {_DECLARE}, "
                "and open it from Path(__file__).parent"
                if name
                else ""
            )
        case KeyError() if _raising_module(error) == "os":
            return (
                "; an entry must import without environment variables: "
                "use configured_llm(), or read them when a role runs"
            )
        case _:
            return ""


def _beside_origin(bundle: Bundle, name: str) -> str | None:
    """Where a module is that exists beside the origin, and so would be missing elsewhere."""
    path = name.split(".")
    for folder in bundle.local_folders:
        for found in (folder.joinpath(*path).with_suffix(".py"), folder.joinpath(*path)):
            if found.exists():
                return str(found)
    return None


def _raising_module(error: BaseException) -> object:
    """The module of the innermost frame. By its name: frozen modules have no file."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_globals.get("__name__") if frames else None
