"""`geode judge` as it is typed: by default it judges, and says what it cannot."""

import json
from pathlib import Path

import pytest

from geode.config.paths import StateRoot
from tests.done.command import geode
from tests.doubles.judging import swept_root

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> StateRoot:
    return swept_root(tmp_path_factory.mktemp("root"))


def test_an_experiment_is_judged_once_and_judgments_lie_beside_episodes(root: StateRoot, tmp_path: Path) -> None:
    command = ("judge", "quick", "--engine", "rules", "checks.goal_met=tool_errors", "--root", str(root.path))
    first = geode(tmp_path, *command)
    assert (first.code, first.err) == (0, "")
    assert "goal_met" in first.out
    assert "4 judgments by rules under task_quality, 0 were there before" in first.out
    again = geode(tmp_path, *command, "--json")
    body = json.loads(again.out)
    assert (body["found"], body["given"], body["requests"]) == (4, [], 0)
    assert len(list(root.episodes.rglob("judgments.jsonl"))) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quick", "--engine", "nobody"), "there is no judge 'nobody'; there are "),
        (("quick", "--rubric", "nothing"), "there is no rubric 'nothing'; there are "),
        (("quick", "checks.goal_met=nonsense"), "there is no check 'nonsense'"),
        (("quick", "nonsense=1"), "nonsense: Extra inputs are not permitted"),
        (("quick", "--rubric", "two_dimensions"), "rules can count nothing for the rubric 'two_dimensions'"),
        (("nowhere",), "'nowhere'"),
        (("checks.goal_met=loops",), "name what to judge"),
        (("quick", "--engine", "recorded"), "no judge's values are on record"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(
    root: StateRoot, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ended = geode(tmp_path, "judge", *words, "--root", str(root.path))
    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err
