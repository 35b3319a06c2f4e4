"""What a judge sees of an episode: what was asked, what happened, and what was answered. Data, never orders."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property

from geode.canonical import content_hash


class StepKind(StrEnum):
    """Who a step of an episode is by."""

    PROMPT = "prompt"
    HOST = "host"
    """A repair instruction, or what a hook added."""
    SAID = "said"
    CALLED = "called"
    RESULT = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened. Calls and results carry `call_id` and `tool`; a call's text is its arguments as JSON.

    `refused` names the stage at which the host refused a call: it had no effect.
    """

    kind: StepKind
    text: str
    call_id: str = ""
    tool: str = ""
    is_error: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What an episode used, and what it was allowed; a limit that is not known is None."""

    rounds: int
    rounds_max: int | None = None
    tokens: int | None = None
    tokens_max: int | None = None


@dataclass(frozen=True, kw_only=True)
class EpisodeView:
    """One episode as a judge sees it.

    `episode` names it for people and programs (an episode key, or `LOG.eval#SAMPLE/EPOCH`), `family` is its unit of
    statistical independence, `target` the `route/id` of who acted, empty if that is not known.
    """

    episode: str
    task: str
    family: str
    target: str
    system: str
    prompt: str
    answer: str
    steps: tuple[Step, ...]
    spent: Spent

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is judged: two episodes with equal transcripts have the same, whatever their names are."""
        judged = {"system": self.system, "prompt": self.prompt, "answer": self.answer, "spent": asdict(self.spent)}
        return content_hash({**judged, "steps": [asdict(step) for step in self.steps]})
