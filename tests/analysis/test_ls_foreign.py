"""Every attempt of a foreign log is listed with what came of it and the command that shows it."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from analysis.foreign import LogsRefused
from analysis.foreign_logs import read_log
from analysis.ls_foreign import attempt_lines, attempts_to_json, print_attempts
from tests.doubles.evals import judged, sample, write_eval
from tests.doubles.foreign_logs import write_mcpmark


def screen(path: Path) -> list[str]:
    console = Console(file=io.StringIO(), width=40, highlight=False)
    print_attempts(console, attempt_lines(read_log(path)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_each_attempt_has_its_end_and_its_command(tmp_path: Path) -> None:
    """INVALID and unscored are two things; the command is one line however narrow the terminal is."""
    scores = judged(dict.fromkeys("abcdef", 1))
    nan = judged({**dict.fromkeys("abcde", 1), "f": float("nan")})
    path = write_eval(tmp_path / "a.eval", [sample("s1", scores), sample("s2", nan), sample("s3", error="lost")])
    assert screen(path) == [
        "s1 (epoch 1)  a 1, b 1, c 1, d 1, 2 scores more",
        f"  geode show '{path}#s1/1'",
        "s2 (epoch 1)  a 1, b 1, c 1, d 1, 1 scores more, unscored: 1",
        f"  geode show '{path}#s2/1'",
        "s3 (epoch 1)  INVALID: lost",
        f"  geode show '{path}#s3/1'",
    ]
    assert "unscored: everything" in screen(write_eval(tmp_path / "b.eval", [sample("s1")]))[0]


def test_one_task_can_be_asked_for(tmp_path: Path) -> None:
    """A misspelling is answered with the nearest."""
    log = read_log(write_mcpmark(tmp_path / "m", "PF", runs=2))
    lines = attempt_lines(log, "files/attic__task_1")
    assert [(line.attempt, line.values) for line in lines] == [("run-1", {"success": 0}), ("run-2", {"success": 0})]
    assert attempts_to_json(lines)["schema"] == "geode.list/1"
    with pytest.raises(LogsRefused, match="did you mean 'files/attic__task_1'"):
        attempt_lines(log, "files/attic__tsak_1")
