"""The screen of foreign logs: every figure has its pairs, its error and a command that leads behind it."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from analysis.foreign import ForeignRun, LogsRefused
from analysis.foreign_compare import compare_runs
from analysis.foreign_logs import read_log
from analysis.foreign_table import LogScreen, print_log_comparison
from tests.doubles.foreign_logs import START, make_log, write_mcpmark

PASSES = ({"t0": [1], "t1": [0], "t2": [0], "t3": [None]}, {"t0": [1], "t1": [1], "t2": [1], "t3": [1]})
GRADES = (
    {"[bold]odd": {f"s{n}": [n] for n in range(4)}, "even": {f"s{n}": [1] for n in range(4)}},
    {"[bold]odd": {f"s{n}": [3] for n in range(4)}, "even": {f"s{n}": [1] for n in range(4)}},
)


def screen(*runs: ForeignRun, width: int = 100, tasks: bool = False, scores: tuple[str, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_log_comparison(console, compare_runs(runs), LogScreen(tasks=tasks, scores=scores))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def graded(**options: object) -> list[ForeignRun]:
    return [make_log(name, scores, **options) for name, scores in zip("ab", GRADES, strict=True)]  # type: ignore[arg-type]


def passed() -> list[ForeignRun]:
    return [make_log(name, {"pass": values}, passes=True) for name, values in zip("ab", PASSES, strict=True)]


def row(text: str, first: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(f"{first} ")).split()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("tasks", [False, True])
def test_no_figure_is_cut_and_names_are_shown_as_they_are(width: int, *, tasks: bool) -> None:
    """An interval with its end cut off is another interval; a bracket in a score's name is no markup."""
    values = {f"a_rather_long_name_of_a_task_{n}": [n / 10] for n in range(9)}
    more = [make_log(f"l{n}", {"[bold]a_score_with_a_name_as_long": values, "b": values}) for n in range(3)]
    text = screen(*more, width=width, tasks=tasks)
    until = text.index("Transcripts" if tasks else "The task that moved most")
    assert max(len(line) for line in text[:until].splitlines()) <= width
    assert "[bold]a_score" in text
    assert "…" not in text


def test_the_head_says_when_the_attempts_began() -> None:
    """What lies weeks apart is no pair in time. A date that is told twice fills a line."""
    assert "acme/a; attempts: 4, 2030-01-01 10:00 to 10:03" in screen(*graded())
    days = [make_log(n, {"calm": {"t0": [1], "t1": [2]}}, minutes=m) for n, m in (("a", 1_440), ("b", 0))]
    assert "acme/a; attempts: 2, 2030-01-01 10:00 to 2030-01-02 10:00" in screen(*days)
    assert "acme/b; attempts: 2, 2030-01-01 10:00\n" in screen(*days).replace(" \n", "\n")
    assert "acme/a; attempts: 4\n" in screen(*graded(start=None))


def test_passes_and_failures_stand_task_by_task_with_their_pairs() -> None:
    """What could not be measured is a word in its cell, and no zero."""
    text = screen(*passed())
    table = text[text.index("By task: pass") :]
    assert row(table, "t1") == ["t1", "FAIL", "PASS"]
    assert row(table, "t3") == ["t3", "unscored", "PASS"]
    assert row(text[text.index("Pairs of passes") :], "pass") == ["pass", "1", "0", "2", "0", "0.5000"]
    assert row(text, "pass")[:5] == ["pass", "3", "1,", "0", "0.33"]
    assert "Whether more is better" not in " ".join(text.split())
    assert "Whether more is better" in " ".join(screen(*graded()).split())


def test_an_attempt_that_an_error_ended_is_invalid_in_its_cell(tmp_path: Path) -> None:
    """Neither a failure nor an item that a judge left out. Among several attempts it is counted beside them."""
    for runs in (1, 2):
        folders = [
            write_mcpmark(tmp_path / f"{name}{runs}", found, runs=runs) for name, found in (("a", "I"), ("b", "P"))
        ]
        text = screen(*map(read_log, folders))
        table = text[text.index("By task") :]
        cells = (["INVALID", "PASS"], ["0/0", "2", "INVALID", "2/2"])[runs - 1]
        assert row(table, "files/attic__task_0")[1:] == cells


def test_repeated_attempts_are_counted_in_their_cell() -> None:
    """Two of three passed is another thing than passed."""
    logs = [make_log(name, {"pass": {"t0": v}}, passes=True) for name, v in (("a", [1, 0, 1]), ("b", [1, 1, 1]))]
    assert row(screen(*logs)[screen(*logs).index("By task") :], "t0") == ["t0", "2/3", "3/3"]


