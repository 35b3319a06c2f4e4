"""The hook that gives the model a map of the files it has met."""

from typing import Annotated

from pydantic import Field

from geode.authority import SafetyLevel
from geode.hooks.library.memory import Memory, Remembering
from geode.hooks.library.names import found, listed, path_of
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import AddContext, Decision, HookEvent, HookPoint, Pass, PromptSubmitted, ToolEnded

_ORDER = ("listed", "read", "changed")


class ShowFilesOptions(HookOptions):
    """The map is shown after every `every_calls` calls if it has changed; it holds at most `files`, the latest met."""

    every_calls: Annotated[int, Field(ge=1, le=1_000)] = 6
    files: Annotated[int, Field(ge=1, le=200)] = 40


class _Memory(Memory):
    files: dict[str, str] = Field(default_factory=dict)
    calls: int = 0
    is_new: bool = False


class ShowFiles(Remembering[_Memory]):
    """Adds a list of the files that the tools have shown, with what was done to each: changed, read, or only listed.

    It watches the file tools and their results; it looks into no folder, and what only a shell command touched is not
    on the map. It speaks with a new prompt of the same session, and every few calls.
    Cost: one line a file, each time that it speaks.
    """

    name = "show_files"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.POST_TOOL_USE})
    time_limit_s = TIME_LIMIT_S
    options_type = ShowFilesOptions

    def __init__(self, options: ShowFilesOptions) -> None:
        super().__init__(_Memory())
        self._options = options

    async def decide(self, event: HookEvent) -> Decision:
        """Put names on the map, and show it when it is time."""
        match event:
            case PromptSubmitted() if self.memory.files:
                return self._show()
            case ToolEnded():
                self.memory.calls += 1
                self._remember(event)
                if self.memory.is_new and self.memory.calls >= self._options.every_calls:
                    return self._show()
            case _:
                pass
        return Pass()

    def _remember(self, event: ToolEnded) -> None:
        for name in listed(event):
            self._note(name, "listed")
        for name in found(event):
            self._note(name, "read")
        path = path_of(event.arguments)
        if event.is_error or not path or event.tool in ("list_files", "search"):
            return
        self._note(path, "changed" if event.level is SafetyLevel.WRITE else "read")

    def _note(self, name: str, deed: str) -> None:
        files = self.memory.files
        before = files.pop(name, None)
        files[name] = deed if before is None else max(before, deed, key=_ORDER.index)
        self.memory.is_new = self.memory.is_new or files[name] != before
        while len(files) > self._options.files:
            del files[next(iter(files))]

    def _show(self) -> AddContext:
        self.memory.calls, self.memory.is_new = 0, False
        lines = [f"{name} ({deed})" for name, deed in sorted(self.memory.files.items())]
        return AddContext(text="Files met so far, and what you did to each:\n" + "\n".join(lines))
