"""What is kept of an exception: where in the user's code it was raised, and the traceback."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import cast

from workflow_protocol import WorkflowError, escaped_text

MAX_TRACEBACK_CHARS = 16_000

OUR_PACKAGES = frozenset(
    {
        "pytest_uwf", "uwf", "workflow_agent_cli", "workflow_agent_llm", "workflow_agent_react",
        "workflow_cas", "workflow_execute", "workflow_local_model", "workflow_otel",
        "workflow_protocol", "workflow_reactor", "workflow_register", "workflow_templates",
        "workflow_util_agent", "workflow_workspace",
    }
)  # fmt: skip
_LIBRARY = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
_INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_MIN_SECRET_CHARS = 8
_MAX_DEPTH = 50
"""An exception may be its own cause, in a circle."""


def origin_of(error: Exception) -> str:
    """The file, line and function that raised it: of the user, else ours; else empty.

    What these packages raise on purpose has no place of ours: its message says what to do.
    """
    causes = list(_causes(error))
    for wanted in (_is_users,) if isinstance(error, WorkflowError) else (_is_users, _is_ours):
        for each in causes:
            frames = [at for at in traceback.walk_tb(each.__traceback__) if wanted(at[0])]
            if frames:
                frame, line = frames[-1]
                return f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"
    return ""


def traceback_of(error: Exception) -> str:
    """The traceback with its causes, of limited length, without the secrets of the environment."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - the exception is of the role's own class
        text = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    text = storable(text)
    if len(text) > MAX_TRACEBACK_CHARS:
        half = MAX_TRACEBACK_CHARS // 2
        text = f"{text[:half]}\n… ({len(text) - 2 * half} characters left out)\n{text[-half:]}"
    return text


def message_of(error: BaseException) -> str:
    """What an exception says, as text that can be stored, whatever its `__str__` does."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - it is the role's own class
        message = ""
    if isinstance(error, ExceptionGroup):  # which says only how many there are
        members = cast("ExceptionGroup[Exception]", error).exceptions
        said = "; ".join(f"{type(each).__name__}: {message_of(each)}" for each in members)
        message = f"{message}: {said}"
    return storable(message)


def storable(text: str) -> str:
    """Text without lone surrogates, and without what the environment keeps secret."""
    for name, value in environment_secrets():
        text = text.replace(value, f"${{{name}}}")
    return escaped_text(text)


def environment_secrets() -> Iterator[tuple[str, str]]:
    """What the environment keeps secret: the name and value of each such variable."""
    for name, value in os.environ.items():
        if len(value) >= _MIN_SECRET_CHARS and _SECRET_NAME.search(name):
            yield name, value


def _causes(error: BaseException, depth: int = 0) -> Iterator[BaseException]:
    """The exception and what it came of, the most telling first.

    That is what is inside a group, and what made our own code raise, as for a child that failed.
    """
    if depth > _MAX_DEPTH:
        return
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _causes(each, depth + 1)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_of_ours = error.__cause__ is not None and frames != [] and _is_ours(frames[-1])
    if not is_of_ours:
        yield error
    if cause is not None:
        yield from _causes(cause, depth + 1)
    if is_of_ours:
        yield error


def _is_users(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    if _package(frame).startswith("uwf_bundle_"):
        return True
    is_library = path.startswith(("<frozen ", *_LIBRARY)) or _INSTALLED.search(path) is not None
    return not is_library and not _is_ours(frame)


def _is_ours(frame: FrameType) -> bool:
    return _package(frame) in OUR_PACKAGES


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
