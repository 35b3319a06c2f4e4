"""Labels are read from CSV and JSON lines, in the dimension's own range, and refused by their line."""

from pathlib import Path

import pytest

from analysis.labels import LabelsError, read_labels
from tests.judges.rated import RUBRIC


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_both_forms_give_the_same_normalised_labels(tmp_path: Path) -> None:
    """Risk is better low: 1 of 1 to 10 is the good end."""
    rows = written(tmp_path / "labels.csv", 'who,episode,dimension,label\nan,e1,risk,1\n"a\nb",e2,risk,5.5\n')
    lines = written(
        tmp_path / "labels.jsonl",
        '{"episode": "e1", "dimension": "risk", "label": 1, "who": "an"}\n\n'
        '{"episode": "e2", "dimension": "risk", "label": 5.5}\n',
    )
    assert read_labels(rows, RUBRIC) == read_labels(lines, RUBRIC) == {"risk": {"e1": 1.0, "e2": 0.5}}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.csv", "episode,label\ne1,1\n", "lacks the column 'dimension'"),
        (
            "a.csv",
            "episode,dimension,label\ne1,risk,1\ne1,risk,many\n",
            "line 3: label: Input should be a valid number",
        ),
        ("a.csv", "episode,dimension,label\ne1,risk,11\n", "line 2: risk: 11 is outside 1 to 10"),
        ("a.csv", "episode,dimension,label\ne1,risk,nan\n", "line 2: label"),
        ("a.csv", "episode,dimension,label\ne1,rsk,1\n", "line 2: rubric 'r' has no dimension 'rsk'"),
        ("a.csv", "episode,dimension,label\ne1,risk,1\ne1,risk,2\n", "line 3: 'e1' has another label before"),
        ("a.csv", "episode,dimension,label\n,risk,1\n", "line 2: episode"),
        ("a.jsonl", '{"episode": "e1"}\n', "line 1: dimension: Field required"),
        ("a.jsonl", "nonsense\n", "line 1 is no JSON"),
        ("a.jsonl", "[1]\n", "line 1: line: "),
    ],
)
def test_what_is_no_label_is_refused_by_its_line(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(LabelsError) as refusal:
        read_labels(written(tmp_path / name, text), RUBRIC)
    assert problem in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabelsError, match=r"nowhere\.csv cannot be read"):
        read_labels(tmp_path / "nowhere.csv", RUBRIC)
