"""The session that is broken: twelve rounds of real tools, some repairs, and a model that goes by history alone.

A session that is *served* has the tool of an MCP server beside its own.
"""

import json
import random
from dataclasses import dataclass

from geode.llm.messages import Message, ModelResponse, Origin, Speaker, StepSnapshot, TextBlock
from geode.loop.verify import CheckOutcome, CompletionResult, CompletionView
from geode.scaffold import RepairBudget, Scaffold, ToolChoice, ToolPlan
from tests.crash.points import At, Point
from tests.crash.server import SERVER, TOOL
from tests.doubles.models import calls, says

ROUNDS = 12
PROMPT = "Do the twelve steps."
PREAMBLE = "Not accepted yet."
EFFECTS = "effects.log"
TOOLS = ("list_files", "write_file", "edit_file", "shell")
SERVED_TOOL = f"{SERVER}__{TOOL}"
SCAFFOLD = Scaffold(
    tools=ToolPlan(tools=tuple(ToolChoice(name=name) for name in TOOLS)), repair=RepairBudget(preamble=PREAMBLE)
)
NOTES = "".join(f"[{number}.{place}]\n" for number in range(ROUNDS) for place in range(3))
"""The content of `notes.txt` at the start: a mark for each edit that the script may make."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the script. `effect` names what it changes; a look around changes nothing."""

    tool: str
    arguments: dict[str, str]
    effect: str = ""


def steps(seed: int, number: int, *, served: bool) -> tuple[Step, ...]:
    """Return the calls of round `number`, one to three of them."""
    draw = random.Random(f"{seed}/{number}")
    kinds = ("write", "edit", "shell", "shell", "look", *(("server", "server") if served else ()))
    return tuple(_step(draw.choice(kinds), f"{number}.{place}") for place in range(draw.choice((1, 1, 2, 3))))


def _step(kind: str, effect: str) -> Step:
    match kind:
        case "write":
            return Step("write_file", {"path": f"made/{effect}.txt", "content": effect}, effect)
        case "edit":
            return Step("edit_file", {"path": "notes.txt", "old": f"[{effect}]", "new": f"[{effect} done]"}, effect)
        case "shell":
            return Step("shell", {"command": f"echo {effect} >> {EFFECTS}"}, effect)
        case "server":
            return Step(SERVED_TOOL, {"mark": effect}, effect)
    return Step("list_files", {"path": "."})


class Walker:
    """Asks for the script's next round; after the last it says `answer k`, k being the repairs that were asked for.

    It goes by the history alone, and so goes on sensibly after a restart: calls whose results were lost it does not
    ask for again.
    """

    model = "simulated/walker"

    def __init__(self, seed: int, at: At, *, served: bool) -> None:
        self._seed, self._at, self._served = seed, at, served
        self.asked: list[StepSnapshot] = []

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        self.asked.append(snapshot)
        await self._at.later(Point.REQUEST_SENT)
        await self._at.later(Point.FIRST_BYTE)
        number = sum(bool(message.tool_uses) for message in snapshot.messages)
        reply = says(f"answer {instructions(snapshot.messages)}")
        if number < ROUNDS:
            uses = [
                (f"c{number}_{place}", step.tool, json.dumps(step.arguments))
                for place, step in enumerate(steps(self._seed, number, served=self._served))
            ]
            reply = calls(*uses)
        await self._at.later(Point.REPLY_COMPLETE)
        return reply


class Judge:
    """Accepts the first answer after `repairs` repairs."""

    name = "judge"

    def __init__(self, repairs: int, at: At) -> None:
        self._repairs, self._at = repairs, at

    async def judge_completion(self, view: CompletionView) -> CompletionResult:
        await self._at.later(Point.VERIFY_STARTED)
        if view.answer == f"answer {self._repairs}":
            return CompletionResult(outcome=CheckOutcome.PASS)
        return CompletionResult(outcome=CheckOutcome.REPAIRABLE, reasons=("say it again",))


def instructions(messages: tuple[Message, ...]) -> int:
    """Count the repairs that the host asked for."""
    return sum(
        message.role is Speaker.USER
        and any(isinstance(b, TextBlock) and b.origin is Origin.HOST and PREAMBLE in b.text for b in message.blocks)
        for message in messages
    )
