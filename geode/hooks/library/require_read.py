"""The hook that lets nobody change a file unseen."""

from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering, keep_last
from geode.hooks.library.names import command_of, found, listed, names_in_command, path_of
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, ToolEnded, ToolProposed


class RequireReadOptions(HookOptions):
    """Of so many files is remembered that they were read, or that they were listed; the oldest is forgotten first."""

    remembered: Annotated[int, Field(ge=1, le=1_000)] = 200


class _Memory(Memory):
    read: list[str] = Field(default_factory=list)
    listed: list[str] = Field(default_factory=list)


class RequireRead(Remembering[_Memory]):
    """Blocks `edit_file` on a file that was not read, and `write_file` on one that was listed and not read.

    It watches the calls and results of the file tools and the words of shell commands. What counts as read: the file
    was read, written or edited, a search showed lines of it, or a command that went well names it. It cannot know of a
    file that nothing listed, so a `write_file` on such a path goes ahead.
    Cost: at most one refused call and one reading a file.
    """

    name = "require_read"
    points = frozenset({HookPoint.PRE_TOOL_USE, HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = RequireReadOptions

    def __init__(self, options: RequireReadOptions) -> None:
        super().__init__(_Memory())
        self._limit = options.remembered

    async def decide(self, event: HookEvent) -> Decision:
        """Remember what was read; block a change of what was not."""
        match event:
            case ToolEnded(is_error=False):
                self._remember(event)
            case ToolProposed(level=SafetyLevel.WRITE):
                path = path_of(event.arguments)
                exists = event.tool == "edit_file" or path in self.memory.listed
                if path and exists and path not in self.memory.read:
                    return Block(
                        reason=f"{path} was not read in this session. Read it first, then make the change"
                        " from what it really holds."
                    )
            case _:
                pass
        return Pass()

    def _remember(self, event: ToolEnded) -> None:
        for name in listed(event):
            keep_last(self.memory.listed, name, self._limit)
        read = (*found(event), *names_in_command(command_of(event.arguments)))
        if event.tool in ("read_file", "write_file", "edit_file"):
            read = (*read, path_of(event.arguments))
        for name in read:
            keep_last(self.memory.read, name, self._limit)
