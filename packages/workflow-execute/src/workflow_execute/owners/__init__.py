"""Who runs a thread: locks, signals to the owner, and what a cancellation must not cut."""
