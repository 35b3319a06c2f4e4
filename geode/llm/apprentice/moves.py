"""The calls that an outline gives the apprentice: right ones, wrong ones, and how each can be spoilt or undone."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from geode.canonical import canonical_json
from geode.llm.messages import ToolSchema, ToolUse
from geode.llm.outline import Outline, OutlineCall, OutlineStep

_OF_ANOTHER_TYPE: dict[str, JsonValue] = {
    "string": ["list"],
    "integer": "text",
    "number": "text",
    "boolean": "text",
    "array": "text",
}


class Form(StrEnum):
    """How a step is done."""

    RIGHT = "right"
    WRONG = "wrong"
    UNDO = "undo"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool and the JSON text of its arguments, or what passes for it."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A call for a step. `alternative` counts the step's `wrong` calls, for the form that uses one."""

    step: int
    form: Form
    call: Call
    alternative: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What the apprentice does in one round: calls, with a word before them, or an answer without any."""

    calls: tuple[Call, ...] = ()
    says: str = ""


class Repertoire:
    """The outline as far as the tools at hand go: a step, or an alternative, without its tool is left out.

    `verdicts` are the checks that come after a change: what they say is about the work, not about how it began.
    """

    def __init__(self, outline: Outline, tools: Sequence[ToolSchema], check_files: re.Pattern[str]) -> None:
        self._schemas = {tool.name: tool.input_schema for tool in tools}
        self.answer = outline.answer.strip() or "Done."
        self.steps: tuple[OutlineStep, ...] = tuple(s for s in outline.steps if s.call.tool in self._schemas)
        self._right = [_call(step.call) for step in self.steps]
        self._wrong = [[_call(wrong) for wrong in step.wrong] for step in self.steps]
        self._elsewhere: list[tuple[int, ...]] = []
        self._in_checks: list[tuple[int, ...]] = []
        for step in self.steps:
            usable = [n for n, wrong in enumerate(step.wrong) if wrong.tool in self._schemas]
            in_checks = [n for n in usable if _touches_a_check(step.wrong[n], step.call, check_files)]
            self._in_checks.append(tuple(in_checks))
            self._elsewhere.append(tuple(n for n in usable if n not in in_checks))
        first_change = next((n for n, step in enumerate(self.steps) if step.kind == "change"), len(self.steps))
        self.verdicts = tuple(n for n, s in enumerate(self.steps) if s.kind == "check" and n > first_change)

    def right(self, step: int) -> Move:
        """Return the call that the outline gives."""
        return Move(step=step, form=Form.RIGHT, call=self._right[step])

    def wrong(self, step: int, *, in_check: bool) -> tuple[Move, ...]:
        """Return the wrong calls that change a test or check, or those that go wrong elsewhere."""
        chosen = (self._in_checks if in_check else self._elsewhere)[step]
        return tuple(Move(step=step, form=Form.WRONG, call=self._wrong[step][n], alternative=n) for n in chosen)

    def undo(self, step: int, alternative: int) -> Move | None:
        """Return the edit that takes a wrong edit back, if there is one: other calls cannot be taken back."""
        done = self.steps[step].wrong[alternative].arguments
        old, new = done.get("old"), done.get("new")
        if not isinstance(old, str) or not isinstance(new, str) or not new:
            return None
        back = OutlineCall(tool=self.steps[step].wrong[alternative].tool, arguments={**done, "old": new, "new": old})
        return Move(step=step, form=Form.UNDO, call=_call(back), alternative=alternative)

    def spoil(self, move: Move, draw: float) -> Move:
        """Return `move` with arguments that are malformed, in a way that `draw` in [0, 1) chooses."""
        ways = self._spoilt(move.call)
        call = Call(tool=move.call.tool, arguments=ways[int(draw * len(ways))])
        return Move(step=move.step, form=Form.MALFORMED, call=call, alternative=move.alternative)

    def recognise(self, use: ToolUse, cursor: int) -> Move | None:
        """Return the move that `use` is, of those at or after `cursor` if there are several, else of those before."""
        order = (*range(cursor, len(self.steps)), *range(cursor - 1, -1, -1))
        return next((move for step in order for move in self._moves(step) if same_call(move.call, use)), None)

    def _moves(self, step: int) -> list[Move]:
        wrong = self.wrong(step, in_check=False) + self.wrong(step, in_check=True)
        undone = [undo for move in wrong if (undo := self.undo(step, move.alternative))]
        return [self.right(step), *wrong, *undone]

    def _spoilt(self, call: Call) -> list[str]:
        arguments: dict[str, JsonValue] = json.loads(call.arguments)
        schema = self._schemas[call.tool]
        ways = [call.arguments[: max(1, len(call.arguments) * 2 // 3)]]
        required = schema.get("required")
        if isinstance(required, list) and (needed := next((str(n) for n in required if n in arguments), None)):
            ways.append(_text({name: value for name, value in arguments.items() if name != needed}))
        properties = schema.get("properties")
        for name in arguments if isinstance(properties, dict) else ():
            property_ = properties.get(name) if isinstance(properties, dict) else None
            kind = property_.get("type") if isinstance(property_, dict) else None
            if isinstance(kind, str) and kind in _OF_ANOTHER_TYPE:
                ways.append(_text({**arguments, name: _OF_ANOTHER_TYPE[kind]}))
                break
        return ways


def same_call(call: Call, use: ToolUse) -> bool:
    """Whether `use` is `call`, whatever blanks and order its arguments have."""
    if call.tool != use.name:
        return False
    return call.arguments == use.arguments or _normal(call.arguments) == _normal(use.arguments)


def _call(call: OutlineCall) -> Call:
    return Call(tool=call.tool, arguments=_text(call.arguments))


def _text(arguments: dict[str, JsonValue]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _normal(arguments: str) -> str:
    try:
        return canonical_json(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def _touches_a_check(wrong: OutlineCall, right: OutlineCall, check_files: re.Pattern[str]) -> bool:
    if "path" in right.arguments and wrong.arguments.get("path") == right.arguments["path"]:
        return False
    places = (wrong.arguments.get("path"), wrong.arguments.get("command"))
    return any(isinstance(place, str) and check_files.search(place) for place in places)
