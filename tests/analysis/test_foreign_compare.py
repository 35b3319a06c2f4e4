"""Two logs of another harness are compared by what they share, and what they do not share is counted."""

import io
import json
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from analysis.cli_look import register
from analysis.foreign import LogsRefused, Unit, is_log_path, read_run
from analysis.foreign_compare import Level, LogComparison, compare_runs
from analysis.foreign_table import print_log_comparison
from tests.doubles.evals import ROLES, judged, sample, write_eval


def mcpmark(folder: Path, letters: str, *, runs: int = 1, timeout: int = 600, skip: str = "") -> Path:
    """Write a result directory: one letter a task, P pass, F fail, I ended by infrastructure; tasks in `skip` lack."""
    for run in range(1, runs + 1):
        for number, letter in enumerate(letters):
            if str(number) in skip:
                continue
            place = folder / "acme-1__files" / f"run-{run}" / f"attic__task_{number}"
            place.mkdir(parents=True)
            usage = {} if letter == "I" else {"model": "acme-1", "input_tokens": 5, "output_tokens": 5}
            result = {"success": letter == "P", "error_message": "no network" if letter == "I" else None}
            meta = {"task_name": place.name, "mcp": "files", "timeout": timeout, "execution_result": result}
            (place / "meta.json").write_text(json.dumps({**meta, "token_usage": usage}), encoding="utf-8")
    return folder


def compared(first: Path, second: Path) -> LogComparison:
    return compare_runs(read_run(first), read_run(second))


def geode(*arguments: str) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    register(app)
    return CliRunner().invoke(app, list(arguments))


