"""Traces of what the command runs, where the variables of OpenTelemetry ask for them."""
