"""The sandbox commands that a suite declares, and whether they work here."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.suite import Task
from geode.tools.environment import LOCAL, CommandEnvironment, Environment


class DeclaredEnvironment(CommandEnvironment):
    """`environment` in `suite.yaml`, for all tasks, or in `task.yaml`, in its place.

    A task's tools execute in it, and so does its `verify_command`, unless `verify` is false. `verify.py` never does.
    """

    verify: bool = True

    def for_tools(self) -> CommandEnvironment:
        """Return what a session is given."""
        return CommandEnvironment.model_validate(self.model_dump(exclude={"verify"}))

    def for_command(self, command: str) -> Environment:
        """Return where `command` verifies.

        Raises:
            ValueError: if it reads its task there, and is not given it.
        """
        if not self.verify:
            return LOCAL
        if "TASK" in command and not self.names("task") and self.task != "{task}":
            raise ValueError(
                "verify_command reads $TASK, but 'environment.command' does not bind '{task}'; bind it to"
                f" {self.task}, or set 'environment.verify: false' to verify outside"
            )
        return self.for_tools()


def broken_environments(tasks: Iterable[Task], near: Path | None = None) -> Mapping[str, str]:
    """Return what is wrong with the environments of `tasks`, by the file that declares each; tried below `near`.

    An environment that does not work would make every episode INVALID.
    """
    if near is not None:
        near.mkdir(parents=True, exist_ok=True, mode=0o700)
    return asyncio.run(_broken(tasks, near))


async def _broken(tasks: Iterable[Task], near: Path | None) -> Mapping[str, str]:
    declared = {task.environment_file: task.environment.definition for task in tasks}
    broken = {}
    for place, environment in declared.items():
        if environment is not None and (problem := await environment.problem(near)):
            broken[place] = f"{place}: 'environment.command': {problem}"
    return broken
