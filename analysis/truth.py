"""What the simulated worker really does with a scaffold, from a long run: a known truth to hold verdicts against.

It says nothing about a language model. It holds for one table of faults and for scaffolds and tasks by content hash;
where anything differs there is no truth, and none is guessed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from experiments.records import TaskRef, Variant
from experiments.sinks import Cell
from experiments.suite import OutcomeKind
from geode.llm.simulated import MODEL

TRUTH_SCHEMA = "geode.truth/1"
TRUTH_FILE = "simulator_truth.json"


class TruthRefused(ValueError):  # noqa: N818  (named by what happened)
    """A truth cannot be read, or not be made from these cells."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskTruth(_Part):
    """How often a scaffold passed a task, in how many measured episodes."""

    n: Annotated[int, Field(ge=1)]
    passes: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _passes_are_some_of_n(self) -> Self:
        if self.passes > self.n:
            raise ValueError(f"{self.passes} passes of {self.n} episodes")
        return self

    @property
    def rate(self) -> float:
        """The pass rate."""
        return self.passes / self.n


class ScaffoldTruth(_Part):
    """A scaffold's tasks by their `task_hash`."""

    scaffold_id: str
    tasks: dict[str, TaskTruth]


class TruthTable(_Part):
    """The shipped file. `table_hash` names the table of faults and the policy that it was measured with."""

    schema_: Literal["geode.truth/1"] = Field(default="geode.truth/1", alias="schema")
    table_hash: str
    entries: tuple[ScaffoldTruth, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueDifference:
    """The difference to the baseline as the long run has it, with the standard error of that run; shares."""

    estimate: float
    standard_error: float


def load_truth(table_hash: str, file: Traversable | None = None) -> TruthTable | None:
    """Read the shipped truth; None if there is none for the worker whose table of faults has this hash.

    Raises:
        TruthRefused: if the file cannot be read.
    """
    file = file or files("experiments") / TRUTH_FILE
    if not file.is_file():
        return None
    try:
        table = TruthTable.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors()[0]
        raise TruthRefused(
            f"{file} is no {TRUTH_SCHEMA} ({'.'.join(map(str, problem['loc']))}: {problem['msg']}); make it again with"
            " `geode truth EXPERIMENT -o FILE`, or remove it"
        ) from None
    return table if table.table_hash == table_hash else None


def true_difference(
    table: TruthTable | None, variant: Variant, baseline: Variant, tasks: Sequence[TaskRef]
) -> TrueDifference | None:
    """Return the true mean over tasks of the difference in pass rate; None unless all of it was measured."""
    if table is None or not tasks or any(arm.roles.get("target") != MODEL for arm in (variant, baseline)):
        return None
    entries = {entry.scaffold_id: entry.tasks for entry in table.entries}
    ours, theirs = entries.get(variant.scaffold_id), entries.get(baseline.scaffold_id)
    hashes = [task.task_hash for task in tasks]
    if ours is None or theirs is None or not set(hashes) <= ours.keys() & theirs.keys():
        return None
    return TrueDifference(
        estimate=sum(ours[task].rate - theirs[task].rate for task in hashes) / len(hashes),
        standard_error=math.sqrt(sum(_variance(ours[task]) + _variance(theirs[task]) for task in hashes)) / len(hashes),
    )


def _variance(truth: TaskTruth) -> float:
    return truth.rate * (1 - truth.rate) / truth.n


def distil_truth(cells: Sequence[Cell], table_hash: str) -> TruthTable:
    """Count the passes of every scaffold on every task of a finished, simulated experiment.

    Raises:
        TruthRefused: if a cell was not played by the simulated worker, is unfinished, or has a task never measured.
    """
    entries = {}
    for cell in cells:
        if cell.variant.roles.get("target") != MODEL:
            raise TruthRefused(f"{cell.variant.name!r} runs on {cell.variant.roles.get('target')!r}, not on {MODEL!r}")
        tasks = _counts(cell)
        planned = len(list(cell.experiment.episode_keys(cell.variant)))
        if len(cell.episodes) < planned:
            raise TruthRefused(
                f"{cell.variant.name!r} has {len(cell.episodes)} of {planned} episodes; run its sweep to the end first"
            )
        if unmeasured := [task.task_id for task in cell.experiment.ruler.tasks if task.task_hash not in tasks]:
            raise TruthRefused(f"{cell.variant.name!r} has no measured episode of {', '.join(unmeasured)}")
        entries[cell.variant.scaffold_id] = ScaffoldTruth(scaffold_id=cell.variant.scaffold_id, tasks=dict(tasks))
    return TruthTable(
        schema=TRUTH_SCHEMA, table_hash=table_hash, entries=tuple(entries[name] for name in sorted(entries))
    )


def _counts(cell: Cell) -> Mapping[str, TaskTruth]:
    passed: dict[str, list[bool]] = {}
    for stored in cell.episodes:
        if (kind := stored.record.outcome.kind) is not OutcomeKind.INVALID:
            passed.setdefault(stored.record.task_hash, []).append(kind is OutcomeKind.PASS)
    return {task: TaskTruth(n=len(each), passes=sum(each)) for task, each in sorted(passed.items())}
