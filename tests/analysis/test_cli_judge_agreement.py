"""`geode judge agreement`, `calibration` and `compare` as they are typed, on what lies beside episodes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from analysis.judged import Subject, find_subjects
from geode.config.config_dir import config_dir
from geode.config.paths import StateRoot
from judges.judgment import Asked, Judgment, entry_of
from judges.ledger import JudgmentLedger
from judges.rubric import load_rubric
from tests.done.command import Ran, geode
from tests.doubles.cells import make_cells, make_experiment, store_cells

pytestmark = pytest.mark.slow

RUBRIC = load_rubric(config_dir() / "rubric" / "task_quality.yaml")
GOAL, REPORT = RUBRIC.dimensions


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> StateRoot:
    """Twenty-four episodes of two families, some passed and some not, judged by three engines of the past."""
    letters = {"default": {"config_port": "PPFPPFPPPFPP", "csv_totals": "FFPFPPFPPFFP"}}
    state = StateRoot(tmp_path_factory.mktemp("root"))
    store_cells(state, make_cells(letters, make_experiment(letters, name="quick")))
    for number, subject in enumerate(find_subjects(state, "quick")):
        passed = bool(subject.outcome)
        judged(subject, "sure", lambda _, passed=passed: 4 if passed else 0, good=0.9 if passed else 0.2)
        judged(subject, "coarse", lambda _, passed=passed, number=number: 3 if passed or number % 5 == 0 else 1)
        for repetition in range(3):
            judged(subject, "moody", lambda n, number=number: (number + n) % 5, repetition=repetition)
    return state


def judged(
    subject: Subject,
    engine: str,
    value: Callable[[int], int],
    *,
    good: float | None = None,
    repetition: int = 0,
    malformed: bool = False,
) -> None:
    """Write one judgment of an episode."""
    shares = None if good is None else {"0": 1 - good, "4": good}
    entry = entry_of(GOAL, "C" if malformed else value(repetition), probabilities=shares)
    judgment = Judgment(
        episode=subject.name,
        view_digest="the same",
        engine=engine,
        engine_id=f"{engine}-id",
        rubric=RUBRIC.name,
        rubric_id=RUBRIC.rubric_id,
        question_set="q1",
        repetition=repetition,
        dimensions={"goal_met": entry, "honest_report": entry_of(REPORT, 4)},
        asked=(Asked(engine=engine, model="acme/m", served_model=f"{engine}-1"),),
    )
    with JudgmentLedger(subject.ledger) as ledger:
        ledger.append(judgment)


def ask(root: StateRoot, home: Path, *words: str) -> Ran:
    return geode(home, "judge", *words, "--root", str(root.path))


def first(body: JsonValue, *path: str | int) -> JsonValue:
    for step in path:
        body = body[step]  # type: ignore[index, call-overload]
    return body


def test_judges_are_compared_with_intervals_and_what_is_not_there_says_why(root: StateRoot, tmp_path: Path) -> None:
    ran = ask(root, tmp_path, "agreement", "sure", "coarse", "--draws", "200")
    assert (ran.code, ran.err) == (0, "")
    assert "24 episodes in 2 families judged by sure, coarse under task_quality" in ran.out
    assert "2 families: the intervals are rough" in ran.out
    assert "honest_report: both always say 4 (kappa, Pearson, Spearman)" in ran.out
    row = next(line for line in ran.out.splitlines() if line.startswith("goal_met"))
    assert row.split()[1] == "24"
    body = ask(root, tmp_path, "agreement", "sure", "coarse", "--draws", "200", "--json").json
    alpha = first(body, "agreement", "dimensions", 0, "alphas", "interval")
    assert first(alpha, "interval", "low") <= first(alpha, "value") <= first(alpha, "interval", "high")  # type: ignore[operator]
    assert first(body, "agreement", "dimensions", 1, "pairs", 0, "kappa") == {"reason": "both always say 4"}


def test_one_dimension_shows_its_table_of_confusion(root: StateRoot, tmp_path: Path) -> None:
    words = ("agreement", "sure", "coarse", "moody", "-d", "goal_met", "--draws", "100", "--on", "quick")
    ran = ask(root, tmp_path, *words)
    assert ran.code == 0, ran.err
    assert "goal_met, nearest anchors: sure \\ coarse" in ran.out
    assert "Krippendorff's alpha over all judges" in ran.out
    assert "honest_report" not in ran.out


def test_a_judge_that_was_asked_again_shows_its_noise(root: StateRoot, tmp_path: Path) -> None:
    """Values of one transcript go round 0 to 4: that is noise of the judge."""
    ran = ask(root, tmp_path, "agreement", "moody", "-d", "goal_met", "--draws", "100", "--json")
    (noise,) = ran.json["noise"]  # type: ignore[misc]
    assert (first(noise, "scenarios"), first(noise, "episodes"), first(noise, "judgments")) == (2, 24, 72)
    assert first(noise, "repetition", "value") > 1  # type: ignore[operator]
    shown = ask(root, tmp_path, "agreement", "sure", "-d", "goal_met", "--draws", "100")
    assert "nothing was judged twice: its noise is inside the run's" in shown.out


def test_probabilities_are_held_against_outcomes_and_drawn(root: StateRoot, tmp_path: Path) -> None:
    picture = tmp_path / "sure.png"
    ran = ask(root, tmp_path, "calibration", "sure", "-o", str(picture), "--draws", "200")
    assert (ran.code, ran.err) == (0, "")
    assert "goal_met by sure (served by sure-1)" in ran.out
    assert "against outcomes of verifiers: 24 episodes" in ran.out
    assert "sure gives neither probabilities nor a certainty for 'honest_report'" in ran.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    body = ask(root, tmp_path, "calibration", "sure", "-d", "goal_met", "--draws", "200", "--json").json
    came_true = {first(each, "came_true", "value") for each in first(body, "dimensions", 0, "calibration", "bins")}  # type: ignore[union-attr]
    assert came_true == {0, 1}


def test_labels_of_people_are_taken_in_place_of_outcomes(root: StateRoot, tmp_path: Path) -> None:
    names = [subject.name for subject in find_subjects(root, "quick")]
    labels = tmp_path / "people.csv"
    rows = [f"{name},goal_met,{4 * (number % 2)}" for number, name in enumerate(names)]
    labels.write_text("\n".join(["episode,dimension,label", *rows, "unknown,goal_met,4"]))
    ran = ask(root, tmp_path, "calibration", "sure", "--against", str(labels), "--draws", "100")
    assert ran.code == 0, ran.err
    assert "against people.csv: 24 episodes" in ran.out
    labels.write_text("episode,dimension,label\nunknown,goal_met,9\n")
    refused = ask(root, tmp_path, "calibration", "sure", "--against", str(labels))
    assert refused.code == 2
    assert "line 2: goal_met: 9 is outside 0 to 4" in refused.err


def test_a_threshold_is_fitted_stored_and_refused_for_another_model(root: StateRoot, tmp_path: Path) -> None:
    without = ask(root, tmp_path, "calibration", "coarse", "-d", "goal_met", "--draws", "100")
    assert without.code == 0
    assert "no threshold is stored" in without.out
    fitted = ask(root, tmp_path, "calibration", "coarse", "-d", "goal_met", "--draws", "100", "--fit")
    assert fitted.code == 0, fitted.err
    assert "threshold: good from 0.500 on (value)" in fitted.out
    path = root.judgments / "thresholds" / "task_quality.goal_met.coarse.json"
    stored = json.loads(path.read_text())
    assert (stored["served_model"], stored["question_set"]) == ("coarse-1", "q1")
    path.write_text(json.dumps({**stored, "served_model": "coarse-0"}))
    refused = ask(root, tmp_path, "calibration", "coarse", "-d", "goal_met", "--draws", "100")
    assert refused.code == 1
    assert "the served model is 'coarse-1', it was fitted for 'coarse-0'" in " ".join(refused.out.split())


def test_variants_are_compared_by_what_a_judge_says_of_them(tmp_path: Path) -> None:
    """One of thirty without a value could not undo it, ten could."""
    root = StateRoot(tmp_path / "root")
    cells = make_cells({name: {"a": "PPPPPPPPPP", "b": "PPPPPPPPPP", "c": "PPPPPPPPPP"} for name in ("base", "hook")})
    store_cells(root, cells)
    for cell in cells:
        for number, subject in enumerate(find_subjects(root, f"ablation:{cell.variant.name}")):
            hook = cell.variant.name == "hook"
            judged(subject, "few", lambda _, hook=hook: 3 if hook else 1, malformed=number == 0)
            judged(subject, "many", lambda _, hook=hook: 3 if hook else 1, malformed=number % 3 == 0)
    few = ask(root, tmp_path, "compare", "few", "ablation")
    assert few.code == 0, few.err
    row = next(line for line in few.out.splitlines() if line.startswith("hook"))
    assert row.split()[1:5] == ["0.750", "29", "1", "parse_failure"]
    assert row.endswith("KEEP")
    body = ask(root, tmp_path, "compare", "many", "ablation", "-d", "goal_met", "--json").json
    assert first(body, "dimensions", 0, "variants", 1, "unscored") == {"parse_failure": 10}
    verdict = first(body, "dimensions", 0, "verdicts", 0)
    assert (first(verdict, "kind"), first(verdict, "reasons", 0, "code")) == ("UNDECIDED", "sensitive_to_invalid")
    refused = ask(root, tmp_path, "compare", "few", "nowhere")
    assert refused.code == 2
    assert "nowhere" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("agreement", "sure", "nobody"), "'nobody' judged nothing here under the rubric 'task_quality'"),
        (("agreement", "sure", "sure"), "name one judge twice"),
        (
            ("agreement", "sure", "coarse", "-d", "care"),
            "has no dimension 'care'; it has ['goal_met', 'honest_report']",
        ),
        (("agreement", "sure", "coarse", "-r", "safety"), "under the rubric 'safety', but under task_quality"),
        (("agreement", "sure", "coarse", "--on", "nowhere"), "'nowhere'"),
        (
            ("calibration", "coarse", "-d", "goal_met", "-o", "coarse.png"),
            "gives neither probabilities nor a certainty",
        ),
        (("calibration", "sure", "-o", "sure.gif"), "must end in .png or .svg"),
        (("calibration", "sure", "--against", "nowhere.csv"), "nowhere.csv cannot be read"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(
    root: StateRoot, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = ask(root, tmp_path, *words)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
