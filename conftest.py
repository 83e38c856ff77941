"""What holds for all tests: patience where the machine is busy, and signals as in a terminal."""

import signal

from hypothesis import HealthCheck, settings

# How long an example takes is the machine's matter: a busy one would fail what is right. What must
# be fast has a benchmark, and what may hang is ended by pytest's own timeout.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell's background job ignores SIGINT, what `nohup` starts ignores SIGHUP, and so would the
# commands that a test starts. What has a handler here has the default one in them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)
