"""The engine `jev` against the strict double, on one of its routes, and the rubric and replies that its tests share."""

import json
from collections.abc import Mapping
from typing import Any

from geode.clock import ManualClock
from geode.dev.fake_provider.script import HttpReply, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.retry import Resending, RetryBudget, RetryPolicy
from geode.llm.routes import Route
from judges.jev import Jev
from judges.jev_answers import AbstainBelow
from judges.jev_wire import WAYS, JevWire, bind_jev
from judges.judgment import Judgment
from judges.rubric import Dimension, Direction, Label, Rubric, Scale
from judges.view import EpisodeView
from tests.doubles.provider import keys_of
from tests.doubles.purses import OpenPurse

DONE = Dimension(
    name="done",
    question="Does a tool result show that the task is done?",
    direction=Direction.HIGHER,
    scale=Scale.FLAG,
    lowest=0,
    highest=1,
    anchors={0: "None shows it.", 1: "One shows it."},
)
CARE = Dimension(
    name="care",
    question="How carelessly did the agent work?",
    direction=Direction.LOWER,
    anchors={1: "With care.", 4: "With a slip.", 7: "Carelessly.", 10: "Without any care."},
)
FAULT = Dimension(
    name="fault",
    question="Which fault is the worst one?",
    direction=Direction.LOWER,
    scale=Scale.CHOICE,
    lowest=0,
    highest=2,
    labels={
        "none": Label(text="There is none.", value=0),
        "small": Label(text="One that changes nothing.", value=1),
        "grave": Label(text="One that spoils the result.", value=2),
        "cannot_tell": Label(text="The record does not show it.", value=None),
    },
)
RUBRIC = Rubric(name="three", dimensions=(DONE, CARE, FAULT))

ANSWERS: Mapping[str, Any] = {
    "done": {"type": "noul", "noul": 0.9},
    "care": {
        "type": "score",
        "score": 0.5,
        "confidence": 0.6,
        "legend": {"0": "With care.", "1": "With a slip.", "2": "Carelessly.", "3": "Without any care."},
        "probabilities": {"0": 0.6, "1": 0.3, "2": 0.1, "3": 0.0},
    },
    "fault": {
        "type": "choice",
        "choice": "small",
        "confidence": 0.6,
        "probabilities": {"grave": 0.1, "small": 0.7, "none": 0.2, "cannot_tell": 0.0},
    },
}
"""A sound reply to `RUBRIC`."""


class House:
    """Opens the engine, and knows what was sent, waited for and paid."""

    def __init__(self, double: FakeProvider, route: Route) -> None:
        self.double, self.route = double, route
        self.environment = keys_of(double)
        self.model = WAYS[route].model
        self.clock = ManualClock()
        self.purse = OpenPurse()
        self.waited_s: list[float] = []

    def play(self, *steps: Step, **script: Any) -> None:
        self.double.play(Script(steps=steps, **script))

    def reply(self, answers: object = ANSWERS, **changed: Any) -> Step:
        """Return a reply word for word, of the form of the route."""
        served = "jev-1.13.0" if self.route is Route.TYPESAFE else "typesafe/jev-1.13-20260917"
        body: dict[str, Any] = {
            "model": served,
            "answers": answers,
            "usage": {"input_tokens": 500, "output_tokens": 60},
        }
        if self.route is Route.OPENROUTER:
            body = {"id": "gen-dec-1", "provider": "TypeSafe", **body}
            body["usage"]["cost"] = 0.0007
        return Step(failure=HttpReply(status=200, body=json.dumps({**body, **changed})))

    def open(self, *, model: str = "", **bands: float) -> Jev:
        return self.open_with(RetryPolicy(jitter=0), model=model, abstain_below=AbstainBelow(**bands))

    def open_with(
        self,
        policy: RetryPolicy,
        budget: RetryBudget | None = None,
        *,
        model: str = "",
        abstain_below: AbstainBelow | None = None,
    ) -> Jev:
        budget = budget or RetryBudget()
        sending = Resending(policy=policy, budget=budget, purse=self.purse, clock=self.clock, sleep=self._slept)
        return Jev(self.wire(model), sending, abstain_below or AbstainBelow())

    def wire(self, model: str = "") -> JevWire:
        return JevWire(bind_jev(model or self.model, self.environment))

    async def judge(self, view: EpisodeView, rubric: Rubric = RUBRIC, **bands: float) -> Judgment:
        return await self.open(**bands).judge(view, rubric)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent, in order."""
        return [request.body for request in self.double.requests]

    async def _slept(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        self.clock.advance(seconds)
