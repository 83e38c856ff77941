"""Serving a model: the process and its server."""
