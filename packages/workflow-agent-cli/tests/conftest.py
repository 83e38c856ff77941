"""Settings of the properties."""

from hypothesis import HealthCheck, settings

# How long an example takes is the machine's matter: a busy one would fail what is right. What must
# be fast has a benchmark, and what may hang is ended by pytest's own timeout.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
