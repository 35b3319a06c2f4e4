"""The truth beside the demo's verdicts is that of this version's simulated worker, tasks and scaffolds."""

import pytest

from analysis.truth import load_truth
from experiments.spec import compose_spec
from experiments.suites.chosen import select_tasks
from experiments.suites.loader import load_suite
from geode.llm.simulated import fault_table_hash


@pytest.mark.slow
def test_the_shipped_truth_covers_every_variant_and_task_of_the_demo() -> None:
    """Whoever changes a task, a prompt or the table of faults measures again, with `make truth`."""
    truth = load_truth(fault_table_hash())
    assert truth is not None, "the table of faults changed: make truth"
    preset = compose_spec(["experiment=hook_ablation"])
    suite = select_tasks(load_suite(preset.suite.name), preset.suite.tasks)
    measured = {entry.scaffold_id: entry.tasks for entry in truth.entries}
    for name, overrides in preset.variants.items():
        scaffold = compose_spec(["experiment=hook_ablation", *overrides]).scaffold
        assert scaffold.scaffold_id in measured, f"{name} changed: make truth"
        assert {task.task_hash for task in suite.tasks} <= measured[scaffold.scaffold_id].keys(), "make truth"
        assert min(task.n for task in measured[scaffold.scaffold_id].values()) >= 400
