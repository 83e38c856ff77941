"""Dialects: how a model is shown its tools, and how its replies become calls."""
