"""Cells whose outcomes stand in plain sight: one letter an episode. They can be written to a real store."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from experiments.episode import EpisodeRecord, RoleUsage
from experiments.records import Caps, ExperimentRecord, Ruler, TaskRef, Variant
from experiments.sinks import Cell, StoredEpisode
from experiments.store import EpisodeStore
from experiments.suite import Outcome, OutcomeKind
from geode.canonical import content_hash
from geode.clock import ManualClock, SystemClock
from geode.config.paths import StateRoot
from geode.events import Event
from geode.records.timeline import SessionTimeline
from geode.redaction import Redactor
from geode.scaffold import PromptSource, Scaffold, ToolPlan

Letters = Mapping[str, Mapping[str, str]]
"""variant -> task -> one letter a repetition: P pass, F fail, I INVALID, L fails although verified, `.` not run."""

KINDS = {"P": OutcomeKind.PASS, "F": OutcomeKind.FAIL, "I": OutcomeKind.INVALID, "L": OutcomeKind.FAIL}
AT = datetime(2030, 1, 1, tzinfo=UTC)


def drawn(rates: Mapping[str, Mapping[str, float]], repeats: int, seed: int) -> dict[str, dict[str, str]]:
    """Draw letters: each repetition passes with the rate of its variant and task."""
    random = np.random.default_rng(seed)
    return {
        variant: {
            task: "".join("P" if draw < rate else "F" for draw in random.random(repeats))
            for task, rate in tasks.items()
        }
        for variant, tasks in rates.items()
    }


def make_experiment(
    letters: Letters, *, name: str = "ablation", model: str = "simulated/apprentice", confidence: float = 0.95
) -> ExperimentRecord:
    """The first variant is the baseline; `csv_a` and `csv_b` are tasks of the family `csv`."""
    tasks = next(iter(letters.values()))
    return ExperimentRecord(
        name=name,
        question="Which hook helps?",
        baseline=next(iter(letters)),
        variants=tuple(_variant(variant, model) for variant in letters),
        ruler=Ruler(
            suite="workspace",
            tasks=tuple(
                TaskRef(task_id=task, family=task.split("_")[0], task_hash=content_hash(task)) for task in tasks
            ),
            seeds=(1,),
            caps=Caps(),
            confidence=confidence,
        ),
        repeats=max(len(text) for tasks in letters.values() for text in tasks.values()),
        created_at=AT,
        geode_version="0.0",
    )


def make_cells(letters: Letters, experiment: ExperimentRecord | None = None) -> list[Cell]:
    experiment = experiment or make_experiment(letters)
    return [_cell(experiment, experiment.variant(name), tasks) for name, tasks in letters.items()]


def store_cells(root: StateRoot, cells: list[Cell]) -> None:
    """Write the experiment and its finished episodes as the bench does, without sessions."""
    store = EpisodeStore(root, SystemClock(), Redactor())
    store.write_experiment(cells[0].experiment)
    for cell in cells:
        for stored in cell.episodes:
            root.episode(stored.record.episode_key).mkdir(parents=True, exist_ok=True)
            store.finish(stored.record)


def _variant(name: str, model: str) -> Variant:
    scaffold = Scaffold(prompt=(PromptSource(text=f"Work as {name}."),), tools=ToolPlan(tools=()))
    return Variant(name=name, scaffold_id=scaffold.scaffold_id, scaffold=scaffold, roles={"target": model})


def _cell(experiment: ExperimentRecord, variant: Variant, tasks: Mapping[str, str]) -> Cell:
    episodes = []
    for task, seed, repetition, key in experiment.episode_keys(variant):
        letter = tasks[task.task_id].ljust(experiment.repeats, ".")[repetition]
        if letter != ".":
            record = _record(experiment, variant, task, seed=seed, repetition=repetition, key=key, letter=letter)
            episodes.append(StoredEpisode(record=record, folder=Path("episodes") / key[:2] / key))
    return Cell(experiment=experiment, variant=variant, episodes=tuple(episodes))


def _record(
    experiment: ExperimentRecord, variant: Variant, task: TaskRef, *, seed: int, repetition: int, key: str, letter: str
) -> EpisodeRecord:
    kind = KINDS[letter]
    reasons = {"P": (), "F": ("the test still fails",), "I": ("the disk was full",), "L": ("the test still fails",)}
    return EpisodeRecord(
        episode_key=key,
        scaffold_id=variant.scaffold_id,
        suite=experiment.ruler.suite,
        task_id=task.task_id,
        family=task.family,
        task_hash=task.task_hash,
        seed=seed,
        repetition=repetition,
        roles=variant.roles,
        caps_hash=experiment.ruler.caps.caps_hash,
        outcome=Outcome(kind=kind, score={"P": 1.0, "I": None}.get(letter, 0.0), reasons=reasons[letter]),
        stop_reason="answered",
        verified=letter in "PL",
        rounds=6,
        tool_calls=5,
        tool_errors=0,
        refused_calls=1,
        repairs_used=2,
        usage={
            "target": RoleUsage(
                uncached_input_tokens=900, output_tokens=100, cost_usd=0.0125, calls=6, latency_ms=4_000
            )
        },
        simulated=variant.roles["target"].startswith("simulated/"),
        session_id="01JZ",
        started_at=AT,
        ended_at=AT,
        wall_s=0.03,
        cpu_s=0.02,
        geode_version="0.0",
        python_version="3.11.7",
    )


def write_timeline(folder: Path, events: Sequence[Event]) -> Path:
    """Write a real timeline into an episode folder, half a second between two events."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = ManualClock(at=AT)
    timeline = SessionTimeline(folder / "timeline.jsonl", "01JZ", clock)
    for event in events:
        timeline(event)
        clock.advance(0.5)
    timeline.close()
    return folder
