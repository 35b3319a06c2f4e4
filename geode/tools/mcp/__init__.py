"""Tools of MCP servers: reached through the official SDK, and bound only as far as the owner's settings allow."""
