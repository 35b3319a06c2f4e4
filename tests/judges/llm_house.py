"""The engine `llm` against the strict double, on one wire, and the rubric and replies that its tests share."""

import json
from collections.abc import Mapping
from typing import Any

from geode.clock import ManualClock
from geode.dev.fake_provider.script import Call, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.opening import open_adapter
from geode.llm.retry import RetryPolicy
from judges.judgment import Judgment
from judges.llm import LLMJudge
from judges.llm_prompt import TOOL
from judges.rubric import Rubric
from judges.view import EpisodeView
from tests.doubles.provider import keys_of
from tests.doubles.purses import OpenPurse
from tests.judges.jev_house import RUBRIC

ANTHROPIC, OPENAI = "anthropic/claude-opus-5-5", "openai/gpt-6-astra"
OPENROUTER, ZAI = "openrouter/anthropic/claude-opus-5.5", "zai/glm-5.3"
MODELS = (ANTHROPIC, OPENAI, OPENROUTER, ZAI)

SOUND: Mapping[str, Any] = {
    "done": {"rationale": "Step 2 shows it.", "score": 1},
    "care": {"rationale": "One slip in step 3.", "score": 4},
    "fault": {"rationale": "It changed nothing.", "score": "small"},
}
"""A sound reply to `RUBRIC`."""


def call(reply: object = SOUND, **more: Any) -> Step:
    """A reply as the call that is asked for; a text is sent as it stands."""
    return Step(calls=(Call(name=TOOL, arguments=reply),), **more)  # type: ignore[arg-type]


def said(reply: object = SOUND, **more: Any) -> Step:
    """A reply as text."""
    return Step(text=reply if isinstance(reply, str) else json.dumps(reply), **more)


class House:
    """Opens the engine on `model`, and knows what was sent and paid."""

    def __init__(self, double: FakeProvider, model: str) -> None:
        self.double, self.model = double, model
        self.purse = OpenPurse()

    def play(self, *steps: Step, **script: Any) -> None:
        self.double.play(Script(steps=steps, **script))

    def open(self, **options: Any) -> LLMJudge:
        policy = RetryPolicy(requests=2, wait_base_s=0, jitter=0)
        adapter = open_adapter(self.model, keys_of(self.double), purse=self.purse, policy=policy)
        return LLMJudge(adapter, ManualClock(), **options)

    async def judge(self, view: EpisodeView, rubric: Rubric = RUBRIC, **options: Any) -> Judgment:
        return await self.open(**options).judge(view, rubric)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent, in order."""
        return [request.body for request in self.double.requests]

    def asking(self, number: int = 0) -> Any:
        """All of a request but its conversation: the instructions, the tool and how it is asked."""
        body = self.bodies[number]
        if "messages" in body:
            return [{**body, "messages": None}, [m for m in body["messages"] if m["role"] == "system"]]
        return {**body, "input": None}

    def data(self, number: int = 0) -> str:
        """The judged text of a request, as it was sent."""
        body = self.bodies[number]
        content = next(m for m in (body.get("messages") or body["input"]) if m["role"] == "user")["content"]
        return content if isinstance(content, str) else str(content[0]["text"])
