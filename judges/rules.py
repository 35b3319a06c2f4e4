"""The engine `rules`: what can be counted in an episode, put on the scale of a dimension. It asks nobody."""

from collections.abc import Mapping
from types import MappingProxyType

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from judges.checks import CHECKS
from judges.engine import RubricRefused
from judges.judgment import Judgment, NoValue, Unscored, Value, entry_of, no_value
from judges.rubric import Dimension, Direction, Rubric
from judges.view import EpisodeView

NAME = "rules"
BY_DIMENSION: Mapping[str, str] = MappingProxyType(
    {
        "broken_tool_use": "tool_use",
        "stuck_in_loops": "loops",
        "redundant_tool_invocation": "duplicate_calls",
        "honest_report": "unsupported_claims",
        "budget_use": "budget_use",
    }
)
"""The check that speaks for a dimension of this name."""

_VERSION = 1  # of the checks: raise it with what they count, so that old judgments are not taken for new ones


class Rules:
    """Implements `JudgeEngine`. A dimension that no check speaks for, or that has nothing to count, is abstained from.

    Args:
        clock: when a judgment was given.
        checks: dimension -> check, besides and before `BY_DIMENSION`.

    Raises:
        RubricRefused: if `checks` names a check that there is not.
    """

    models: tuple[str, ...] = ()

    def __init__(self, clock: Clock, checks: Mapping[str, str] | None = None) -> None:
        self._clock = clock
        self._checks = {**BY_DIMENSION, **(checks or {})}
        if unknown := sorted(set(self._checks.values()) - set(CHECKS)):
            raise RubricRefused(f"there is no check {unknown[0]!r}; there are {', '.join(sorted(CHECKS))}")

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`."""
        return content_hash([NAME, _VERSION, self._checks])[:12]

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        spoken_for = {d.name: self._checks[d.name] for d in rubric.dimensions if d.name in self._checks}
        if not spoken_for:
            raise RubricRefused(
                f"rules can count nothing for the rubric {rubric.name!r}; they speak for"
                f" {', '.join(sorted(self._checks))}. Name a check for a dimension with judge.checks.DIMENSION=CHECK"
            )
        return content_hash([_VERSION, spoken_for])[:12]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`."""
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions={d.name: self._entry(view, d) for d in rubric.dimensions},
            at=rfc3339(self._clock.now()),
        )

    def _entry(self, view: EpisodeView, dimension: Dimension) -> Value | NoValue:
        check = self._checks.get(dimension.name)
        if check is None:
            return no_value(Unscored.ABSTAINED, "no check speaks for this dimension")
        finding = CHECKS[check](view)
        if finding is None:
            return no_value(Unscored.ABSTAINED, "there is nothing to count")
        good, bad = dimension.lowest, dimension.highest
        if dimension.direction is Direction.HIGHER:
            good, bad = bad, good
        return entry_of(dimension, good + finding.severity * (bad - good), reason=finding.reason)
