"""The hook that asks to look once more at what was changed."""

from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering, keep_last
from geode.hooks.library.names import command_of, names_in_command, path_of, shown_list
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Decision, HookEvent, HookPoint, Pass, PromptSubmitted, Repair, ToolEnded, TurnVerified

_SHOWN_FILES = 10


class ReviewChangesOptions(HookOptions):
    """Of so many changed files is remembered that they were not looked at since."""

    files: Annotated[int, Field(ge=1, le=500)] = 100


class _Memory(Memory):
    unread: list[str] = Field(default_factory=list)
    asked: bool = False


class ReviewChanges(Remembering[_Memory]):
    """Sends the answer back once a prompt if changed files were not read since the change.

    It watches changes by the file tools. What counts as looking: the file is read, or a command that went well names
    it; `git diff` without a name counts for all. It asks only while the repair budget lasts, so it never makes an
    answer *not verified*.
    Cost: one repair, and one reading for each changed file.
    """

    name = "review_changes"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.POST_TOOL_USE, HookPoint.POST_VERIFY})
    time_limit_s = TIME_LIMIT_S
    options_type = ReviewChangesOptions

    def __init__(self, options: ReviewChangesOptions) -> None:
        super().__init__(_Memory())
        self._limit = options.files

    async def decide(self, event: HookEvent) -> Decision:
        """Keep the changed files that nobody looked at, and ask to read them."""
        match event:
            case PromptSubmitted():
                self.memory = _Memory()
            case ToolEnded(level=SafetyLevel.WRITE, is_error=False) if path := path_of(event.arguments):
                keep_last(self.memory.unread, path, self._limit)
            case ToolEnded(is_error=False):
                self._looked(event)
            case TurnVerified(repairs_left=left) if left > 0 and self.memory.unread and not self.memory.asked:
                self.memory.asked = True
                return Repair(
                    instruction=f"You changed {shown_list(self.memory.unread, _SHOWN_FILES)} and have not looked since."
                    " Read each changed file once more and compare each of your changes with the request. Mend what"
                    " is wrong or missing, then answer again."
                )
            case _:
                pass
        return Pass()

    def _looked(self, event: ToolEnded) -> None:
        command = command_of(event.arguments)
        seen = {path_of(event.arguments)} if event.tool == "read_file" else set(names_in_command(command))
        if {"git", "diff"} <= seen and not seen & set(self.memory.unread):
            self.memory.unread = []
        self.memory.unread = [path for path in self.memory.unread if path not in seen]
