"""Command line of United Workforce: setup, bundle, add, run, show."""

from uwf._entry import main

__all__ = ["main"]
