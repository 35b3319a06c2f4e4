"""Binds the screen that was asked for on the command line, and none otherwise."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geode.tools.plan import ExtraTools


def with_screen(tools: "ExtraTools", display: str, workspace: Path) -> "ExtraTools":
    """Return `tools` and, if a display is named, the tool that uses it; or end the command."""
    if not display:
        return tools
    from geode.cli.failure import fail
    from geode.tools.computer import ScreenFailed, computer_tool
    from geode.tools.workspace import Workspace

    try:
        from geode.tools.x_screen import XScreen
    except ImportError as error:
        fail(f"--display needs the package {error.name!r}; install it with: pip install 'geode[computer]'", 2)
    try:
        tool = computer_tool(XScreen(display), Workspace(workspace))
    except ScreenFailed as error:
        fail(str(error), 2)
    return replace(tools, specs=(*tools.specs, tool))
