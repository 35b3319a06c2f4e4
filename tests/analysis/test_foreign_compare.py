"""Logs are compared by what they share; what they do not share is counted, and no log is kept or rejected."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from analysis.foreign import LogsRefused, Unit
from analysis.foreign_compare import (
    LOGS_MAX,
    LogComparison,
    LogReasonCode,
    compare_runs,
    log_comparison_to_json,
    logs_exit_code,
)
from analysis.foreign_logs import read_log
from experiments.gate import VerdictKind
from tests.doubles.evals import ROLES, judged, sample, write_eval
from tests.doubles.foreign_logs import START, make_log, write_mcpmark


def compared(*paths: Path) -> LogComparison:
    return compare_runs([read_log(path) for path in paths])


def test_mcpmark_runs_are_paired_by_task_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Passes over different tasks are no difference; an attempt that infrastructure ended is no failure."""
    found = compared(
        write_mcpmark(tmp_path / "a", "FFPPIFF", skip="6"), write_mcpmark(tmp_path / "b", "PPPFPFP", skip="5")
    )
    pair = found.pairs[0].found
    (row,) = pair.rows
    assert (pair.paired, pair.measured, pair.invalid_first, pair.invalid_second) == (5, 4, 1, 0)
    assert pair.only_first == (Unit("files/attic__task_5", "run-1"),)
    assert pair.only_second == (Unit("files/attic__task_6", "run-1"),)
    assert (row.pairs, row.unscored_first, row.unscored_second) == (4, 0, 0)
    assert (row.first, row.second, row.difference) == (0.5, 0.75, 0.25)
    assert row.interval is not None
    assert row.mcnemar is not None
    assert (row.mcnemar.both, row.mcnemar.only_first, row.mcnemar.only_second, row.mcnemar.neither) == (1, 1, 2, 0)
    assert [task.task for task in row.better] == ["files/attic__task_0", "files/attic__task_1"]
    assert "A: 1 of 6 attempts are INVALID: infrastructure ended them" in found.warnings
    assert "the task sets differ: 1 tasks only in A, 1 only in B" in found.warnings


def test_eval_logs_are_paired_by_sample_and_epoch_on_every_score(tmp_path: Path) -> None:
    """Grades keep their scale; NaN is no grade."""
    grades = [(1, 5), (2, 9), (1, 1), (3, float("nan"))]
    first = [sample(f"s{n}", judged({"calm": a, "odd": 1})) for n, (a, _) in enumerate(grades)]
    second = [
        {**sample(f"s{n}", judged({"calm": b, "new": 1})), "uuid": f"other-{n}"} for n, (_, b) in enumerate(grades)
    ]
    second.append(sample("s0", judged({"calm": 7, "new": 1}), epoch=2))
    pair = compared(write_eval(tmp_path / "a.eval", first), write_eval(tmp_path / "b.eval", second)).pairs[0].found
    (row,) = pair.rows
    assert (row.score, row.pairs, row.unscored_second) == ("calm", 3, 1)
    assert row.difference == pytest.approx(11 / 3)
    assert row.interval is not None
    assert row.interval.high > 1
    assert row.mcnemar is None
    assert pair.only_second == (Unit("s0", "epoch 2"),)
    assert (pair.scores_only_first, pair.scores_only_second) == (("odd",), ("new",))


def test_each_log_more_makes_every_interval_wider() -> None:
    """Looking at many candidates is paid for; their own intervals would promote one of them too often."""
    values = [{f"t{n}": [value] for n, value in enumerate(row)} for row in ((1, 2, 4, 3), (2, 4, 5, 6), (3, 2, 1, 4))]
    first, second, third = (make_log(name, {"calm": row}) for name, row in zip("abc", values, strict=True))
    widths = []
    for runs in ((first, second), (first, second, third), (first, third, second, make_log("d", {"calm": values[0]}))):
        pair = next(p for p in compare_runs(runs).pairs if p.found.rows[0].difference == pytest.approx(1.75))
        interval = pair.found.rows[0].interval
        assert interval is not None
        widths.append(interval.high - interval.low)
    assert widths == sorted(set(widths))
    assert [pair.letter for pair in compare_runs((first, second, third)).pairs] == ["B", "C"]