def test_several_scores_are_summed_up_by_task_and_one_can_be_chosen() -> None:
    """Twenty scores of thirty seeds are no table. Choosing one does not make its interval narrower."""
    text = screen(*graded())
    assert row(text[text.index("By task") :], "s0") == ["s0", "1", "0", "[bold]odd", "0", "->", "3"]
    assert "+0.00 no interval" in text
    one = screen(*graded(), scores=("[bold]odd",))
    assert row(one[one.index("By task: [bold]odd") :], "s0") == ["s0", "0.00", "3.00"]
    assert "even" not in one
    assert row(one, "[bold]odd") == row(text, "[bold]odd")
    with pytest.raises(LogsRefused, match="no score 'evn' in these logs; did you mean 'even'"):
        screen(*graded(), scores=("evn",))


def test_a_command_stands_behind_every_attempt() -> None:
    """One line each, however long, so that it can be copied; quoted, since a shell may read a # as its own."""
    text = screen(*graded(), width=40, tasks=True)
    assert "  A  geode show 'a.eval#s0/1'" in text
    assert "  B  geode show 'b.eval#s3/1'" in text
    short = screen(*graded(), width=40)
    assert "geode show 'a.eval#s0/1'" in short  # the task that moved most
    assert "geode show 'a.eval#s1/1'" not in short
    assert "The same with --tasks: every task" in short
    assert "The same with --score '[bold]odd': one score" in short


def test_many_logs_take_several_tables_and_tell_what_holds_for_all_of_them_once() -> None:
    """Twenty-five equal sentences hide the one that differs."""
    logs = [make_log(f"l{n}", {"calm": {"t0": [n], "t1": [n + 1]}}) for n in range(12)]
    text = screen(*logs, width=80)
    by_task = text[text.index("By task") : text.index("Means over paired")]
    assert [line.split() for line in by_task.splitlines() if line.startswith("task")] == [
        ["task", *"ABCDEFG"], ["task", *"AHIJKL"],
    ]  # fmt: skip
    assert [line.split()[-1] for line in by_task.splitlines() if line.startswith("t1")] == ["7.00", "12.00"]
    letters = "B, C, D, E, F, G, H, I, J, K, L"
    assert f"A and {letters}: 2 paired by task and attempt, 2 measured in both, none left over" in " ".join(
        text.split()
    )
    assert f"{letters}: UNDECIDED" in text
    assert text.count("UNDECIDED") == 1
    assert "in A and L:" in text


def test_what_could_not_be_paired_is_told_with_the_reason() -> None:
    """A task that the other lacks, and a further attempt at one that it has, are two reasons."""
    first = make_log("a", {"calm": {"t0": [1, 2], "t1": [1], "t9": [1]}, "odd": {"t0": [1, 1], "t1": [1], "t9": [1]}})
    text = screen(first, make_log("b", {"calm": {"t0": [3], "t1": [4]}}))
    assert "2 paired by task and attempt, 2 measured in both; 2 only in A, 0 only in B, and in no figure" in " ".join(
        text.split()
    )
    assert "1 only in A, B has no attempt at the task: t9 (epoch 1)" in text
    assert "1 only in A, B has other attempts at the task: t0 (epoch 2)" in text
    assert "scores only in A: odd" in text


def test_the_verdict_and_what_limits_it_stand_on_the_screen() -> None:
    """No log is kept, and the line says why."""
    text = " ".join(screen(*passed()).split())
    assert "B: UNDECIDED: the logs did not run as one interleaved experiment" in text
    assert "Drift over time: not tested: in no log does a task vary over attempts" in text
    assert "Beyond these tasks, B: not tested: the logs name no families." in text
    other = make_log("c", {"pass": PASSES[0]}, passes=True, ruler={"judge": "x" * 99 + "end"})
    text = " ".join(screen(*passed(), other).split())
    assert "the rulers differ in judge: acme/arbiter in A, B; …" in text
    assert "xend in C" in text
    assert "C: INVALID: measured with another ruler than A, in judge: run both under one." in text


def test_a_drift_is_told_on_top_and_families_at_the_end() -> None:
    """What makes a difference mean something else is read before the difference."""
    values = {task: [0] * 6 + [1] * 6 for task in "xyz"}
    drifted = [make_log(n, {"calm": values}, start=START + timedelta(days=d)) for d, n in enumerate("ab")]
    text = screen(*drifted)
    assert text.index("drift: calm stepped") < text.index("By task")
    assert "Drift over time: found, see above" in text
    families = {f"t{number:02}": f"f{number}" for number in range(10)}
    values = [{task: [value] for task in families} for value in (0, 1)]
    values[1]["t00"] = [0]
    text = screen(
        *(make_log(n, {"pass": v}, passes=True, families=families) for n, v in zip("ab", values, strict=True))
    )
    assert "Beyond these tasks, B - A of pass: [" in text
    assert "over 10 families, each one observation." in text
