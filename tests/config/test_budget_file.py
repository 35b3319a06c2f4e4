"""The operator's caps on spending are read strictly: a cap that is misread is no cap."""

from pathlib import Path

import pytest

from geode.config.budget_file import read_budget
from geode.config.settings import BadSettings

HEAD = "schema: geode.budget/1\n"


def read(folder: Path, text: str) -> tuple[float | None, float | None]:
    path = folder / "budget.yaml"
    path.write_text(text)
    budget = read_budget(path)
    return budget.session_usd, budget.day_usd


def test_without_a_file_or_a_key_there_is_no_cap(tmp_path: Path) -> None:
    """Caps are the operator's choice."""
    assert read_budget(tmp_path / "budget.yaml").day_usd is None
    assert read(tmp_path, f"{HEAD}day_usd: 20\n") == (None, 20.0)
    assert read(tmp_path, f"{HEAD}session_usd: 0\nday_usd: 0.5\n") == (0.0, 0.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{HEAD}day_usd: 20\ndaily_usd: 3\n", "line 3: there is no key 'daily_usd'; its keys are schema"),
        (f"{HEAD}\nday_usd: '20'\n", "line 3: day_usd: '20' is refused"),
        (f"{HEAD}day_usd: -1\n", "line 2: day_usd: -1 is refused: input should be greater than or equal to 0"),
        (f"{HEAD}day_usd: .inf\n", "line 2: day_usd: inf is refused"),
        (f"{HEAD}day_usd: true\n", "line 2: day_usd: True is refused"),
        ("day_usd: 1\n", "line 1: the key 'schema' is missing; write schema: geode.budget/1"),
        ("schema: geode.budget/2\n", "line 1: schema: 'geode.budget/2' is refused"),
        (f"{HEAD}day_usd: 1\nday_usd: 2\n", "line 3, column 1"),
        ("- 1\n", "line 1: it is no mapping"),
        ("", "line 1: it is no mapping"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_its_line(tmp_path: Path, text: str, told: str) -> None:
    """Whoever wrote it thinks that it holds."""
    with pytest.raises(BadSettings) as refused:
        read(tmp_path, text)
    assert told in str(refused.value)
    assert "budget.yaml" in str(refused.value)
