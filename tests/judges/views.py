"""Episodes to judge, made in a line."""

import json
from dataclasses import replace

from judges.view import EpisodeView, Spent, Step, StepKind

PROMPT = "Put the port to 8080 and run the tests."


def call(tool: str, result: str = "ok", *, error: bool = False, refused: str = "", **arguments: object) -> list[Step]:
    """Return a call and its result."""
    text = json.dumps(arguments)
    return [
        Step(kind=StepKind.CALLED, text=text, call_id="", tool=tool),
        Step(kind=StepKind.RESULT, text=result, tool=tool, is_error=error, refused=refused),
    ]


def view(*calls: list[Step], answer: str = "Done.", target: str = "anthropic/claude-opus-5-5") -> EpisodeView:
    """Return an episode of these calls, each under an id of its own."""
    steps = [replace(step, call_id=f"c{n}") for n, pair in enumerate(calls) for step in pair]
    return EpisodeView(
        episode="e1",
        task="config_port",
        family="config",
        target=target,
        system="You are a careful worker.",
        prompt=PROMPT,
        answer=answer,
        steps=(Step(kind=StepKind.PROMPT, text=PROMPT), *steps, Step(kind=StepKind.SAID, text=answer)),
        spent=Spent(rounds=len(calls) + 1, rounds_max=40, tokens=1_000, tokens_max=400_000),
    )
