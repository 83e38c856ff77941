"""Schemas of roles and tools: one small port over msgspec and pydantic, and what can be stored."""
