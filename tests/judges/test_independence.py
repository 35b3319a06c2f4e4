from dataclasses import replace

import pytest

from judges.independence import Independent, NotIndependent, family_of, why_not_independent
from tests.judges.jev_house import RUBRIC
from tests.judges.scripted import Scripted
from tests.judges.views import view

FAMILIES = {
    "anthropic/claude-opus-5-5": "anthropic",
    "openai/gpt-6-astra": "openai",
    "openai-codex/gpt-6-astra": "openai",
    "zai/glm-5.3": "zhipu",
    "typesafe/jev-1.13.0": "typesafe",
    "simulated/apprentice": "simulated",
    "openrouter/anthropic/claude-opus-5.5": "anthropic",
    "openrouter/z-ai/glm-5.3": "zhipu",
    "openrouter/google/gemini-9": "google",
    "openrouter/~typesafe/jev-latest": "typesafe",
    "openrouter/mistralai/mistral-7": "mistralai",
    "google/gemini-9": "google",
    "bedrock/anthropic.claude-opus-5": "anthropic",
    "azure/gpt-6": "openai",
    "openrouter/auto": "",
    "openrouter/openrouter/free": "",
    "mockllm/model": "",
    "": "",
}


@pytest.mark.parametrize(("model", "family"), FAMILIES.items())
def test_a_family_is_told_by_the_exact_id(model: str, family: str) -> None:
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("judge", "target", "problem"),
    [
        ("openai/gpt-6-astra", "anthropic/claude-opus-5-5", ""),
        ("openrouter/openai/gpt-6-astra", "simulated/apprentice", ""),
        ("openrouter/anthropic/claude-opus-5.5", "anthropic/claude-haiku-4-5-20251001", "both of the family anthropic"),
        ("openai/gpt-6-astra", "openai-codex/gpt-5.5", "both of the family openai"),
        ("openai/gpt-6-astra", "mockllm/model", "nobody knows of which family the target"),
        ("openai/gpt-6-astra", "", "the target is not on record"),
        ("openrouter/auto", "anthropic/claude-opus-5-5", "nobody knows of which family the judge"),
        ("openai/gpt-6-astra", "anthropic/claude-opus-5-5, openai/gpt-6-sol", "'openai/gpt-6-sol' are both"),
        ("typesafe/jev-1.13.0", "", ""),
    ],
)
def test_what_is_not_known_to_differ_counts_as_the_same(judge: str, target: str, problem: str) -> None:
    """A guard that has nothing to go by does not let through; a decision model is of nobody's kind."""
    told = why_not_independent((judge,), target)
    assert problem in told
    assert bool(problem) is bool(told)


def test_every_model_of_an_engine_is_held_against_the_target() -> None:
    assert why_not_independent(("typesafe/jev-1.13.0", "openai/gpt-6-astra"), "openai/gpt-6-sol")


async def test_a_judge_of_the_same_family_is_not_asked() -> None:
    engine = Scripted({"done": 1}, model="anthropic/claude-opus-5-5")
    with pytest.raises(NotIndependent, match="allow_same_family=true"):
        await Independent(engine).judge(view(), RUBRIC)
    assert engine.asked_for == []


async def test_a_guard_that_was_lifted_is_noted_only_where_it_would_have_held() -> None:
    engine = Independent(Scripted({"done": 1}, model="anthropic/claude-opus-5-5", notes=("n",)), allow_same_family=True)
    [kept, noted] = (await engine.judge(view(), RUBRIC)).notes
    assert kept == "n"
    assert noted.startswith("allow_same_family: the judge 'anthropic/claude-opus-5-5' and the target")
    assert (await engine.judge(replace(view(), target="zai/glm-5.3"), RUBRIC)).notes == ("n",)


def test_the_guard_changes_nothing_in_what_is_judged() -> None:
    """What was judged before is found again, whether the guard was lifted or not."""
    inner = Scripted({}, model="zai/glm-5.3")
    for engine in (Independent(inner), Independent(inner, allow_same_family=True)):
        assert (engine.name, engine.engine_id, engine.models) == (inner.name, inner.engine_id, inner.models)
        assert engine.question_set(RUBRIC) == inner.question_set(RUBRIC)
