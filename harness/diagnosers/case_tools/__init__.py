"""Tools over one case's public half, for language models and for agents that speak MCP."""
