"""Child threads: starting them, running them, and what the parent thread gets."""
