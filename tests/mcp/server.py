"""A server of the Python SDK of MCP, over standard input and output."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("memos")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no such city")


@server.resource("memo://{name}")
def memo(name: str) -> str:
    """A memo to somebody."""
    return f"Dear {name}"


@server.prompt()
def review(file: str) -> str:
    """Reviews a file."""
    return f"Review {file}."


server.run()
