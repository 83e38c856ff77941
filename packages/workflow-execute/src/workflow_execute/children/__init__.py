"""Child threads: starting them, running them, and what the thread above gets."""
