"""Judgments are appended, found again, and asked for again only where infrastructure spoiled them."""

from pathlib import Path

import pytest

from judges.judgment import Judgment, Unscored, all_unscored
from judges.ledger import JudgmentLedger, LedgerInUse, LedgerNewer, read_judgments
from tests.judges.test_judgment import RUBRIC, judgment

DOWN = judgment(dimensions=all_unscored(RUBRIC, Unscored.INFRASTRUCTURE))
GARBLED = judgment(dimensions=all_unscored(RUBRIC, Unscored.PARSE_FAILURE))


def written(path: Path, *judgments: Judgment) -> None:
    with JudgmentLedger(path) as ledger:
        for each in judgments:
            ledger.append(each)


def test_what_was_written_is_read_in_its_order_over_several_openings(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "judgments.jsonl"
    written(path, judgment(), DOWN)
    written(path, judgment(repetition=1))
    assert list(read_judgments(path)) == [judgment(), DOWN, judgment(repetition=1)]


@pytest.mark.parametrize(("stored", "held"), [(judgment(), True), (GARBLED, True), (DOWN, False)])
def test_only_what_infrastructure_spoiled_is_asked_for_again(tmp_path: Path, stored: Judgment, *, held: bool) -> None:
    """A reply that could not be read was paid for and is a fact about the judge; a judge that was down is none."""
    path = tmp_path / "judgments.jsonl"
    written(path, stored)
    with JudgmentLedger(path) as ledger:
        assert ledger.holds(judgment().key) is held


def test_it_has_one_writer_at_a_time(tmp_path: Path) -> None:
    """Two commands that judge the same episode would pay twice."""
    path = tmp_path / "judgments.jsonl"
    with JudgmentLedger(path), pytest.raises(LedgerInUse, match="another command"):
        JudgmentLedger(path)
    written(path, judgment())
    assert [file.name for file in tmp_path.iterdir()] == ["judgments.jsonl"]


def test_a_torn_last_line_is_told_and_hurts_nobody(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    written(path, judgment())
    with path.open("ab") as file:
        file.write(b'{"seq":2,"schema":"geode.judg')
    written(path, judgment(repetition=1))
    problems: list[str] = []
    assert [found.repetition for found in read_judgments(path, problems)] == [0, 1]
    assert "line 3 is not JSON and was skipped" in problems[0]


def test_a_line_that_is_no_judgment_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    written(path, judgment())
    path.write_text(path.read_text() + '{"seq":2,"schema":"geode.judgment/1"}\n')
    problems: list[str] = []
    assert len(list(read_judgments(path, problems))) == 1
    assert "line 3 is no judgment (episode: Field required)" in problems[0]


def test_a_file_of_a_newer_version_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    path.write_text('{"schema":"geode.judgments/9"}\n')
    with pytest.raises(LedgerNewer, match=r"geode\.judgments/9"):
        list(read_judgments(path))
