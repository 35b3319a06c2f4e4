"""Judges are found by name in what lies on record, and told apart where a name fits several."""

from pathlib import Path

import pytest

from analysis.judged import Subject
from analysis.on_record import NoJudgments, find_all_subjects, on_record
from geode.config.paths import StateRoot
from judges.judgment import Judgment, Unscored
from judges.ledger import JudgmentLedger
from judges.variance import Origin
from judges.view import EpisodeView
from tests.judges.rated import RUBRIC, judgment_of, rubric_of


def never() -> EpisodeView:
    raise AssertionError("no episode need be read to compare judgments")


def subjects(folder: Path, *judgments: Judgment) -> list[Subject]:
    """Two episodes with one ledger."""
    with JudgmentLedger(folder / "judgments.jsonl") as ledger:
        for judgment in judgments:
            ledger.append(judgment)
    return [
        Subject(
            name=f"e{n}",
            ledger=folder / "judgments.jsonl",
            view=never,
            family=f"f{n}",
            scenario=f"s{n}",
            outcome=(1.0, None)[n],
            recorded={},
        )
        for n in range(2)
    ]


def given(record: Judgment) -> float:
    return record.scored["risk"].value


def test_a_judge_comes_with_what_it_said_of_these_episodes(tmp_path: Path) -> None:
    found = subjects(
        tmp_path,
        judgment_of("e0", 3),
        judgment_of("e1", 4),
        judgment_of("elsewhere", 9),
        judgment_of("e1", 5, engine="other"),
        judgment_of("e1", 6, rubric_id="older"),
    )
    record = on_record(found, ["test"], RUBRIC)
    (judge,) = record.judges
    assert (judge.name, [given(judgment) for judgment in judge.judgments]) == ("test", [3, 4])
    assert record.origins == {f"e{n}": Origin(scenario=f"s{n}", family=f"f{n}") for n in range(2)}
    assert (record.families, record.outcomes) == ({"e0": "f0", "e1": "f1"}, {"e0": True})


def test_the_last_word_counts_and_a_judge_that_was_down_has_none(tmp_path: Path) -> None:
    found = subjects(
        tmp_path,
        judgment_of("e0", Unscored.INFRASTRUCTURE),
        judgment_of("e0", 3),
        judgment_of("e1", 4, view_digest="before the record was repaired"),
        judgment_of("e1", 5),
        judgment_of("e1", Unscored.INFRASTRUCTURE, repetition=0),
    )
    (judge,) = on_record(found, ["test"], RUBRIC).judges
    assert [given(judgment) for judgment in judge.judgments] == [3, 5]


def test_a_name_that_fits_several_judges_is_asked_about(tmp_path: Path) -> None:
    found = subjects(
        tmp_path,
        judgment_of("e0", 1),
        judgment_of("e0", 2, engine_id="bb"),
        judgment_of("e0", 3, engine_id="bb", question_set="q2"),
    )
    with pytest.raises(NoJudgments, match=r"name of 3 judges.*test@a/q1 \(1 judgments\), test@bb/q1 .*test@bb/q2"):
        on_record(found, ["test"], RUBRIC)
    with pytest.raises(NoJudgments, match="name of 2 judges"):
        on_record(found, ["test@b"], RUBRIC)
    judges = on_record(found, ["test@a", "test@bb/q2"], RUBRIC).judges
    assert [(judge.name, given(judge.judgments[0])) for judge in judges] == [("test@a", 1), ("test@bb/q2", 3)]


def test_two_names_of_one_judge_are_refused(tmp_path: Path) -> None:
    """It would agree with itself perfectly."""
    found = subjects(tmp_path, judgment_of("e0", 1))
    with pytest.raises(NoJudgments, match="'test' and 'test@a' name one judge twice"):
        on_record(found, ["test", "test@a"], RUBRIC)


def test_a_judge_that_said_nothing_is_told_with_those_that_did(tmp_path: Path) -> None:
    found = subjects(tmp_path, judgment_of("e0", 1))
    with pytest.raises(NoJudgments, match=r"'jev' judged nothing here under the rubric 'r'; on record are test@a/q1"):
        on_record(found, ["jev"], RUBRIC)
    changed = rubric_of(question="How risky, then?")
    with pytest.raises(NoJudgments, match="but under another version of r"):
        on_record(found, ["test"], changed)
    with pytest.raises(NoJudgments, match="nothing is on record; geode judge X --engine jev --rubric r"):
        on_record([], ["jev@1"], RUBRIC)


def test_lines_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    found = subjects(tmp_path, judgment_of("e0", 1))
    ledger = tmp_path / "judgments.jsonl"
    ledger.write_text(ledger.read_text() + "nonsense\n" + '{"seq": 9, "schema": "geode.judgment/1"}\n')
    problems = on_record(found, ["test"], RUBRIC).problems
    assert [word for word in ("is not JSON", "is no judgment") if any(word in problem for problem in problems)] == [
        "is not JSON",
        "is no judgment",
    ]


def test_without_an_experiment_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(NoJudgments, match="no experiment under this root"):
        find_all_subjects(StateRoot(tmp_path), [])
