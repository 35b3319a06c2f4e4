"""What a name means to a judge: episodes of our own whole, samples of logs as the target saw them."""

from pathlib import Path

import pytest

from analysis.judged import NothingToJudge, find_subjects, recorded_by
from geode.config.paths import StateRoot
from judges.view import StepKind
from tests.doubles.evals import Body, judged, sample, write_eval
from tests.doubles.judging import audited, swept_root

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> StateRoot:
    return swept_root(tmp_path_factory.mktemp("root"))


def test_an_experiment_is_its_episodes_each_once_with_its_outcome(root: StateRoot) -> None:
    """The ground truth goes with it, so that a judge can be held against it."""
    subjects = find_subjects(root, "quick")
    assert len(subjects) == len({subject.name for subject in subjects}) == 4
    assert {subject.outcome for subject in subjects} <= {0.0, 1.0}
    view = subjects[0].view()
    assert (view.target, view.family) == ("simulated/apprentice", "edit_config")
    assert "port" in view.prompt
    assert view.system
    assert view.steps[0].kind is StepKind.PROMPT
    assert {StepKind.CALLED, StepKind.RESULT, StepKind.SAID} <= {step.kind for step in view.steps}
    assert view.answer == [step.text for step in view.steps if step.kind is StepKind.SAID][-1]
    assert view.spent.rounds > 1


def test_a_variant_an_episode_and_nothing_are_told_apart(root: StateRoot) -> None:
    (first, *_) = find_subjects(root, "quick")
    assert [subject.name for subject in find_subjects(root, first.name[:10])] == [first.name]
    assert len(find_subjects(root, "quick:default")) == 4
    with pytest.raises(NothingToJudge, match="has no variant 'other'; it has default"):
        find_subjects(root, "quick:other")


def conversation() -> list[Body]:
    return [
        {"role": "system", "content": "You are the worker."},
        {"role": "user", "content": "attachment://" + "0" * 32},
        {"role": "assistant", "content": "I checked the gateway."},
        {"role": "user", "content": "And now?"},
    ]


def test_a_sample_is_shown_as_its_target_saw_it(tmp_path: Path) -> None:
    """The sample's own messages are the auditor's, with the plan that the target must not be judged by."""
    body = sample("s1", judged({"risk": 3, "care": float("nan")}), attachments={"0" * 32: "Is it up?"})
    audited(body, conversation(), "It is up.")
    audited(other := sample("s2"), conversation(), "It is down.")
    path = write_eval(tmp_path / "a.eval", [body, other, sample("never asked")])
    root = StateRoot(tmp_path / "root")
    first, second = find_subjects(root, str(path))
    assert [subject.name for subject in (first, second)] == ["a.eval#s1/1", "a.eval#s2/1"]
    view = first.view()
    assert (view.system, view.prompt, view.answer) == ("You are the worker.", "Is it up?", "It is up.")
    assert (view.target, view.family, view.spent.rounds) == ("acme/worker-1", "s1", 2)
    assert first.ledger == second.ledger
    assert first.ledger.parent == root.judgments
    assert find_subjects(root, f"{path}#s2/1")[0].name == second.name
    assert recorded_by([first, second])["a.eval#s1/1"].values == {"risk": 3.0}


def test_several_scorers_need_a_name(tmp_path: Path) -> None:
    """Whose values are compared must be said, not guessed."""
    body = sample("s1", {**judged({"risk": 3}), **judged({"risk": 9}, "second")})
    audited(body, conversation(), "It is up.")
    subjects = find_subjects(StateRoot(tmp_path), str(write_eval(tmp_path / "a.eval", [body])))
    with pytest.raises(NothingToJudge, match=r"there are audit_judge, second: judge\.scorer=NAME"):
        recorded_by(subjects)
    assert recorded_by(subjects, "second")["a.eval#s1/1"].values == {"risk": 9.0}


def test_an_episode_that_only_another_scorer_judged_is_left_out(tmp_path: Path) -> None:
    bodies = [sample("s1", judged({"risk": 3}, "first")), sample("s2", judged({"risk": 9}, "second"))]
    for body in bodies:
        audited(body, conversation(), "It is up.")
    subjects = find_subjects(StateRoot(tmp_path), str(write_eval(tmp_path / "a.eval", bodies)))
    assert list(recorded_by(subjects, "second")) == ["a.eval#s2/1"]
