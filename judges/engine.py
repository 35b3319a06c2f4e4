"""Judge engines: an episode and a rubric in, a typed judgment out."""

from typing import Protocol

from judges.judgment import Judgment
from judges.rubric import Rubric
from judges.view import EpisodeView


class RubricRefused(ValueError):  # noqa: N818  (named by what happened)
    """An engine cannot judge by this rubric. Raised before anything is asked; the text names the dimension."""


class JudgeEngine(Protocol):
    """Whoever judges.

    `judge` gives an entry for every dimension and does not raise for what happens to a single episode: a reply that
    cannot be read, a refusal, a model that is down are *unscored* with that reason. It may raise
    `geode.llm.errors.BudgetReached` and `ConfigurationError`, before anything is sent, `RubricRefused`, and
    `judges.independence.NotIndependent`.
    Equal `engine_id`, `question_set` and view mean that it would be asked the same.
    """

    @property
    def name(self) -> str:
        """The engine's name: rules, llm, jev, recorded, cascade or panel, or a package's own."""
        ...

    @property
    def engine_id(self) -> str:
        """First 12 hex digits of the hash of all that decides how it judges."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """The `route/id` of every model that it may ask; empty if it asks none."""
        ...

    def question_set(self, rubric: Rubric) -> str:
        """First 12 hex digits of the hash of what it asks under `rubric`, word for word.

        Raises:
            RubricRefused: if it cannot judge by it.
        """
        ...

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """Judge one episode."""
        ...
