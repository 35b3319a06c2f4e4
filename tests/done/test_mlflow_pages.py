"""Done line 5: what MLflow's compare page and a trace show, read through MLflow itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.done.command import environment, geode

READ = """
import json, mlflow
client = mlflow.MlflowClient("sqlite:///{database}")
experiment = client.get_experiment_by_name("geode/hook_ablation")
runs = client.search_runs([experiment.experiment_id], "tags.`geode.cell` LIKE '%'")
traces = client.search_traces(locations=[experiment.experiment_id], max_results=100)
print(json.dumps({{
    "cells": {{
        run.info.run_name: {{"metrics": run.data.metrics, "verdict": run.data.tags.get("verdict")}} for run in runs
    }},
    "traces": [[trace.info.tags["geode.variant"], [span.name for span in trace.data.spans]] for trace in traces],
    "runs": sorted(run.info.run_id for run in runs),
    "sources": sorted({{trace.info.request_metadata["mlflow.sourceRun"] for trace in traces}}),
}}))
"""


@pytest.mark.slow
def test_a_stranger_can_say_which_variant_won_and_by_how_much_and_open_an_episode(tmp_path: Path) -> None:
    """Every cell has the same figures under the same names, the verdict beside them, and a trace an episode."""
    ran = geode(
        tmp_path, "sweep", "experiment=hook_ablation", "suite.tasks=[config_port]", "repeats=2", "tracking=mlflow",
        "--root", str(tmp_path),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    database = tmp_path / "mlflow" / "mlflow.db"
    read = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ.format(database=database)],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(tmp_path, {"MLFLOW_DISABLE_TELEMETRY": "true"}),
        cwd=tmp_path,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    page = json.loads(read.stdout)

    cells = page["cells"]
    assert set(cells) == {
        "baseline", "require_test_run", "protect_tests", "stop_repeats", "all_three", "placebo", "harmful",
    }  # fmt: skip
    for name, cell in cells.items():
        assert {"pass_rate", "invalid", "episodes", "diff_vs_baseline", "diff_low", "diff_high"} <= set(cell["metrics"])
        assert cell["verdict"] in ({"baseline"} if name == "baseline" else {"KEEP", "REJECT", "UNDECIDED"})
        of_cell = cell["metrics"]["pass_rate"] - cells["baseline"]["metrics"]["pass_rate"]
        assert cell["metrics"]["diff_vs_baseline"] == pytest.approx(of_cell)
    assert len(page["traces"]) == 7 * 2
    assert page["sources"] == page["runs"]
    assert all(len(spans) > 2 for _, spans in page["traces"])
