"""Judging goes on where it ended: what is kept is neither asked nor paid for again, and what failed is told."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.judged import Subject
from analysis.rejudge import Judged, judge_subjects
from geode.canonical import content_hash
from geode.llm.errors import BudgetReached, ConfigurationError
from geode.records.database import RecordDamaged
from judges.independence import NotIndependent
from judges.judgment import Asked, Judgment, Unscored, all_unscored, entries_of
from judges.ledger import JudgmentLedger, read_judgments
from judges.rubric import Dimension, Direction, Rubric
from judges.view import EpisodeView
from tests.judges.views import view as made_view

RUBRIC = Rubric(name="r", dimensions=(Dimension(name="risk", question="?", direction=Direction.LOWER),))


class Asking:
    """An engine that asks a model, or fails as it is told to; it keeps what it was asked."""

    name, models = "asking", ("acme/judge",)
    cut_by = ""
    engine_id = content_hash("asking")[:12]

    def __init__(self, fails: Callable[[int], Unscored | BaseException | None] = lambda _: None) -> None:
        self.asked: list[tuple[str, int]] = []
        self._fails = fails

    def question_set(self, rubric: Rubric) -> str:
        return content_hash(rubric.name)[:12]

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        await asyncio.sleep(0)
        self.asked.append((view.episode, repetition))
        failure = self._fails(len(self.asked))
        if isinstance(failure, BaseException):
            raise failure
        entries = all_unscored(rubric, failure, "503") if failure else entries_of(rubric, {"risk": 3})
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=self.name,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions=entries,
            cut_by=self.cut_by if failure else "",
            asked=(Asked(engine=self.name, model="acme/judge", cost_usd=0.5, failed="503" if failure else ""),),
        )


def subjects(folder: Path, count: int, ledgers: int = 1) -> list[Subject]:
    def subject(n: int) -> Subject:
        view = EpisodeView(**{**vars(made_view()), "episode": f"e{n}", "answer": f"answer {n}"})
        return Subject(name=f"e{n}", ledger=folder / f"{n % ledgers}.jsonl", view=lambda: view, recorded={})

    return [subject(n) for n in range(count)]


def judge(of: list[Subject], engine: Asking, **more: int) -> Judged:
    return asyncio.run(judge_subjects(of, engine, RUBRIC, **more))


def test_the_same_command_again_asks_nothing(tmp_path: Path) -> None:
    """And a larger number of repetitions asks only for the new ones."""
    engine, of = Asking(), subjects(tmp_path, 6, ledgers=2)
    assert len(judge(of, engine).given) == 6
    again = judge(of, engine)
    assert (again.given, again.found, again.left) == ((), 6, 0)
    assert judge(of, engine, repetitions=3).requests == 12
    assert len(engine.asked) == len(set(engine.asked)) == 18


def test_an_episode_whose_transcript_changed_is_judged_anew(tmp_path: Path) -> None:
    """A judgment belongs to what was shown, not to a name."""
    engine, (subject,) = Asking(), subjects(tmp_path, 1)
    judge([subject], engine)
    changed = EpisodeView(**{**vars(made_view()), "episode": subject.name, "answer": "another"})
    other = Subject(name=subject.name, ledger=subject.ledger, view=lambda: changed, recorded={})
    assert len(judge([other], engine).given) == 1


def test_a_judge_that_is_down_is_left_alone_and_asked_again_later(tmp_path: Path) -> None:
    """Nobody waits for 40 time-outs, and no item is lost or paid twice."""
    engine = Asking(lambda n: Unscored.INFRASTRUCTURE if n > 10 else None)
    cut = judge(of := subjects(tmp_path, 40), engine, concurrency=2)
    assert cut.stopped == "the judge gave nothing 5 times in a row: 503"
    assert (len(cut.given) - 10 in {5, 6}, cut.left) == (True, 30)
    healthy = Asking()
    rest = judge(of, healthy)
    assert (rest.found, len(rest.given), rest.left) == (10, 30, 0)
    settled = [j for j in read_judgments(tmp_path / "0.jsonl") if j.scored]
    assert len(settled) == len({j.key for j in settled}) == 40


def test_what_a_judge_could_not_be_read_in_is_a_fact_and_is_not_asked_again(tmp_path: Path) -> None:
    """It was paid for; asking until it parses would choose the replies that please."""
    engine, of = Asking(lambda n: Unscored.PARSE_FAILURE if n == 2 else None), subjects(tmp_path, 4)
    first = judge(of, engine, concurrency=1)
    assert (first.unscored(), first.cost_usd) == ({("risk", "parse_failure"): 1}, 2.0)
    assert judge(of, engine).found == 4


def test_a_budget_stops_before_the_next_request_and_says_so(tmp_path: Path) -> None:
    engine = Asking(lambda n: BudgetReached("the 1 US dollar of this command is spent") if n > 2 else None)
    ended = judge(subjects(tmp_path, 9), engine, concurrency=1)
    assert (len(ended.given), ended.left, ended.out_of_budget) == (2, 7, True)
    assert "1 US dollar" in ended.stopped


def test_a_budget_that_ends_within_an_episode_stops_the_others_too(tmp_path: Path) -> None:
    """Else each of them would be paid for in part, and be asked about again from its beginning."""
    engine = Asking(lambda n: Unscored.INFRASTRUCTURE if n > 2 else None)
    engine.cut_by = "the 1 US dollar of this command is spent"
    ended = judge(subjects(tmp_path, 9), engine, concurrency=1)
    assert (len(ended.given), ended.left, ended.out_of_budget, ended.stopped) == (3, 7, True, engine.cut_by)


def test_an_episode_that_cannot_be_read_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    def broken() -> EpisodeView:
        raise RecordDamaged("session.db is gone")

    good = subjects(tmp_path, 2)
    bad = Subject(name="e9", ledger=tmp_path / "9.jsonl", view=broken, recorded={})
    ended = judge([bad, *good], Asking())
    assert (len(ended.given), ended.unreadable) == (2, ("e9: session.db is gone",))


def test_what_another_command_judges_at_the_moment_is_left_to_it(tmp_path: Path) -> None:
    """Two commands on one experiment share the work instead of paying twice."""
    of = subjects(tmp_path, 4, ledgers=2)
    with JudgmentLedger(of[0].ledger):
        ended = judge(of, engine := Asking())
    assert (ended.elsewhere, ended.left) == (("e0", "e2"), 2)
    assert [episode for episode, _ in engine.asked] == ["e1", "e3"]


def test_interrupted_it_keeps_what_it_has(tmp_path: Path) -> None:
    """Each judgment is on disk before the next one is asked for."""
    engine = Asking(lambda n: KeyboardInterrupt() if n == 4 else None)
    with pytest.raises(BaseException, match=r".*"):
        judge(of := subjects(tmp_path, 9), engine, concurrency=1)
    assert judge(of, Asking()).found == 3


def test_what_a_judge_may_not_judge_is_told_and_kept_nowhere(tmp_path: Path) -> None:
    """It is another judge's to say, and no judgment of this one."""
    engine = Asking(lambda count: NotIndependent("both of the family acme") if count == 2 else None)
    judged = judge(subjects(tmp_path, 3), engine, concurrency=1)
    assert judged.refused == ("e1: both of the family acme",)
    assert (len(judged.given), judged.left) == (2, 0)
    assert [judgment.episode for judgment in read_judgments(tmp_path / "0.jsonl")] == ["e0", "e2"]


@pytest.mark.parametrize("spoil", [Path.mkdir, lambda path: path.write_text('{"schema":"geode.judgments/99"}\n')])
def test_an_episode_whose_judgments_cannot_be_opened_is_named_and_the_others_are_judged(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    """Nothing is paid for that could not be kept, and what a newer version wrote is left as it is."""
    of = subjects(tmp_path, 2, ledgers=2)
    spoil(of[0].ledger)
    ended = judge(of, engine := Asking())
    assert [episode for episode, _ in engine.asked] == ["e1"]
    [named] = ended.unreadable
    assert named.startswith("e0: ")
    assert str(of[0].ledger) in named


def test_a_judgment_that_cannot_be_kept_stops_before_the_next_one_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: JudgmentLedger, __: Judgment) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(JudgmentLedger, "append", full)
    ended = judge(subjects(tmp_path, 5), engine := Asking(), concurrency=1)
    assert (len(engine.asked), ended.left) == (1, 5)
    assert "e0 cannot be kept" in ended.stopped
    assert "No space left" in ended.stopped


def test_what_an_engine_refuses_is_raised_as_it_is_and_not_as_a_group(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no key"):
        judge(subjects(tmp_path, 4), Asking(lambda _: ConfigurationError("no key")))
