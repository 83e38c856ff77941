"""The store in one SQLite file."""
