"""Whether a judge is of another provider's family than the one it judges: models favour what their own kind writes."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from judges.engine import JudgeEngine
from judges.judgment import Judgment
from judges.rubric import Rubric
from judges.view import EpisodeView

UNKNOWN: Final = ""
_DECIDES_ONLY: Final = "typesafe"
_AUTHORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai-codex": "openai",
        "openai-api": "openai",
        "z-ai": "zhipu",
        "zai": "zhipu",
        "zhipuai": "zhipu",
        "thudm": "zhipu",
        "vertex": "google",
    }
)
"""Other names of a family, as a route or as OpenRouter's author."""

_FAMILIES: Final = frozenset({"anthropic", "openai", "zhipu", "google", "typesafe", "simulated"})
_MARKS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "anthropic": re.compile(r"\bclaude\b"),
        "openai": re.compile(r"\b(gpt|chatgpt|codex|o[134])\b"),
        "google": re.compile(r"\b(gemini|gemma)\b"),
        "zhipu": re.compile(r"\b(chat)?glm\b"),
    }
)
"""What ids hold of models that somebody else serves: `bedrock/anthropic.claude-opus-5`."""


class NotIndependent(ValueError):  # noqa: N818  (named by what is wrong)
    """The judge and the target are of one family, or nobody knows that they are not. Nothing was asked."""


def family_of(model: str) -> str:
    """Return whose model `route/id` is: anthropic, openai, zhipu, google, typesafe, ...; `UNKNOWN` if it does not say.

    At OpenRouter it is the author in the id, elsewhere the route, else what the id itself tells. A selector such as
    `openrouter/auto` leads to anybody.
    """
    route, _, model_id = model.lower().partition("/")
    if route == "openrouter":
        author, slash, _ = model_id.lstrip("~").partition("/")
        return _AUTHORS.get(author, author) if slash and author != "openrouter" else UNKNOWN
    family = _AUTHORS.get(route, route)
    if family in _FAMILIES:
        return family
    return next((name for name, mark in _MARKS.items() if mark.search(model_id.replace("_", "-"))), UNKNOWN)


def why_not_independent(models: Sequence[str], target: str) -> str:
    """Return why judges are not known to be of another family than `target`; empty if they are, or no model is asked.

    What is not known counts as the same: a guard that has nothing to go by does not let through. A decision model is of
    no target's family, since none can act. Several targets, those of a pair of episodes, are joined by a comma.
    """
    for model, acted in ((model, acted) for model in models for acted in target.split(", ")):
        family, of_target = family_of(model), family_of(acted)
        if family == _DECIDES_ONLY:
            continue
        if family == UNKNOWN:
            return f"nobody knows of which family the judge {model!r} is"
        if of_target == UNKNOWN:
            return f"nobody knows of which family the target {acted!r} is" if acted else "the target is not on record"
        if family == of_target:
            return f"the judge {model!r} and the target {acted!r} are both of the family {family}"
    return ""


class Independent:
    """Implements `JudgeEngine` around an engine: it judges nobody of its own family, unless that is allowed.

    `allow_same_family` lifts the guard; each judgment then notes what it lifted.
    """

    def __init__(self, inner: JudgeEngine, *, allow_same_family: bool = False) -> None:
        self._inner, self._allow_same_family = inner, allow_same_family

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return self._inner.name

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`. The guard changes nothing in how it judges."""
        return self._inner.engine_id

    @property
    def models(self) -> tuple[str, ...]:
        """See `JudgeEngine.models`."""
        return self._inner.models

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        return self._inner.question_set(rubric)

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`.

        Raises:
            NotIndependent: if it may not judge this episode.
        """
        reason = why_not_independent(self.models, view.target)
        if reason and not self._allow_same_family:
            raise NotIndependent(f"{reason}; take another judge, or allow it by allow_same_family=true")
        judgment = await self._inner.judge(view, rubric, repetition=repetition)
        if not reason:
            return judgment
        return judgment.model_copy(update={"notes": (*judgment.notes, f"allow_same_family: {reason}")})
