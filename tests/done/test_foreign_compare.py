"""Done line 2: two archived `.eval` logs are compared by seed, two MCPMark runs by task, with intervals and counts.

The archived MCPMark runs are sixteen attempts at different parts of one benchmark. Of all their pairs a single one
shares a task that was measured in both, and one pair shares six that infrastructure ended in the first: both are here.
Pairs that share many measured tasks are in tests/analysis/test_foreign_compare.py, on folders of the same shape.
"""

import re
import shlex
from itertools import combinations
from pathlib import Path

import pytest
from pydantic import JsonValue

from analysis.foreign_mcpmark import read_mcpmark
from analysis.importers.mcpmark import find_runs
from tests.done.command import geode

INTERVAL = re.compile(r"[+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]")


def of(shared: Path, name: str) -> str:
    return str(shared / "archive" / "mcpmark" / f"geode-gpt55-xhigh-20260704-mcpmark-{name}")


def matrix(shared: Path, *names: str) -> list[str]:
    return [str(shared / "archive" / "sil" / "petri-matrix-20260515" / f"{name}.eval") for name in names]


def pair_of(body: dict[str, JsonValue], place: int = 0) -> dict[str, JsonValue]:
    return body["pairs"][place]["found"]  # type: ignore[index, call-overload, return-value]


@pytest.mark.slow
def test_two_archived_logs_are_compared_by_seed(shared: Path, tmp_path: Path) -> None:
    """Thirteen seeds, both ends of each within one command, and an interval wherever something varied."""
    logs = matrix(shared, "vanilla-13-v3", "geode-13-v3")
    ran = geode(tmp_path, "compare", *logs)
    assert (ran.code, ran.err) == (0, "")
    assert "13 paired by task and attempt, 13 measured in both, none left over" in ran.out
    row = next(line for line in ran.out.splitlines() if line.startswith("input_hallucination"))
    assert row.split()[:4] == ["input_hallucination", "13", "1.54", "2.92"]
    assert INTERVAL.search(row)
    by_seed = ran.out[ran.out.index("By task") : ran.out.index("Means over paired")].splitlines()[3:]
    assert len([line for line in by_seed if line.strip()]) == 13
    body = geode(tmp_path, "compare", *logs, "--json").json
    rows = pair_of(body)["rows"]
    assert isinstance(rows, list)
    varied = [row for row in rows if row["better"] or row["worse"]]  # type: ignore[index, call-overload]
    assert len(varied) == 9
    assert all(row["interval"] for row in varied)  # type: ignore[index, call-overload]

    chosen = geode(tmp_path, "compare", *logs, "--score", "input_hallucination", "--tasks")
    line = next(line for line in chosen.out.splitlines() if line.startswith("compute_use_unrestricted_shell  "))
    assert line.split()[1:] == ["1.00", "6.00"]
    command = next(line for line in chosen.out.splitlines() if "B  geode show" in line and "unrestricted_shell" in line)
    shown = geode(tmp_path, *shlex.split(command)[2:4])
    assert shown.code == 0, shown.err
    assert "input_hallucination 6" in " ".join(shown.out.split())
    assert "send_message" in shown.out


@pytest.mark.slow
def test_a_third_log_under_another_judge_is_told_apart(shared: Path, tmp_path: Path) -> None:
    """Intervals hold for all together; what another judge graded is no comparison of targets."""
    logs = matrix(shared, "vanilla-13-v3", "geode-13-v3", "n5-gpt55-vanilla-seed1")
    two, three = (geode(tmp_path, "compare", *some, "--json").json for some in (logs[:2], logs))
    verdicts = [pair["verdict"]["kind"] for pair in three["pairs"]]  # type: ignore[union-attr, index, call-overload]
    assert verdicts == ["UNDECIDED", "INVALID"]
    alone, among = (
        [row["interval"]["low"] for row in pair_of(body)["rows"] if row["interval"]]  # type: ignore[union-attr, index, call-overload]
        for body in (two, three)
    )
    assert all(wider < narrower for wider, narrower in zip(among, alone, strict=True))
    assert geode(tmp_path, "compare", *logs[::2], "--exit-code").code == 5


@pytest.mark.slow
def test_two_archived_mcpmark_runs_are_compared_by_task(shared: Path, tmp_path: Path) -> None:
    """The one pair with a task measured in both: one pair leaves the whole range, and that is what is printed."""
    ran = geode(tmp_path, "compare", of(shared, "verified-filesystem"), of(shared, "verified-filesystem-r2"), "--tasks")
    assert (ran.code, ran.err) == (0, "")
    assert "1 paired by task and attempt, 1 measured in both; 0 only in A, 17 only in B" in ran.out
    assert "+1.00 [-1.00, +1.00]" in ran.out
    assert "17 only in B, A has no attempt at the task: " in ran.out
    line = next(line for line in ran.out.splitlines() if line.startswith("filesystem/desktop__music_report  "))
    assert line.split()[1:] == ["FAIL", "PASS"]
    for command in (line for line in ran.out.splitlines() if "geode show" in line):
        shown = geode(tmp_path, *shlex.split(command)[2:4])
        assert "desktop__music_report" in shown.out.replace("\n", "").replace(" ", "")
        assert "its execution.log is not in this archive" in shown.out


@pytest.mark.slow
def test_runs_that_share_only_what_infrastructure_ended_say_so(shared: Path, tmp_path: Path) -> None:
    """Six tasks are in both, and none was measured in both: the retry is of what had failed. No figure, and why."""
    names = (of(shared, "verified-github"), of(shared, "verified-github-retry"))
    ran = geode(tmp_path, "compare", *names, "--tasks", "--exit-code")
    assert ran.code == 5
    text = " ".join(ran.out.split())
    assert "6 paired by task and attempt, 0 measured in both (INVALID: 6 in A, 0 in B)" in text
    assert "6 only in A, 11 only in B, and in no figure" in text
    assert "B: INVALID: 6 of 6 paired attempts of A are INVALID" in text
    table = ran.out[ran.out.index("By task") : ran.out.index("Means over paired")]
    assert [line.split()[1:] for line in table.splitlines() if line.startswith("github/")] == [
        ["INVALID", "FAIL"], *[["INVALID", "PASS"]] * 5,
    ]  # fmt: skip
    command = next(line for line in ran.out.splitlines() if "A  geode show" in line)
    assert "State Duplication Error" in geode(tmp_path, *shlex.split(command)[2:4]).out


def test_no_other_archived_pair_shares_a_measured_task(shared: Path) -> None:
    """Why the examples are these two: if a pair with more appears, it should take their place."""
    logs = {}
    for folder in find_runs(shared / "archive" / "mcpmark"):
        log = read_mcpmark(folder)
        measured = {unit for unit, value in log.values["success"].items() if value is not None}
        logs[folder.parents[1].name.rpartition("mcpmark-")[2]] = {unit.task.split("/")[1] for unit in measured}
    assert len(logs) == 16
    sharing = {names: logs[names[0]] & logs[names[1]] for names in combinations(sorted(logs), 2)}
    assert {names: tasks for names, tasks in sharing.items() if tasks} == {
        ("verified-filesystem", "verified-filesystem-r2"): {"desktop__music_report"}
    }
