"""A pytest plugin for workflows, and all fakes for their tests under one name.

`uwf_replay` is a fixture; see docs/testing.md. Each name here is imported when it is asked for:
pytest loads this package in every project of an environment, also where no test needs it.
"""

TYPE_CHECKING = False  # checkers take it as true; importing `typing` takes longer than all of this
if TYPE_CHECKING:
    from pytest_uwf._replay import RecordingFailed, ReplayDiffers, UwfReplay, replay_file
    from workflow_agent_react.testing import ScriptedGuard, proposed_call
    from workflow_execute.testing import FakeClock, ScriptedPerson
    from workflow_reactor.testing import (
        LoopbackServer,
        ScriptedLlm,
        call,
        function,
        loopback_server,
        say,
    )

__all__ = [
    "FakeClock",
    "LoopbackServer",
    "RecordingFailed",
    "ReplayDiffers",
    "ScriptedGuard",
    "ScriptedLlm",
    "ScriptedPerson",
    "UwfReplay",
    "call",
    "function",
    "loopback_server",
    "proposed_call",
    "replay_file",
    "say",
]

_NAMES = {
    "pytest_uwf._replay": ("RecordingFailed", "ReplayDiffers", "UwfReplay", "replay_file"),
    "workflow_agent_react.testing": ("ScriptedGuard", "proposed_call"),
    "workflow_execute.testing": ("FakeClock", "ScriptedPerson"),
    "workflow_reactor.testing": (
        "LoopbackServer",
        "ScriptedLlm",
        "call",
        "function",
        "loopback_server",
        "say",
    ),
}
"""The same as above, for when the program runs."""


def __getattr__(name: str) -> object:
    for module, names in _NAMES.items():
        if name in names:
            from importlib import import_module

            found = getattr(import_module(module), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'pytest_uwf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
