"""What holds for all tests, and which of them run by default.

It stays at the root and is no plugin module: pytest finds it from there for every path it is given,
without a name in the configuration and without an installed package.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's matter: a busy one would fail what is right. What must
# be fast has a benchmark, and what may hang is ended by pytest's own timeout.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Where no bytecode is to be left in the tree, pytest would rewrite its tests each time, and each
# process that a test starts would compile all that it imports: a third of the whole run.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    bytecode = Path(__file__).parent / ".pytest_cache" / "bytecode"
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(bytecode)

# A shell's background job ignores SIGINT, what `nohup` starts ignores SIGHUP, and so would the
# commands that a test starts. What has a handler here has the default one in them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_configure(config: pytest.Config) -> None:
    """Run a test that is named by its id, however long it takes: it is what was asked for."""
    is_default = config.option.markexpr in config.getini("addopts")
    if is_default and any("::" in argument for argument in config.args):
        config.option.markexpr = ""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Three workers for two processors, for tests wait as long for others as they compute.

    None for the tests of one file: workers take longer to start than it takes.
    """
    files = {argument.partition("::")[0] for argument in config.args}
    if len(files) == 1 and files.pop().endswith(".py"):
        return 0
    return max(2, (os.cpu_count() or 1) * 3 // 2)
