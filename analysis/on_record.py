"""Judgments that lie on record for some episodes, by judge: what agreement and calibration are computed from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.judged import Subject, find_subjects
from experiments.store import list_experiments
from geode.config.paths import StateRoot
from judges.judgment import Judgment
from judges.ledger import is_settled, read_judgments
from judges.ratings import Judge
from judges.rubric import Rubric
from judges.variance import Origin


class NoJudgments(LookupError):  # noqa: N818  (named by what is missing)
    """No judge of that name is on record for these episodes, or several are. The text names those that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRecord:
    """Judges with what they said of some episodes under one rubric, and what is known of these.

    `outcomes` say which episodes a verifier passed. `problems` are lines of ledgers that could not be read.
    """

    judges: tuple[Judge, ...]
    origins: Mapping[str, Origin]
    outcomes: Mapping[str, bool]
    problems: tuple[str, ...]

    @property
    def families(self) -> Mapping[str, str]:
        """The family of each episode."""
        return {episode: origin.family for episode, origin in self.origins.items()}


def find_all_subjects(root: StateRoot, wanted: Sequence[str]) -> tuple[Subject, ...]:
    """Return the episodes that are named; if none is, those of all experiments under the root.

    Raises:
        NoJudgments: if there is no experiment.
        NothingToJudge, EpisodeNotFound, ArchiveError, StoreError: as `find_subjects` does.
    """
    names = list(wanted) or list(list_experiments(root))
    if not names:
        raise NoJudgments("there is no experiment under this root; --on names episodes, or a folder of .eval logs")
    return tuple({subject.name: subject for name in names for subject in find_subjects(root, name)}.values())


def on_record(subjects: Sequence[Subject], names: Sequence[str], rubric: Rubric) -> OnRecord:
    """Read what the judges called `names` said of the subjects under a rubric.

    A name is that of an engine, or `ENGINE@ID`, or `ENGINE@ID/QUESTIONS`, where it has several; ids may be shortened.

    Raises:
        NoJudgments: if a name fits no judge, or several, or two names fit the same.
        LedgerNewer: if a newer version wrote a ledger.
    """
    problems: list[str] = []
    wanted = {subject.name for subject in subjects}
    found = [
        judgment
        for ledger in dict.fromkeys(subject.ledger for subject in subjects)
        for judgment in read_judgments(ledger, problems)
        if judgment.episode in wanted
    ]
    by_judge: dict[str, dict[tuple[str, int], Judgment]] = {}
    for judgment in found:
        if judgment.rubric_id == rubric.rubric_id:
            kept = by_judge.setdefault(_full_name(judgment), {})
            place = judgment.episode, judgment.repetition
            # Lines come in the order in which they were written, and what infrastructure spoiled says nothing.
            if place not in kept or is_settled(judgment):
                kept[place] = judgment
    full_names = [_the_one(name, by_judge, found, rubric) for name in names]
    if len(set(full_names)) < len(full_names):
        raise NoJudgments(f"{' and '.join(map(repr, names))} name one judge twice; agreement is between different ones")
    return OnRecord(
        judges=tuple(
            Judge(name=name, judgments=tuple(by_judge[full].values()))
            for name, full in zip(names, full_names, strict=True)
        ),
        origins={
            subject.name: Origin(scenario=subject.scenario, family=subject.family)
            for subject in subjects
            if subject.family
        },
        outcomes={subject.name: subject.outcome == 1 for subject in subjects if subject.outcome is not None},
        problems=tuple(problems),
    )


def _full_name(judgment: Judgment) -> str:
    return f"{judgment.engine}@{judgment.engine_id}/{judgment.question_set}"


def _the_one(
    name: str, by_judge: Mapping[str, Mapping[tuple[str, int], Judgment]], found: Iterable[Judgment], rubric: Rubric
) -> str:
    beginning = name if "@" in name else f"{name}@"
    fitting = [full for full in by_judge if full.startswith(beginning)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NoJudgments(f"{name!r} is the name of {len(fitting)} judges, name one: {_told(fitting, by_judge)}")
    if others := sorted({judgment.rubric for judgment in found if _full_name(judgment).startswith(beginning)}):
        other = ", ".join(each if each != rubric.name else f"another version of {each}" for each in others)
        raise NoJudgments(f"{name!r} judged nothing here under the rubric {rubric.name!r}, but under {other}")
    there = f"on record are {_told(list(by_judge), by_judge)}" if by_judge else "nothing is on record"
    raise NoJudgments(
        f"{name!r} judged nothing here under the rubric {rubric.name!r}; {there};"
        f" geode judge X --engine {name.partition('@')[0]} --rubric {rubric.name} judges"
    )


def _told(names: Sequence[str], by_judge: Mapping[str, Mapping[tuple[str, int], Judgment]]) -> str:
    return ", ".join(f"{name} ({len(by_judge[name])} judgments)" for name in sorted(names))
