"""Threads as files: one file with all that a thread is, to carry it to another store."""
