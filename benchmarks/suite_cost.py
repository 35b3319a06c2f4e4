"""What an episode of the suite `workspace` costs outside the loop: the workspace, the tools' own work, the verifier.

Each outline is carried out by the real tool handlers; figures are CPU time of this process and its children. What the
model and the loop do around a call is left out. A whole episode may take 40 ms in the median over the tasks.

    python benchmarks/suite_cost.py [--repeats 20]
"""

import argparse
import asyncio
import resource
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from experiments.suite import OutcomeKind, Task
from experiments.suites.loader import copy_fixtures, load_suite
from geode.tools.catalogue import workspace_tools
from geode.tools.workspace import Workspace

BUDGET_MS = 40.0
LOAD_LIMIT_MS = 80.0


def cpu_ms() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (time.process_time() + children.ru_utime + children.ru_stime)


async def cost_of(task: Task, workspace: Path, spent: dict[str, list[float]]) -> None:
    """Do the task right once, and add what each part took to `spent`."""
    assert task.outline is not None
    before = cpu_ms()
    copy_fixtures(task, workspace)
    spent["copy"].append(cpu_ms() - before)
    tools = workspace_tools(Workspace(workspace))
    other = check = 0.0
    for step in task.outline.steps:
        before = cpu_ms()
        await tools[step.call.tool].handler(step.call.arguments)
        if step.kind == "check":
            check += cpu_ms() - before
        else:
            other += cpu_ms() - before
    spent["other tools"].append(other)
    spent["check"].append(check)
    before = cpu_ms()
    outcome = task.verify(workspace)
    spent["verifier"].append(cpu_ms() - before)
    assert outcome.kind is OutcomeKind.PASS, outcome
    shutil.rmtree(workspace)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    load_suite("workspace")
    loads_ms = []
    for _ in range(5):
        before = cpu_ms()
        suite = load_suite("workspace")
        loads_ms.append(cpu_ms() - before)
    print(f"load_suite: {statistics.median(loads_ms):.1f} ms of CPU (limit {LOAD_LIMIT_MS:g})")
    columns = ("copy", "other tools", "check", "verifier")
    print(f"{'CPU ms, median':16}" + "".join(f"{column:>12}" for column in (*columns, "sum")))
    sums = []
    with tempfile.TemporaryDirectory() as folder:
        for task in suite.tasks:
            spent: dict[str, list[float]] = defaultdict(list)
            for _ in range(repeats):
                asyncio.run(cost_of(task, Path(folder, "w"), spent))
            medians = [statistics.median(spent[column]) for column in columns]
            sums.append(sum(medians))
            print(f"{task.task_id:16}" + "".join(f"{value:12.1f}" for value in (*medians, sums[-1])))
    median = statistics.median(sums)
    print(f"median over the tasks: {median:.1f} ms, {median / BUDGET_MS:.2f} of the {BUDGET_MS:g} ms of an episode")


if __name__ == "__main__":
    main()
