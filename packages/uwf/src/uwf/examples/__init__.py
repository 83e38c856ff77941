"""Entry scripts to start from: `uwf run` takes their paths, and `uwf bundle` makes archives."""
