"""Workflows as people read them: graphs, fields of schemas, and what a version changed."""
