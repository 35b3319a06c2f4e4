"""The tools that GEODE itself has, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from geode.tools.files import edit_file_tool, list_files_tool, read_file_tool, write_file_tool
from geode.tools.search import search_tool
from geode.tools.shell import shell_tool
from geode.tools.spec import ToolSpec
from geode.tools.workspace import Workspace

TOOLS: Mapping[str, Callable[[Workspace], ToolSpec]] = MappingProxyType(
    {
        "list_files": list_files_tool,
        "read_file": read_file_tool,
        "write_file": write_file_tool,
        "edit_file": edit_file_tool,
        "search": search_tool,
        "shell": shell_tool,
    }
)


def workspace_tools(workspace: Workspace) -> dict[str, ToolSpec]:
    """All tools of the catalogue, confined to `workspace`, by name."""
    return {name: tool(workspace) for name, tool in TOOLS.items()}
