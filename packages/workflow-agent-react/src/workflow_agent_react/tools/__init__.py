"""Toolsets: functions, MCP servers and the workspace tools, as a model sees and calls them."""
