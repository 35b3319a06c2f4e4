"""Estimates the apprentice's true pass rates under each scaffold, from thousands of episodes in the toy loop.

    python -m tests.llm.apprentice_montecarlo [--episodes N] [--suite workspace]

With `--suite`, the tasks are those of a real suite: commands run once for each state of the files, in a folder that is
thrown away, and are remembered. It is no test, and is not shipped.
"""

import argparse
import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geode.llm.outline import Outline
from geode.llm.simulated import Apprentice, FaultTable, shipped_table
from tests.doubles.outlines import TASKS, Files, ToyTask
from tests.doubles.toy_loop import TEXTS, Hook, ToyLoop

PLAIN = "You are an agent that works in /workspace with the tools that you have. Do what the user asks, then answer."
PLACEBO = PLAIN + " You are a thoughtful and experienced colleague, and you take pride in good work."
HARMFUL = PLAIN + " Work fast. Do not spend time on running tests; answer as soon as you have made the change."
CAREFUL = PLAIN + " Run the tests before you answer, and read the whole output."


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A scaffold as the apprentice notices it: the system text, and which hooks say something."""

    system: str = PLAIN
    hooks: tuple[Hook, ...] = ()


VARIANTS: Mapping[str, Variant] = {
    "baseline": Variant(),
    "require_test_run": Variant(hooks=(Hook.REQUIRE_TEST_RUN,)),
    "protect_tests": Variant(hooks=(Hook.PROTECT_TESTS,)),
    "stop_repeats": Variant(hooks=(Hook.STOP_REPEATS,)),
    "all_three": Variant(hooks=tuple(Hook)),
    "placebo": Variant(system=PLACEBO),
    "harmful": Variant(system=HARMFUL),
    "careful": Variant(system=CAREFUL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Playable:
    """A task of any source."""

    name: str
    files: Files
    outline: Outline
    run: Callable[[dict[str, str], str], tuple[int, str]]
    right: Callable[[Files], bool]


def toy(task: ToyTask) -> Playable:
    """Make a toy task playable."""

    def run(files: dict[str, str], _: str) -> tuple[int, str]:
        passed, text = task.check(files)
        return (0 if passed else 1), text

    return Playable(name=task.name, files=task.files, outline=task.outline, run=run, right=task.right)


@dataclass(slots=True)
class RealFiles:
    """Runs commands and the verifier on real files, once for each state."""

    verify: Callable[[Path], bool]
    _ran: dict[tuple[tuple[tuple[str, str], ...], str], tuple[int, str, dict[str, str]]] = field(default_factory=dict)
    _verified: dict[tuple[tuple[str, str], ...], bool] = field(default_factory=dict)

    def run(self, files: dict[str, str], command: str) -> tuple[int, str]:
        """Run `command` as the shell tool does; the files change with it."""
        state = (tuple(sorted(files.items())), command)
        if state not in self._ran:
            with tempfile.TemporaryDirectory() as name:
                write_files(Path(name), files)
                done = subprocess.run(command, shell=True, cwd=name, capture_output=True, text=True, check=False)
                self._ran[state] = (min(done.returncode, 1), done.stdout + done.stderr, read_files(Path(name)))
        code, text, after = self._ran[state]
        files.clear()
        files.update(after)
        return code, text

    def right(self, files: Files) -> bool:
        """Ask the task's own verifier."""
        state = tuple(sorted(files.items()))
        if state not in self._verified:
            with tempfile.TemporaryDirectory() as name:
                write_files(Path(name), files)
                self._verified[state] = self.verify(Path(name))
        return self._verified[state]


def read_files(folder: Path) -> dict[str, str]:
    """Return the files of `folder`, bytes that are no text kept; what Python leaves behind is no part of a task."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode(errors="surrogateescape")
        for path in sorted(paths)
    }


def write_files(folder: Path, files: Files) -> None:
    """Lay `files` out in `folder`."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode(errors="surrogateescape"))


def suite_tasks(name: str) -> tuple[Playable, ...]:
    """Return the tasks of a real suite that have an outline."""
    from experiments.suite import OutcomeKind, Task
    from experiments.suites.loader import load_suite

    def playable(task: Task) -> Playable:
        real = RealFiles(lambda folder: task.verify(folder).kind is OutcomeKind.PASS)
        assert task.outline is not None
        files = read_files(task.fixtures)
        return Playable(name=task.task_id, files=files, outline=task.outline, run=real.run, right=real.right)

    return tuple(playable(task) for task in load_suite(name).tasks if task.outline is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What was seen: passes by task, and means over all episodes."""

    episodes: int
    passes: Mapping[str, float]
    rounds: float
    unanswered: float

    @property
    def pass_rate(self) -> float:
        """The mean of the tasks' pass rates."""
        return sum(self.passes.values()) / len(self.passes)


async def estimate(variant: Variant, tasks: tuple[Playable, ...], episodes: int, table: FaultTable) -> Estimate:
    """Play `episodes` of each task. All variants draw the same numbers, which makes their differences precise."""
    passes: dict[str, float] = {}
    rounds = unanswered = 0
    for task in tasks:
        good = 0
        for repetition in range(episodes):
            model = Apprentice(outline=task.outline, key=f"variant/{task.name}/0/{repetition}", table=table)
            loop = ToyLoop(
                files=dict(task.files),
                run=task.run,
                system=variant.system,
                texts={hook: TEXTS[hook] for hook in variant.hooks},
            )
            await loop.play(model)
            good += task.right(loop.files)
            rounds += len(loop.responses)
            unanswered += loop.answer is None
        passes[task.name] = good / episodes
    played = episodes * len(tasks)
    return Estimate(episodes=played, passes=passes, rounds=rounds / played, unanswered=unanswered / played)


def main() -> None:
    """Print a line for each variant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=1000, help="of each task and variant")
    parser.add_argument("--suite", help="a real suite in place of the toy tasks")
    options = parser.parse_args()
    tasks = suite_tasks(options.suite) if options.suite else tuple(map(toy, TASKS))
    base: float | None = None
    for name, variant in VARIANTS.items():
        seen = asyncio.run(estimate(variant, tasks, options.episodes, shipped_table()))
        base = seen.pass_rate if base is None else base
        each = " ".join(f"{task}={rate:.2f}" for task, rate in seen.passes.items())
        print(
            f"{name:17} pass {seen.pass_rate:.3f} ({seen.pass_rate - base:+.3f})  rounds {seen.rounds:4.1f}"
            f"  unanswered {seen.unanswered:.3f}  {each}"
        )


if __name__ == "__main__":
    main()
