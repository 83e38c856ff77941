"""What the command line takes: one module for each group of commands."""
