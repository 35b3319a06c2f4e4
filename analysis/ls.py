"""What is on record: experiments, the cells of one, the episodes of a cell or a task."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.terminal import printable
from experiments.overrides import nearest
from experiments.records import ExperimentRecord
from experiments.store import EPISODE_FILE, RecordDamaged, list_experiments, look_at, read_experiment
from experiments.suite import OutcomeKind
from geode.config.paths import StateRoot

LIST_SCHEMA = "geode.list/1"
KEY_DIGITS = 12


class UnknownVariant(LookupError):  # noqa: N818  (named by what is wrong)
    """The experiment has no variant, or no task, of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentLine:
    """One experiment. One that cannot be read has a `problem`, and counts nothing."""

    name: str
    question: str = ""
    variants: tuple[str, ...] = ()
    finished: int = 0
    planned: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLine:
    """One variant. `damaged` episodes have a record that cannot be read."""

    variant: str
    scaffold_id: str
    overrides: tuple[str, ...]
    is_baseline: bool
    planned: int
    passes: int
    fails: int
    invalid: int
    damaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLine:
    """One planned episode. `state` is its outcome, or new, unfinished or damaged."""

    episode_key: str
    variant: str
    task_id: str
    seed: int
    repetition: int
    state: str
    verified: bool | None = None
    rounds: int | None = None
    cost_usd: float | None = None
    reasons: tuple[str, ...] = ()


Line = ExperimentLine | CellLine | EpisodeLine


def list_what(
    root: StateRoot, experiment: str | None = None, variant: str | None = None, task: str | None = None
) -> Sequence[Line]:
    """List the experiments, the cells of one, or its episodes: those of a variant, of a task, or of both.

    Raises:
        experiments.store.StoreError: if the experiment is unknown or damaged.
        UnknownVariant: if it has no such variant or task.
    """
    if experiment is None:
        return experiment_lines(root)
    record = read_experiment(root, experiment)
    if variant is None and task is None:
        return cell_lines(root, record)
    tasks = [known.task_id for known in record.ruler.tasks]
    if task is not None and task not in tasks:
        raise UnknownVariant(f"no task {task!r} in experiment {experiment!r}{nearest(task, tasks)}")
    names = [known.name for known in record.variants] if variant is None else [variant]
    lines = [line for name in names for line in episode_lines(root, record, name)]
    return [line for line in lines if task is None or line.task_id == task]


def experiment_lines(root: StateRoot) -> list[ExperimentLine]:
    """List the experiments under `root`; one that is damaged does not hide the others."""
    return [_experiment_line(root, name) for name in list_experiments(root)]


def _experiment_line(root: StateRoot, name: str) -> ExperimentLine:
    try:
        experiment = read_experiment(root, name)
    except RecordDamaged as damage:
        return ExperimentLine(name=name, problem=str(damage))
    # A set: variants of one scaffold share their episodes.
    keys = {key for variant in experiment.variants for *_, key in experiment.episode_keys(variant)}
    return ExperimentLine(
        name=name,
        question=experiment.question,
        variants=tuple(variant.name for variant in experiment.variants),
        finished=sum((root.episode(key) / EPISODE_FILE).exists() for key in keys),
        planned=len(keys),
    )


def cell_lines(root: StateRoot, experiment: ExperimentRecord) -> list[CellLine]:
    """List the variants of an experiment with what became of their episodes."""
    lines = []
    for variant in experiment.variants:
        states = [line.state for line in episode_lines(root, experiment, variant.name)]
        lines.append(
            CellLine(
                variant=variant.name,
                scaffold_id=variant.scaffold_id,
                overrides=variant.overrides,
                is_baseline=variant.name == experiment.baseline,
                planned=len(states),
                passes=states.count(OutcomeKind.PASS),
                fails=states.count(OutcomeKind.FAIL),
                invalid=states.count(OutcomeKind.INVALID),
                damaged=states.count("damaged"),
            )
        )
    return lines


