"""The hook that does not let an error pass unread."""

from typing import Annotated

from pydantic import Field

from geode.hooks.library.memory import Memory, Remembering
from geode.hooks.library.names import command_of, names_in_command, path_of
from geode.hooks.library.options import TIME_LIMIT_S, HookOptions
from geode.hooks.points import (
    AddContext,
    Decision,
    HookEvent,
    HookPoint,
    Pass,
    PromptSubmitted,
    Repair,
    ToolEnded,
    TurnVerified,
)

_KEPT_CHARS = 600
_SHOWN_CHARS = 200


class RemindOfErrorsOptions(HookOptions):
    """It reminds once of an error after `after_calls` calls that did not take it up."""

    after_calls: Annotated[int, Field(ge=1, le=100)] = 3


class _Error(Memory):
    tool: str
    target: str
    text: str
    calls_since: int = 0


class _Memory(Memory):
    error: _Error | None = None
    reminded: bool = False
    asked: bool = False


class RemindOfErrors(Remembering[_Memory]):
    """Reminds of the last error that nothing took up: beside a later result, and once before the answer is accepted.

    It watches results. An error is taken up by a call of the same tool on the same path or with the same command, by a
    call on a path that the error names, and, if it came from a command, by any later command that goes well. Calls that
    were refused before they ran are no errors to it. An answer comes back once a prompt, and only while the repair
    budget lasts: an unread error is no proof that the work is wrong.
    Cost: one short text an error, and at most one repair a prompt.
    """

    name = "remind_of_errors"
    points = frozenset({HookPoint.USER_PROMPT_SUBMIT, HookPoint.POST_TOOL_USE, HookPoint.POST_VERIFY})
    time_limit_s = TIME_LIMIT_S
    options_type = RemindOfErrorsOptions

    def __init__(self, options: RemindOfErrorsOptions) -> None:
        super().__init__(_Memory())
        self._after_calls = options.after_calls

    async def decide(self, event: HookEvent) -> Decision:
        """Keep the last open error; remind of it."""
        match event, self.memory.error:
            case PromptSubmitted(), _:
                self.memory = _Memory()
            case ToolEnded() as ended, error:
                return self._after(ended, error)
            case TurnVerified(repairs_left=left), _Error() as error if left > 0 and not self.memory.asked:
                self.memory.asked = True
                return Repair(
                    instruction=f"{_named(error)}, and no call since took that up. Read that error, fix what it"
                    " reports, and answer again. If it does not matter, say in the answer why."
                )
            case _:
                pass
        return Pass()

    def _after(self, ended: ToolEnded, error: _Error | None) -> Decision:
        if ended.is_error:
            target = path_of(ended.arguments) or command_of(ended.arguments)[:_KEPT_CHARS]
            self.memory.error = _Error(tool=ended.tool, target=target, text=ended.text[-_KEPT_CHARS:])
            self.memory.reminded = False
        elif error is not None and _takes_up(ended, error):
            self.memory.error = None
        elif error is not None:
            error.calls_since += 1
            if error.calls_since >= self._after_calls and not self.memory.reminded:
                self.memory.reminded = True
                return AddContext(
                    text=f"{_named(error)}, and the calls since did not take that up. Deal with it first."
                )
        return Pass()


def _takes_up(ended: ToolEnded, error: _Error) -> bool:
    path, command = path_of(ended.arguments), command_of(ended.arguments)
    if command:
        return ended.tool == error.tool
    named = {word.rstrip(".") for word in names_in_command(error.text)}
    return bool(path) and ((ended.tool, path) == (error.tool, error.target) or path in named)


def _named(error: _Error) -> str:
    lines = [line.strip() for line in error.text.splitlines() if line.strip()]
    said = lines[-1][:_SHOWN_CHARS] if lines else "no output"
    return f"A call of {error.tool} ({error.target[:_SHOWN_CHARS]}) ended in an error ({said})"
