"""The sandbox of tasks that declare no environment of their own: whose they are put into, and that they say so."""

from collections.abc import Collection
from dataclasses import replace

from experiments.suite import Suite, Task
from experiments.suites.loader import SuiteError
from experiments.suites.verify_command import CommandVerifier
from geode.canonical import content_hash
from geode.llm.routes import Route, parse_model
from geode.tools.sandbox import FORM, SandboxUse, bubblewrap, why_no_sandbox


def in_sandbox(suite: Suite, use: SandboxUse, targets: Collection[str]) -> Suite:
    """Return the suite with the tasks that declare no environment in the sandbox, if `use` asks for it.

    `auto` asks for it where a target is a language model, which does what anybody's text tells it to, and not where all
    are simulated: these do what their outline says, and the sandbox would double what an episode costs. A task in it is
    another task, since what happens there may differ; so this never depends on what a machine happens to have.

    Raises:
        SuiteError: if it is asked for and does not work here.
    """
    simulated = all(parse_model(model).route is Route.SIMULATED for model in targets)
    undeclared = [task for task in suite.tasks if task.environment.definition is None]
    if use is SandboxUse.OFF or (use is SandboxUse.AUTO and simulated) or not undeclared:
        return suite
    if why := why_no_sandbox():
        raise SuiteError(
            f"suite.sandbox: {why}. With suite.sandbox=off, what {', '.join(sorted(set(targets)))} executes can reach"
            " all that you can"
        )
    return replace(suite, tasks=tuple(_sandboxed(task) if task in undeclared else task for task in suite.tasks))


def _sandboxed(task: Task) -> Task:
    verify = task.verify
    if isinstance(verify, CommandVerifier):
        verify = replace(verify, environment=bubblewrap(network=False, task=True))
    return replace(
        task,
        environment=bubblewrap(network=False),
        environment_file="suite.sandbox",
        verify=verify,
        task_hash=content_hash({"task": task.task_hash, "sandbox": FORM}),
    )
