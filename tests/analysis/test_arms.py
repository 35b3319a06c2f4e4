"""Two experiments are compared like two logs: by what both measured, with what differs between them said."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from analysis.arms import Arm, parse_arm, read_arms
from analysis.cli_look import register
from analysis.foreign import LogsRefused
from analysis.foreign_compare import LogComparison, compare_runs
from experiments.gate import VerdictKind
from experiments.records import Caps, ExperimentRecord
from geode.config.paths import StateRoot
from tests.doubles.cells import make_cells, make_experiment, store_cells

MARCH = {"baseline": {"a": "FFPFF", "b": "PPPPP", "c": "PPPPP"}, "hook": {"a": "FFPFF", "b": "FPPPP", "c": "PPPPP"}}
MAY = {"second": {"a": "PPPPI", "b": "PPPPP", "d": "PPPPP"}, "third": {"a": "PFPFP", "b": "PPPPP", "d": "PPPPP"}}


def renamed(experiment: ExperimentRecord, **ruler: object) -> ExperimentRecord:
    return experiment.model_copy(update={"name": "may", "ruler": experiment.ruler.model_copy(update=ruler)})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store_cells(StateRoot(tmp_path), make_cells(MARCH, make_experiment(MARCH, name="march")))
    store_cells(StateRoot(tmp_path), make_cells(MAY, renamed(make_experiment(MAY), caps=Caps(rounds=30))))
    return tmp_path


def compared(root: Path, *names: str) -> LogComparison:
    return compare_runs(read_arms(StateRoot(root), [parse_arm(name) for name in names]))


def geode(root: Path, *arguments: str) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    register(app)
    return CliRunner().invoke(app, [*arguments, "--root", str(root)])


def test_episodes_are_paired_by_task_seed_and_repetition(root: Path) -> None:
    """`c` and `d` are in one experiment only; the INVALID episode takes its pair out."""
    found = compared(root, "march", "may")
    pair = found.pairs[0].found
    (row,) = pair.rows
    assert [log.name for log in found.logs] == ["march:baseline", "may:second"]
    assert (pair.paired, len(pair.only_first), len(pair.only_second)) == (10, 5, 5)
    assert (row.pairs, row.unscored_second, pair.invalid_second) == (9, 0, 1)
    assert row.difference == pytest.approx((3 / 4 + 0) / 2)
    assert row.interval is not None


def test_what_an_episode_took_is_compared(root: Path) -> None:
    """Cost, tokens, rounds and repairs are on record for every episode of ours."""
    spend = compared(root, "march", "may").logs[0].spend
    assert (spend.attempts, spend.tokens, spend.cost_usd, spend.turns) == (10, 1_000, 0.0125, 6)
    assert (spend.repairs, spend.tool_calls, spend.other_tokens) == (2, 5, None)


def test_other_caps_and_a_simulated_worker_are_said(root: Path) -> None:
    """Half the rounds are another ruler, and a difference across rulers is of the rulers too."""
    found = compared(root, "march:hook", "may:third")
    assert [difference.name for difference in found.ruler_differences] == ["caps"]
    assert found.pairs[0].verdict.kind is VerdictKind.INVALID
    assert any("says nothing about a language model" in warning for warning in found.warnings)


def test_several_experiments_are_each_compared_with_the_first(root: Path) -> None:
    """The first is the baseline; the intervals hold for all of them."""
    store_cells(StateRoot(root), make_cells(MARCH, make_experiment(MARCH, name="june")))
    found = compared(root, "march", "may", "june:hook")
    assert [log.name for log in found.logs] == ["march:baseline", "may:second", "june:hook"]
    assert [pair.found.paired for pair in found.pairs] == [10, 15]
    alone = compared(root, "march", "june:hook").pairs[0].found.rows[0].interval
    among = found.pairs[1].found.rows[0].interval
    assert alone is not None
    assert among is not None
    assert among.low < alone.low


def test_a_task_that_changed_is_another_task(tmp_path: Path) -> None:
    """One name for two fixtures would compare the fixtures."""
    march, may = make_experiment(MARCH, name="march"), make_experiment(MARCH)
    tasks = (may.ruler.tasks[0].model_copy(update={"task_hash": "f" * 64}), *may.ruler.tasks[1:])
    store_cells(StateRoot(tmp_path), make_cells(MARCH, march))
    store_cells(StateRoot(tmp_path), make_cells(MARCH, renamed(may, tasks=tasks)))
    found = compared(tmp_path, "march", "may:hook")
    assert found.pairs[0].found.paired == 10
    assert {unit.task for unit in found.pairs[0].found.only_second} == {"a@ffffffff"}


def test_episodes_that_both_share_are_said(tmp_path: Path) -> None:
    """An experiment reuses what is on record: compared with itself it shows no difference, and no evidence for that."""
    for name in ("march", "may"):
        store_cells(StateRoot(tmp_path), make_cells(MARCH, make_experiment(MARCH, name=name)))
    assert any("15 of its 15 attempts are the very ones of A" in w for w in compared(tmp_path, "march", "may").warnings)


def test_what_is_not_there_and_what_ran_side_by_side_is_refused(root: Path) -> None:
    """Within one experiment the paired rule with its verdict is there, and is what should be read."""
    with pytest.raises(LogsRefused, match="did you mean 'hook'"):
        read_arms(StateRoot(root), [Arm(experiment="march", variant="hok"), Arm(experiment="may", variant=None)])
    with pytest.raises(LogsRefused, match="geode compare march hook --baseline baseline"):
        compared(root, "march", "march:hook")


def test_the_command_tells_a_second_experiment_from_a_variant(root: Path) -> None:
    """A variant's name after an experiment keeps its meaning."""
    assert "march:baseline" in geode(root, "compare", "march", "may").stdout
    assert "may:third" in geode(root, "compare", "march:hook", "may:third").stdout
    assert "KEEP" not in geode(root, "compare", "march", "may").stdout
    assert "paired_fixed" in geode(root, "compare", "march", "hook").stdout
    assert "march:baseline" in geode(root, "compare", "march", "may", "may:third").stdout
    assert "did you mean" in geode(root, "compare", "march:hook", "mai").stderr
