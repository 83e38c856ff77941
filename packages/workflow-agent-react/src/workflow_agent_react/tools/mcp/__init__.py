"""MCP servers (Model Context Protocol): where they are, their connections, what they say."""
