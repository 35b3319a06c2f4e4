"""The completion judge of experiments: chosen by configuration, paid as the role judge, and never a pass when down."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.episode import EpisodeRecord
from experiments.spec import ConfigError, compose_spec
from geode.dev.fake_provider.script import Call, Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.done.command import Ran, geode
from tests.doubles.provider import keys_of

GPT = "openai/gpt-6-astra"
JUDGED = ("+role.judge=anthropic/claude-opus-5-5",)


def check_of(*overrides: str) -> str | None:
    check = compose_spec(overrides).scaffold.completion
    return None if check is None else check.engine


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as refused:
        compose_spec(overrides)
    return str(refused.value)


@pytest.mark.parametrize(
    ("overrides", "engine"),
    [
        ((), None),
        (JUDGED, "llm"),
        ((*JUDGED, "completion=none"), None),
        (("role/judge=apprentice",), None),
        (("+role.judge=openrouter/typesafe/jev-1.13",), None),
        (("+role.judge=openrouter/typesafe/jev-1.13", "completion=jev"), "jev"),
        (("completion=rules",), "rules"),
    ],
)
def test_a_language_model_judges_once_it_is_bound_and_a_decision_model_only_where_it_is_chosen(
    overrides: tuple[str, ...], engine: str | None
) -> None:
    assert check_of(*overrides) == engine


def test_without_a_check_a_scaffold_is_what_it_was() -> None:
    """Its content, and so its id and the keys of its episodes, do not name what is not set."""
    plain = compose_spec(()).scaffold
    assert "completion" not in plain.model_dump(mode="json")
    ids = {plain.scaffold_id, *(compose_spec([f"completion={c}", *JUDGED]).scaffold.scaffold_id for c in ("llm",))}
    assert len(ids) == 2


def test_the_threshold_and_the_rubric_make_another_scaffold() -> None:
    ids = [compose_spec([*JUDGED, *more]).scaffold.scaffold_id for more in ([], ["completion.pass_at=0.5"])]
    ids.append(compose_spec([*JUDGED, "completion.rubric=two_dimensions"]).scaffold.scaffold_id)
    assert len(set(ids)) == 3


def test_what_cannot_judge_is_refused_before_anything_runs() -> None:
    assert "bind it: +role.judge=route/id" in refusal("completion=llm")
    assert "there is no rubric 'nothing'" in refusal(*JUDGED, "completion.rubric=nothing")
    assert "engine" in refusal("completion.engine=nobody")


@pytest.fixture
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


def verdict(met: int) -> Step:
    entry = {"rationale": "As the record shows.", "score": met}
    return Step(calls=(Call(name="give_judgment", arguments={"request_met": entry, "claims_hold": entry}),))


def run(home: Path, double: FakeProvider, *judged: Step, judge: str = "anthropic/claude-opus-5-5") -> Ran:
    """One episode of a target that answers at once, and a judge that says what the test wants."""
    double.play(Script(by_route={Route.ANTHROPIC: judged}, then=Step(text="All is done.")))
    words = ("run", "name=judged", "suite.tasks=[config_port]", "repeats=1", "tracking=none", f"role.target={GPT}")
    return geode(home, *words, f"+role.judge={judge}", "--root", str(home / "root"), more=keys_of(double))


def record_of(home: Path) -> EpisodeRecord:
    [path] = (home / "root" / "episodes").rglob("episode.json")
    return EpisodeRecord.model_validate_json(path.read_text())


@pytest.mark.slow
def test_the_judge_sends_an_answer_back_and_is_paid_as_the_judge(tmp_path: Path, double: FakeProvider) -> None:
    ran = run(tmp_path, double, verdict(0), verdict(1))
    assert ran.code == 0, ran.err
    record = record_of(tmp_path)
    assert (record.repairs_used, record.verified, record.usage["target"].calls) == (1, True, 2)
    assert record.usage["judge"].calls == 2
    assert record.usage["judge"].cost_usd > 0
    assert record.cost_usd > record.usage["target"].cost_usd
    costs = json.loads(geode(tmp_path, "costs", "--by", "role", "--root", str(tmp_path / "root"), "--json").out)
    assert "judge" in json.dumps(costs)


@pytest.mark.slow
def test_a_judge_that_is_down_makes_no_outcome(tmp_path: Path, double: FakeProvider) -> None:
    """Whether the agent would have been sent back nobody knows: the episode is INVALID, and its reason says why."""
    run(tmp_path, double, *[Step(failure=Failure.BAD_KEY)] * 4)
    record = record_of(tmp_path)
    assert record.outcome.kind == "INVALID"
    assert "its completion judge was down" in record.outcome.reasons[0]
    assert not record.verified


@pytest.mark.slow
def test_a_judge_of_the_targets_family_is_refused(tmp_path: Path, double: FakeProvider) -> None:
    ran = run(tmp_path, double, judge="openai/gpt-6-sol")
    assert ran.code != 0
    assert "are both of the family openai" in ran.out + ran.err
    assert len(double.requests) == 0