def test_mcpmark_runs_are_paired_by_task_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Passes over different tasks are no difference; an attempt that infrastructure ended is no failure."""
    found = compared(mcpmark(tmp_path / "a", "FFPPIFF", skip="6"), mcpmark(tmp_path / "b", "PPPFPFP", skip="5"))
    (row,) = found.rows
    assert found.paired == 5
    assert found.only_first == (Unit("files/attic__task_5", "run-1"),)
    assert found.only_second == (Unit("files/attic__task_6", "run-1"),)
    assert (row.pairs, row.unscored_first, row.unscored_second) == (4, 1, 0)
    assert (row.first, row.second, row.difference) == (0.5, 0.75, 0.25)
    assert row.mcnemar is not None
    assert (row.mcnemar.both, row.mcnemar.only_first, row.mcnemar.only_second, row.mcnemar.neither) == (1, 1, 2, 0)
    assert [task.task for task in row.better] == ["files/attic__task_0", "files/attic__task_1"]
    assert any("1 of 6 attempts are INVALID" in warning for warning in found.warnings)


def test_one_attempt_a_task_speaks_of_tasks_and_several_of_these_tasks(tmp_path: Path) -> None:
    """What an interval means depends on what varied."""
    once = compared(mcpmark(tmp_path / "a", "FFFFFFFF"), mcpmark(tmp_path / "b", "PPPPPPPF"))
    twice = compared(mcpmark(tmp_path / "c", "FFFFFFFF", runs=3), mcpmark(tmp_path / "d", "PPPPPPPF", runs=3))
    assert (once.level, twice.level) == (Level.OVER_TASKS, Level.ON_THESE_TASKS)
    assert twice.paired == 24
    assert once.rows[0].interval is not None
    assert once.rows[0].interval.low > 0


def test_another_ruler_is_said(tmp_path: Path) -> None:
    """Half the time allowed is another measurement."""
    found = compared(mcpmark(tmp_path / "a", "FP"), mcpmark(tmp_path / "b", "PP", timeout=300))
    assert "the rulers differ in timeout: 600 s and 300 s" in found.warnings


def test_eval_logs_are_paired_by_sample_and_epoch_on_every_score(tmp_path: Path) -> None:
    """Grades keep their scale; NaN is no grade."""
    grades = [(1, 5), (2, 9), (1, 1), (3, float("nan"))]
    first = [sample(f"s{n}", judged({"calm": a, "odd": 1})) for n, (a, _) in enumerate(grades)]
    second = [sample(f"s{n}", judged({"calm": b, "new": 1})) for n, (_, b) in enumerate(grades)]
    second.append(sample("s0", judged({"calm": 7, "new": 1}), epoch=2))
    found = compared(write_eval(tmp_path / "a.eval", first), write_eval(tmp_path / "b.eval", second))
    (row,) = found.rows
    assert (row.dimension, row.pairs, row.unscored_second) == ("calm", 3, 1)
    assert row.difference == pytest.approx(11 / 3)
    assert row.interval is not None
    assert row.interval.high > 1
    assert row.mcnemar is None
    assert found.only_second == (Unit("s0", "2"),)
    assert (found.only_first_dimensions, found.only_second_dimensions) == (("odd",), ("new",))


def test_another_judge_and_a_killed_run_are_said(tmp_path: Path) -> None:
    """Two judges are two rulers; the target is what is compared and may differ."""
    body = [sample("s1", judged({"calm": 1})), sample("s2", judged({"calm": 2}))]
    other = {**ROLES, "judge": "acme/other-judge", "target": "acme/worker-2"}
    first = write_eval(tmp_path / "a.eval", body)
    found = compared(first, write_eval(tmp_path / "b.eval", body, roles=other, status=None))
    assert f"the rulers differ in judge: {ROLES['judge']} and acme/other-judge" in found.warnings
    assert any(warning.startswith("B: the log's status is 'started'") for warning in found.warnings)
    assert not any("target" in warning for warning in found.warnings)
    assert found.second_subject == "acme/worker-2"


def test_what_cannot_be_paired_is_refused_with_what_is_there(tmp_path: Path) -> None:
    """An empty table would read as `no difference`."""
    a = mcpmark(tmp_path / "a", "FP", skip="1")
    b = mcpmark(tmp_path / "b", "PP", skip="0")
    log = write_eval(tmp_path / "c.eval", [sample("s1", judged({"calm": 1}))])
    with pytest.raises(LogsRefused, match=r"no task is in both: .*attic__task_0.*attic__task_1"):
        compared(a, b)
    with pytest.raises(LogsRefused, match=r"of mcpmark, .* of inspect"):
        compared(a, log)
    with pytest.raises(LogsRefused, match="no score is in both"):
        compared(log, write_eval(tmp_path / "d.eval", [sample("s1", judged({"odd": 1}))]))
    twice = tmp_path / "twice"
    for name in ("x", "y"):
        mcpmark(twice / name, "F")
    with pytest.raises(LogsRefused, match="more than once"):
        read_run(twice)


def test_a_name_with_a_slash_is_a_path_and_no_other() -> None:
    """An experiment must not change its meaning because a folder of its name lies about."""
    assert [is_log_path(text) for text in ("./run", "a.eval", "/x/y", "..", "ablation", "v1.2")] == [True] * 4 + [
        False
    ] * 2


def test_the_screen_fits_and_shows_names_as_they_are(tmp_path: Path) -> None:
    """A bracket in a score's name is no markup, and no figure is cut."""
    first = write_eval(tmp_path / "a.eval", [sample(f"s{n}", judged({"[bold]odd": n, "even": 1})) for n in range(4)])
    second = write_eval(tmp_path / "b.eval", [sample(f"s{n}", judged({"[bold]odd": 3, "even": 1})) for n in range(4)])
    console = Console(file=io.StringIO(), width=100, highlight=False)
    print_log_comparison(console, compared(first, second), tasks=True)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "[bold]odd" in text
    assert "+0.00 no interval" in text
    assert "[bold]odd higher in B: s0 0 -> 3; s1 1 -> 3; s2 2 -> 3" in text
    assert "…" not in text


def test_the_command_takes_two_paths(tmp_path: Path) -> None:
    """The same command as for experiments; what needs a plan is refused rather than ignored."""
    paths = [str(mcpmark(tmp_path / "a", "FFFF")), str(mcpmark(tmp_path / "b", "PPPF"))]
    shown = geode("compare", *paths)
    assert shown.exit_code == 0
    assert "4 paired by task and attempt; 0 only in A, 0 only in B" in shown.stdout
    assert json.loads(geode("compare", *paths, "--json").stdout)["rows"][0]["difference"] == 0.75
    for wrong in ([paths[0]], [*paths, paths[0]], [*paths, "--exit-code"], ["ablation", paths[0]], [paths[0], "./no"]):
        refused = geode("compare", *wrong)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.startswith("geode: ")