def test_a_log_that_shares_less_with_the_first_takes_nothing_from_the_others() -> None:
    """Each log is paired with the first on its own: what the third lacks stays in the figures of the second."""
    first, second = ({f"t{n}": [n + add] for n in range(6)} for add in (0, 1))
    found = compare_runs(
        [make_log("a", {"calm": first}), make_log("b", {"calm": second}), make_log("c", {"calm": {"t0": [5]}})]
    )
    assert [pair.found.paired for pair in found.pairs] == [6, 1]
    assert [pair.found.rows[0].difference for pair in found.pairs] == [1, 5]


def test_another_ruler_is_told_and_makes_the_comparison_invalid(tmp_path: Path) -> None:
    """Half the time allowed, or another judge, is another measurement. The target is compared, and may differ."""
    found = compared(write_mcpmark(tmp_path / "a", "FP"), write_mcpmark(tmp_path / "b", "PP", timeout=300))
    (difference,) = found.ruler_differences
    assert (difference.name, difference.strict, difference.values) == ("timeout", True, ("600 s", "300 s"))
    verdict = found.pairs[0].verdict
    assert (verdict.kind, [reason.code for reason in verdict.reasons]) == (
        VerdictKind.INVALID, [LogReasonCode.RULERS_DIFFER],
    )  # fmt: skip
    assert "another ruler than A, in timeout" in verdict.reasons[0].text

    body = [sample("s1", judged({"calm": 1})), sample("s2", judged({"calm": 2}))]
    other = {**ROLES, "judge": "acme/other-judge", "target": "acme/worker-2"}
    renamed = [{**one, "uuid": f"other-{n}"} for n, one in enumerate(body)]
    found = compared(
        write_eval(tmp_path / "a.eval", body), write_eval(tmp_path / "c.eval", renamed, roles=other, status=None)
    )
    assert [(d.name, d.values) for d in found.ruler_differences] == [("judge", (ROLES["judge"], "acme/other-judge"))]
    assert any(warning.startswith("B: the log's status is 'started'") for warning in found.warnings)
    assert found.logs[1].subject == "acme/worker-2"


def test_only_the_log_with_another_ruler_is_invalid() -> None:
    """The others are still measured alike."""
    values = {"t0": [1], "t1": [2]}
    logs = [make_log(name, {"calm": values}) for name in "ab"]
    logs.append(make_log("c", {"calm": values}, ruler={"judge": "acme/another"}))
    assert [pair.verdict.kind for pair in compare_runs(logs).pairs] == [VerdictKind.UNDECIDED, VerdictKind.INVALID]


def test_logs_that_were_not_interleaved_are_never_kept_or_rejected(tmp_path: Path) -> None:
    """A frozen baseline from last week is not a pair, however clear the difference. The exit code promotes nothing."""
    found = compared(write_mcpmark(tmp_path / "a", "F" * 12), write_mcpmark(tmp_path / "b", "P" * 12))
    (pair,) = found.pairs
    assert pair.found.rows[0].interval is not None
    assert pair.found.rows[0].interval.side == 1
    assert (pair.verdict.kind, [r.code for r in pair.verdict.reasons]) == (
        VerdictKind.UNDECIDED, [LogReasonCode.NOT_INTERLEAVED],
    )  # fmt: skip
    assert logs_exit_code(found) == 4
    lost = compared(write_mcpmark(tmp_path / "c", "I" * 12), write_mcpmark(tmp_path / "d", "P" * 12))
    assert [reason.code for reason in lost.pairs[0].verdict.reasons] == [
        LogReasonCode.NOTHING_MEASURED, LogReasonCode.INVALID_SHARE,
    ]  # fmt: skip
    assert logs_exit_code(lost) == 5
    several = compared(*(tmp_path / name for name in "abd"))
    with pytest.raises(LogsRefused, match="there are 2"):
        logs_exit_code(several)


