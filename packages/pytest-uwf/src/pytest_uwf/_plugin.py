"""What pytest loads at its start, in every project: options, a fixture, no import of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_uwf._replay import UwfReplay


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("uwf", "workflows")
    group.addoption(
        "--uwf-record",
        action="store_true",
        help="run the workflows of `uwf_replay` anew, on their models, and write their files",
    )
    parser.addini(
        "uwf_home",
        "the folder with the workflow.yaml that names models while `uwf_replay` runs; relative to "
        "the configuration file of pytest (default: $UWF_HOME, or ~/.uwf)",
        default="",
    )


@pytest.fixture
def uwf_replay(request: pytest.FixtureRequest) -> UwfReplay:
    """Replay an exported thread against a workflow: `uwf_replay("threads/x.uwf", workflow)`."""
    from pytest_uwf._replay import UwfReplay

    home = str(request.config.getini("uwf_home"))
    root = request.config.inipath.parent if request.config.inipath else request.config.rootpath
    return UwfReplay(
        folder=request.path.parent,
        record=bool(request.config.getoption("--uwf-record")),
        home=root / home if home else None,
    )
