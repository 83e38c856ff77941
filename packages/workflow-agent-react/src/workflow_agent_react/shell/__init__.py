"""Shell commands: what they may touch, and how they are run and ended."""
