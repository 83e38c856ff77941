"""Fetching a model: where it comes from, and whether it arrived whole."""
