"""The tools that GEODE itself has, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from geode.tools.environment import LOCAL, Environment
from geode.tools.files import edit_file_tool, list_files_tool, read_file_tool, write_file_tool
from geode.tools.git import GIT_TOOLS, git_tools
from geode.tools.search import search_tool
from geode.tools.shell import shell_tool
from geode.tools.spec import ToolSpec
from geode.tools.web import web_fetch_tool
from geode.tools.workspace import Workspace

_OF_FILES: Mapping[str, Callable[[Workspace], ToolSpec]] = MappingProxyType(
    {
        "list_files": list_files_tool,
        "read_file": read_file_tool,
        "write_file": write_file_tool,
        "edit_file": edit_file_tool,
        "search": search_tool,
    }
)
_OF_CHILDREN: Mapping[str, Callable[[Workspace, Environment], ToolSpec]] = MappingProxyType({"shell": shell_tool})

TOOLS = (*_OF_FILES, *_OF_CHILDREN, *GIT_TOOLS, "web_fetch")
"""The names of all tools, in their usual order."""


def workspace_tools(workspace: Workspace, environment: Environment = LOCAL) -> dict[str, ToolSpec]:
    """All tools of the catalogue by name, confined to `workspace`; what they execute runs in `environment`."""
    tools = {name: tool(workspace) for name, tool in _OF_FILES.items()}
    tools |= {name: tool(workspace, environment) for name, tool in _OF_CHILDREN.items()}
    return tools | git_tools(workspace, environment) | {"web_fetch": web_fetch_tool()}
