"""The hook that keeps a task to the files that there are."""

from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering, keep_last
from geode.hooks.library.names import command_of, found, listed, names_in_command, path_of
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import Block, Decision, HookEvent, HookPoint, Pass, PromptSubmitted, ToolEnded, ToolProposed


class RefuseNewFilesOptions(HookOptions):
    """So many names are remembered, and no more; the oldest is forgotten first."""

    remembered: Annotated[int, Field(ge=1, le=1_000)] = 300


class _Memory(Memory):
    known: list[str] = Field(default_factory=list)


class RefuseNewFiles(Remembering[_Memory]):
    """Blocks `write_file` on a path that nobody has named: not the user, and no result so far.

    It watches prompts, results of the file tools and shell commands for names. A prompt may name a file by its last
    part alone. It looks into no folder, so a file that exists and was not seen counts as new until it was.
    Cost: one refused call for each new file; a scratch file is refused like any other. A file that a command makes
    passes unseen.
    """

    name = "refuse_new_files"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.PRE_TOOL_USE, HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = RefuseNewFilesOptions

    def __init__(self, options: RefuseNewFilesOptions) -> None:
        super().__init__(_Memory())
        self._limit = options.remembered

    async def decide(self, event: HookEvent) -> Decision:
        """Remember names; block writing to a path that is none of them."""
        match event:
            case PromptSubmitted():
                words = (word.rstrip(".!?]") for word in names_in_command(event.text))
                self._remember(*(word for word in words if "." in word or "/" in word or word[:1].isupper()))
            case ToolEnded(is_error=False):
                named = names_in_command(command_of(event.arguments))
                self._remember(*listed(event), *found(event), *named, path_of(event.arguments))
            case ToolProposed(tool="write_file", level=SafetyLevel.WRITE):
                path = path_of(event.arguments)
                if path and path not in self.memory.known and path.rsplit("/", 1)[-1] not in self.memory.known:
                    return Block(
                        reason=f"{path} would be a new file, and the request names none such. Change the files that"
                        " are there. If this one exists, read it first."
                    )
            case _:
                pass
        return Pass()

    def _remember(self, *names: str) -> None:
        for name in filter(None, names):
            keep_last(self.memory.known, name, self._limit)
