"""The suite of one command: its tasks that were chosen, in the environments that they run in."""

from collections.abc import Collection, Sequence

from experiments.overrides import nearest
from experiments.run_spec import SuiteChoice
from experiments.suite import Suite
from experiments.suites.loader import SuiteError, load_suite
from experiments.suites.sandboxed import in_sandbox


def chosen_suite(choice: SuiteChoice, targets: Collection[str]) -> Suite:
    """Load what `choice` names, for episodes whose targets are these models.

    Every process that runs episodes of a command loads the same.

    Raises:
        SuiteError: if it cannot be used.
    """
    return in_sandbox(select_tasks(load_suite(choice.name), choice.tasks), choice.sandbox, targets)


def select_tasks(suite: Suite, wanted: Sequence[str] | None) -> Suite:
    """Return the suite with only the tasks that are wanted, in the suite's own order.

    Raises:
        SuiteError: if one of them is none of its tasks.
    """
    if wanted is None:
        return suite
    known = [task.task_id for task in suite.tasks]
    for name in wanted:
        if name not in known:
            raise SuiteError(f"suite.tasks: there is no task {name!r} in {suite.name!r}{nearest(name, known)}")
    return Suite(name=suite.name, tasks=tuple(task for task in suite.tasks if task.task_id in set(wanted)))