def test_means_of_cost_and_time_are_of_what_was_paired_and_told(tmp_path: Path) -> None:
    """An aborted attempt took time and told no tokens: leaving it out of the tokens is no zero in them."""
    found = compared(write_mcpmark(tmp_path / "a", "PIP", skip="2"), write_mcpmark(tmp_path / "b", "PPP"))
    first, second = (log.spend for log in found.logs)
    assert (first.attempts, first.tokens, first.cost_usd, first.wall_s) == (2, 1_000, 0.25, 50)
    assert (second.attempts, second.turns, second.tool_calls, second.tool_errors) == (2, 3, 2, 1)
    assert (second.repairs, second.other_tokens) == (None, None)
    assert (found.logs[0].invalid, found.logs[1].attempts) == (1, 3)


def test_what_cannot_be_paired_is_refused_with_what_is_there(tmp_path: Path) -> None:
    """An empty table would read as `no difference`."""
    a, b = write_mcpmark(tmp_path / "a", "FP", skip="1"), write_mcpmark(tmp_path / "b", "PP", skip="0")
    log = write_eval(tmp_path / "c.eval", [sample("s1", judged({"calm": 1}))])
    with pytest.raises(LogsRefused, match=r"no task is in both: .*attic__task_0.*attic__task_1"):
        compared(a, b)
    with pytest.raises(LogsRefused, match=r"of mcpmark, .* of inspect"):
        compared(a, log)
    with pytest.raises(LogsRefused, match=r"no score is in both: .* has calm, .* has odd"):
        compared(log, write_eval(tmp_path / "d.eval", [sample("s1", judged({"odd": 1}))]))
    with pytest.raises(LogsRefused, match=r"no score is in both: .* has calm, .* has no score"):
        compared(log, write_eval(tmp_path / "e.eval", [sample("s1")]))
    with pytest.raises(LogsRefused, match=r"no task is in both: .* has 's1', .*f\.eval has no attempt"):
        compared(log, write_eval(tmp_path / "f.eval", status=None))
    copy = tmp_path / "copy.eval"
    copy.write_bytes(log.read_bytes())
    with pytest.raises(LogsRefused, match="the very same attempts"):
        compared(log, copy)


def test_too_few_and_too_many_logs_are_refused() -> None:
    """A letter names each log."""
    log = make_log("a", {"calm": {"t0": [1]}})
    for count in (1, LOGS_MAX + 1):
        with pytest.raises(LogsRefused, match=f"not {count}"):
            compare_runs([log] * count)


def test_shared_attempts_and_a_drift_are_told() -> None:
    """Both make a difference mean something else."""
    values = {task: [0] * 6 + [1] * 6 for task in "xyz"}
    first = make_log("a", {"calm": values})
    second = make_log("a", {"calm": {**values, "w": [0] * 12}}, start=START + timedelta(days=1))
    found = compare_runs([first, second])
    assert any("B: 36 of its 48 attempts are the very ones of A" in warning for warning in found.warnings)
    assert [warning for warning in found.warnings if warning.startswith("drift: calm stepped")]
    assert found.drifted


def test_everything_is_json_and_leads_to_each_attempt(tmp_path: Path) -> None:
    """Every figure can be traced by a program, too; what could not be paired as well."""
    found = compared(write_mcpmark(tmp_path / "a", "FI"), write_mcpmark(tmp_path / "b", "PPP"))
    body = json.loads(json.dumps(log_comparison_to_json(found), allow_nan=False))
    assert body["schema"] == "geode.comparison_of_logs/2"
    assert [log["letter"] for log in body["logs"]] == ["A", "B"]
    assert body["pairs"][0]["verdict"]["kind"] == "INVALID"
    last = body["tasks"][2]
    assert (last["task"], last["logs"][0]) == ("files/attic__task_2", [])
    (attempt,) = last["logs"][1]
    assert (attempt["paired"], attempt["invalid"], attempt["values"]) == (False, None, {"success": 1.0})
    assert Path(attempt["shown_as"], "meta.json").is_file()
    assert body["tasks"][1]["logs"][0][0]["invalid"] == "no network"
