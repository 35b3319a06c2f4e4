"""The simulated worker is helped only by the words that a hook sends it: a hook without a body helps nobody."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from experiments.suite import OutcomeKind, Task
from experiments.suites.loader import copy_fixtures, load_suite
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.policy import Mode
from geode.hooks.library import ABLATED, HookFactory
from geode.hooks.points import Decision, DecisionHook, HookEvent, HookPoint, Pass
from geode.llm.messages import Message
from geode.scaffold import HookChoice, Scaffold, ToolChoice, ToolPlan
from geode.serve.services import SharedServices

TASKS = ("config_port", "csv_totals", "csv_outliers")
REPEATS = 24
HOOKS = tuple(ABLATED)


class NoBody:
    """A hook of the same name at the same points, which never has an opinion."""

    points = frozenset(HookPoint)
    time_limit_s = 1.0

    def __init__(self, name: str) -> None:
        self.name = name

    async def decide(self, event: HookEvent) -> Decision:
        del event
        return Pass()

    def snapshot(self) -> JsonValue:
        return None

    def restore(self, memory: JsonValue) -> None:
        del memory


def without_bodies() -> Mapping[str, HookFactory]:
    def factory(name: str) -> HookFactory:
        def build(options: dict[str, JsonValue]) -> DecisionHook:
            del options
            return NoBody(name)

        return build

    return {name: factory(name) for name in HOOKS}


class Lab:
    """Runs episodes through the real loop. The worker's randomness is the same for every scaffold, so that two runs
    differ only in what the worker was told."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        suite = load_suite("workspace")
        self.tasks = tuple(task for task in suite.tasks if task.task_id in TASKS)

    async def episode(
        self, task: Task, hooks: tuple[str, ...], library: Mapping[str, HookFactory], repetition: int
    ) -> tuple[bool, tuple[Message, ...]]:
        self._count += 1
        folder = self._folder / str(self._count)
        copy_fixtures(task, folder / "workspace")
        settings = Settings(root=StateRoot(folder), tracking_uri=None, environment={})
        session = SharedServices(settings, ManualClock(), library).create_session(
            mode=Mode.EXPERIMENT,
            scaffold=Scaffold(
                hooks=tuple(HookChoice(name=name) for name in hooks),
                tools=ToolPlan(
                    tools=tuple(
                        ToolChoice(name=name)
                        for name in ("list_files", "read_file", "write_file", "edit_file", "search", "shell")
                    )
                ),
            ),
            model="simulated/apprentice",
            workspace=folder / "workspace",
            folder=folder / "session",
            outline=task.outline,
            simulation_key=f"same/{task.task_id}/0/{repetition}",
        )
        await session.arun(task.prompt)
        messages = tuple(session.loop.messages)
        session.close()
        return task.verify(folder / "workspace").kind is OutcomeKind.PASS, messages

    async def passes(self, *hooks: str) -> int:
        """How many episodes pass with the real hooks."""
        results = [
            await self.episode(task, hooks, ABLATED, repetition) for task in self.tasks for repetition in range(REPEATS)
        ]
        return sum(passed for passed, _ in results)


@pytest.mark.slow
async def test_each_hook_helps_and_helps_by_its_body_alone(tmp_path: Path) -> None:
    """With the body gone the worker does, word for word, what it does without the hook."""
    lab = Lab(tmp_path)
    plain = await lab.passes()
    helped = {name: await lab.passes(name) for name in HOOKS}
    assert all(passes > plain for passes in helped.values()), (plain, helped)
    assert await lab.passes(*HOOKS) > max(helped.values())


@pytest.mark.slow
async def test_a_hook_without_a_body_changes_no_word(tmp_path: Path) -> None:
    """The worker cannot see which hooks there are, so an empty one must have an effect of exactly zero."""
    lab = Lab(tmp_path)
    for task in lab.tasks:
        for repetition in range(4):
            bare = await lab.episode(task, (), ABLATED, repetition)
            for name in HOOKS:
                assert await lab.episode(task, (name,), without_bodies(), repetition) == bare
