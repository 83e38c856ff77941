"""Stored threads: reading, branching, replaying and deleting them."""
