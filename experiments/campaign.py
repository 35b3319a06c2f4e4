"""Campaigns: a chain of promotions by one arm, under one ruler. What another ruler measured has no say in it."""

from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.gate import VerdictKind
from experiments.records import Ruler


class Arm(StrEnum):
    """How a campaign decides: the two controls, and the gate."""

    NEVER = "never"
    RANDOM = "random"
    GATE = "gate"


class EpochMismatch(ValueError):  # noqa: N818  (named by what is wrong)
    """Evidence from another epoch was offered. Its figures are on another scale and decide nothing here."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Epoch(_Record):
    """The time of one ruler. Its name is the ruler's id."""

    ruler: Ruler

    @property
    def epoch_id(self) -> str:
        """The ruler's id."""
        return self.ruler.ruler_id


class Promotion(_Record):
    """One decision: a candidate against the incumbent of its time."""

    candidate: str
    incumbent: str
    verdict: VerdictKind
    promoted: bool


class Campaign(_Record):
    """One arm's decisions from its reset on, in order."""

    schema_: Literal["geode.campaign/1"] = Field(default="geode.campaign/1", alias="schema")
    name: str
    arm: Arm
    epoch: Epoch
    reset: str
    decisions: tuple[Promotion, ...] = ()
    random_share: Annotated[float, Field(ge=0, le=1)] = 0.5

    @property
    def incumbent(self) -> str:
        """The scaffold that the next candidate is compared with."""
        return next((d.candidate for d in reversed(self.decisions) if d.promoted), self.reset)

    def decided(self, candidate: str, verdict: VerdictKind, epoch_id: str) -> "Campaign":
        """Return the campaign with one more decision.

        `never` promotes nothing, `random` promotes a fixed share by a draw that depends on nothing measured, `gate`
        promotes what the verdict keeps. All three see the same evidence, so that what the gate adds can be told.

        Raises:
            EpochMismatch: if the verdict was reached under another ruler.
        """
        if epoch_id != self.epoch.epoch_id:
            raise EpochMismatch(
                f"the verdict on {candidate} is of epoch {epoch_id}, campaign {self.name!r} of {self.epoch.epoch_id};"
                " measure the candidate again under this ruler"
            )
        decision = Promotion(
            candidate=candidate, incumbent=self.incumbent, verdict=verdict, promoted=self._promotes(candidate, verdict)
        )
        return self.model_copy(update={"decisions": (*self.decisions, decision)})

    def _promotes(self, candidate: str, verdict: VerdictKind) -> bool:
        match self.arm:
            case Arm.NEVER:
                return False
            case Arm.RANDOM:
                draw = sha256(f"{self.name}/{len(self.decisions)}/{candidate}".encode()).digest()
                return int.from_bytes(draw[:8]) / 2**64 < self.random_share
            case Arm.GATE:
                return verdict is VerdictKind.KEEP