def episode_lines(root: StateRoot, experiment: ExperimentRecord, variant: str) -> list[EpisodeLine]:
    """List the planned episodes of a variant, finished or not.

    Raises:
        UnknownVariant: if there is none of this name, with the nearest one that is.
    """
    names = [known.name for known in experiment.variants]
    if variant not in names:
        raise UnknownVariant(f"no variant {variant!r} in experiment {experiment.name!r}{nearest(variant, names)}")
    lines = []
    for task, seed, repetition, key in experiment.episode_keys(experiment.variant(variant)):
        state = look_at(root.episode(key))
        record = state.record
        lines.append(
            EpisodeLine(
                episode_key=key,
                variant=variant,
                task_id=task.task_id,
                seed=seed,
                repetition=repetition,
                state=record.outcome.kind.value if record else state.kind,
                verified=record.verified if record else None,
                rounds=record.rounds if record else None,
                cost_usd=record.known_cost_usd if record else None,
                reasons=record.outcome.reasons if record else (state.problem,) if state.problem else (),
            )
        )
    return lines


def lines_to_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the lines as JSON values."""
    return {"schema": LIST_SCHEMA, "items": [asdict(line) for line in lines]}


def is_damaged(line: Line) -> bool:
    """Say whether the line is of a record that cannot be read, or counts one."""
    match line:
        case ExperimentLine():
            return bool(line.problem)
        case CellLine():
            return line.damaged > 0
        case EpisodeLine():
            return line.state == "damaged"
    assert_never(line)


def print_lines(console: Console, lines: Sequence[Line], root: str = "") -> None:
    """Print a table of lines of one kind, and how to look at one; `root` is repeated in commands."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    left, right = _COLUMNS[type(lines[0])]
    for header in left:
        table.add_column(header, overflow="fold")
    for header in right:
        table.add_column(header, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*_row(line))
    console.print(table)
    if isinstance(lines[0], EpisodeLine):
        option = f" --root {shlex.quote(root)}" if root else ""
        example = f"\nWhat happened in one: geode show {lines[0].episode_key[:KEY_DIGITS]}{option}"
        console.print(Text(example, style="dim"), soft_wrap=True)


_COLUMNS: dict[type[Line], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ExperimentLine: (("experiment", "question"), ("variants", "episodes")),
    CellLine: (("variant", "scaffold", "overrides"), ("episodes", "PASS", "FAIL", "INVALID")),
    EpisodeLine: (("episode", "variant", "task", "outcome", "why"), ("seed", "rep.", "rounds", "cost")),
}
_REASON_CHARS = 120
_STATE_STYLE = {OutcomeKind.PASS.value: "green", OutcomeKind.FAIL.value: "red", "new": "dim", "unfinished": "yellow"}


def _row(line: Line) -> tuple[Text | str, ...]:
    match line:
        case ExperimentLine():
            return (
                Text(printable(line.name), style="bold"),
                Text(printable(line.problem or line.question), style="bold red" if line.problem else ""),
                str(len(line.variants)),
                f"{line.finished}/{line.planned}",
            )
        case CellLine():
            return (
                Text(line.variant, style="bold" if line.is_baseline else ""),
                line.scaffold_id,
                Text(printable(" ".join(line.overrides)), style="dim"),
                f"{line.passes + line.fails + line.invalid}/{line.planned}"
                + (f", {line.damaged} damaged" if line.damaged else ""),
                str(line.passes),
                str(line.fails),
                str(line.invalid),
            )
        case EpisodeLine():
            return (
                line.episode_key[:KEY_DIGITS],
                Text(line.variant),
                Text(printable(line.task_id)),
                Text(line.state, style=_STATE_STYLE.get(line.state, "magenta")),
                Text(_shortened(printable("; ".join(line.reasons))), style="dim"),
                str(line.seed),
                str(line.repetition),
                "" if line.rounds is None else str(line.rounds),
                "" if line.cost_usd is None else f"${line.cost_usd:.4f}",
            )
    assert_never(line)


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _REASON_CHARS else f"{reason[:_REASON_CHARS]}…"
