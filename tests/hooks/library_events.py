"""Events as hooks of the library see them, and what a hook says to the last of several."""

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.hooks.library import LIBRARY, build_hooks
from geode.hooks.points import (
    Decision,
    DecisionHook,
    HookEvent,
    PromptSubmitted,
    Stopping,
    ToolEnded,
    ToolProposed,
    TurnVerified,
)
from geode.scaffold import HookChoice

LEVELS = {"write_file": SafetyLevel.WRITE, "edit_file": SafetyLevel.WRITE, "shell": SafetyLevel.EXECUTE}


def hook(name: str, **options: JsonValue) -> DecisionHook:
    return build_hooks((HookChoice(name=name, options=options),), LIBRARY)[0]


def target(tool: str, on: str) -> dict[str, JsonValue]:
    return {"command": on} if tool == "shell" else {"path": on}


def proposed(tool: str, on: str, *, said: str = "", at: int = 1) -> ToolProposed:
    level = LEVELS.get(tool, SafetyLevel.READ)
    return ToolProposed(tool=tool, level=level, arguments=target(tool, on), round=at, said=said)


def ended(
    tool: str, on: str, text: str = "ok", *, is_error: bool = False, at: int = 1, left: int | None = None
) -> ToolEnded:
    level = LEVELS.get(tool, SafetyLevel.READ)
    return ToolEnded(
        tool=tool,
        level=level,
        arguments=target(tool, on),
        text=text,
        is_error=is_error,
        round=at,
        rounds_left=left,
    )


def asked(text: str = "Mend it.") -> PromptSubmitted:
    return PromptSubmitted(text=text)


def answered(answer: str = "Done.", *, repairs_left: int = 2) -> TurnVerified:
    return TurnVerified(answer=answer, passed=True, reasons=(), repairs_left=repairs_left)


def stopping(*, continuations_left: int = 1) -> Stopping:
    return Stopping(answer="Done.", verified=True, continuations_left=continuations_left)


async def last(of: DecisionHook, *events: HookEvent) -> Decision:
    """What the hook says to the last of the events."""
    answers = [await of.decide(event) for event in events]
    return answers[-1]
