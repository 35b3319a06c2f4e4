"""Finished episodes as the bench leaves them: a record and a real `timeline.jsonl`, written by the real timeline."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from random import Random

from experiments.episode import EpisodeRecord, RoleUsage
from experiments.records import Caps, ExperimentRecord, Ruler, TaskRef, Variant, episode_key
from experiments.sinks import Cell, StoredEpisode
from experiments.suite import Outcome, OutcomeKind
from geode.clock import ManualClock, encode_ulid
from geode.config.settings import Settings
from geode.events import CallEnded, CheckEnded, HookDecided, ModelCalled, PromptReceived, SessionOpened, TurnEnded
from geode.records.timeline import SessionTimeline
from geode.scaffold import HookChoice, PromptSource, Scaffold, ToolChoice, ToolPlan

HOOKS = {
    "baseline": (),
    "require_test_run": ("require_test_run",),
    "protect_tests": ("protect_tests",),
    "stop_repeats": ("stop_repeats",),
    "all_hooks": ("require_test_run", "protect_tests", "stop_repeats"),
    "placebo_prompt": (),
    "harmful_prompt": (),
}
MODEL = "simulated/apprentice"
TASKS = (
    ("fix_slugify", "fix_failing_test"),
    ("fix_intervals", "fix_failing_test"),
    ("csv_revenue", "analyse_csv"),
    ("csv_outliers", "analyse_csv"),
    ("config_port", "edit_configuration"),
    ("config_flags", "edit_configuration"),
)


def make_variant(name: str) -> Variant:
    scaffold = Scaffold(
        prompt=(PromptSource(origin=f"{name}.md" if name.endswith("prompt") else "worker.md", text=f"Work. {name}"),),
        hooks=tuple(HookChoice(name=hook) for hook in HOOKS[name]),
        tools=ToolPlan(tools=tuple(ToolChoice(name=tool) for tool in ("read_file", "edit_file", "shell"))),
    )
    overrides = (f"hooks=[{','.join(HOOKS[name])}]",) if HOOKS[name] else ()
    return Variant(
        name=name, scaffold_id=scaffold.scaffold_id, scaffold=scaffold, roles={"target": MODEL}, overrides=overrides
    )


def make_experiment(name: str = "hook_ablation", repeats: int = 1, tasks: int = 2) -> ExperimentRecord:
    refs = tuple(
        TaskRef(task_id=task, family=family, task_hash=sha256(task.encode()).hexdigest())
        for task, family in TASKS[:tasks]
    )
    return ExperimentRecord(
        name=name,
        question="Which hook helps the worker, and by how much?",
        baseline="baseline",
        variants=tuple(make_variant(variant) for variant in HOOKS),
        ruler=Ruler(suite="workspace", tasks=refs, seeds=(1,), caps=Caps()),
        repeats=repeats,
        created_at=datetime(2030, 1, 1, tzinfo=UTC),
        geode_version="0.0",
    )


@dataclass(slots=True)
class EpisodeMaker:
    """Writes episodes below `folder`; `pass_rate` by variant, the rest drawn from `random`."""

    folder: Path
    pass_rates: dict[str, float] = field(default_factory=dict)
    random: Random = field(default_factory=lambda: Random(7))
    rounds: int = 8
    sessions: int = 0

    def cell(self, experiment: ExperimentRecord, variant_name: str) -> Cell:
        variant = experiment.variant(variant_name)
        episodes = [
            self.episode(experiment, variant, task, seed=seed, repetition=repetition)
            for task, seed, repetition, _ in experiment.episode_keys(variant)
        ]
        return Cell(experiment=experiment, variant=variant, episodes=episodes)

    def cells(self, experiment: ExperimentRecord, letters: dict[str, str]) -> list[Cell]:
        """Variants whose tasks all end alike: one letter a repetition, P pass, F fail, I INVALID, `.` not run."""
        kinds = {"P": OutcomeKind.PASS, "F": OutcomeKind.FAIL, "I": OutcomeKind.INVALID}
        found = []
        for name, text in letters.items():
            variant = experiment.variant(name)
            episodes = [
                self.episode(experiment, variant, task, seed=seed, repetition=repetition, kind=kinds[text[repetition]])
                for task, seed, repetition, _ in experiment.episode_keys(variant)
                if text[repetition] != "."
            ]
            found.append(Cell(experiment=experiment, variant=variant, episodes=episodes))
        return found

    def episode(
        self,
        experiment: ExperimentRecord,
        variant: Variant,
        task: TaskRef,
        *,
        seed: int = 1,
        repetition: int = 0,
        kind: OutcomeKind | None = None,
    ) -> StoredEpisode:
        passed = self.random.random() < self.pass_rates.get(variant.name, 0.6)
        kind = kind or (OutcomeKind.PASS if passed else OutcomeKind.FAIL)
        key = episode_key(variant, task, seed, repetition, experiment.ruler.caps)
        folder = self.folder / key[:2] / key
        folder.mkdir(parents=True, exist_ok=True)
        clock = ManualClock(at=experiment.created_at + timedelta(seconds=10 * repetition))
        self.sessions += 1
        session_id = encode_ulid(int(clock.now().timestamp() * 1000), self.sessions)
        (folder / "timeline.jsonl").unlink(missing_ok=True)
        usage = self._timeline(folder, session_id, clock, task)
        reasons = () if kind is OutcomeKind.PASS else ("tests/test_slugify.py still fails: 'a--b' is not 'a-b'.",)
        score = {OutcomeKind.PASS: 1.0, OutcomeKind.FAIL: 0.0}.get(kind)
        record = EpisodeRecord(
            schema="geode.episode/1",
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
            outcome=Outcome(kind=kind, score=score, reasons=reasons),
            stop_reason="answered",
            verified=kind is OutcomeKind.PASS,
            rounds=self.rounds,
            tool_calls=self.rounds - 1,
            tool_errors=1,
            refused_calls=1,
            repairs_used=1,
            usage={"target": usage},
            simulated=True,
            session_id=session_id,
            started_at=clock.at,
            ended_at=clock.now(),
            wall_s=clock.elapsed_s,
            cpu_s=0.02,
            geode_version="0.0",
            python_version="3.11.7",
        )
        return StoredEpisode(record=record, folder=folder)

    def _timeline(self, folder: Path, session_id: str, clock: ManualClock, task: TaskRef) -> RoleUsage:
        timeline = SessionTimeline(folder / "timeline.jsonl", session_id, clock)
        timeline(SessionOpened(mode="EXPERIMENT", scaffold_id="0" * 12, model=MODEL, plan_hash="p" * 12, resumed=False))
        timeline(
            PromptReceived(turn=1, text=f"The tests of {task.task_id} fail. Find out why, and repair the code. " * 3)
        )
        clock.advance(0.001)
        for number in range(1, self.rounds + 1):
            last = number == self.rounds
            clock.advance(0.004)
            timeline(_model_call(number, last))
            if last:
                break
            clock.advance(0.003)
            timeline(_tool_call(number, self.rounds))
        timeline(
            HookDecided(
                turn=1, round=self.rounds, point="stop", hook="require_test_run", decision="continue",
                reason="No test was run after the last edit.", broken=False,
            )
        )  # fmt: skip
        timeline(
            CheckEnded(
                turn=1, round=self.rounds, passed=True, decision="accept", reasons=("tests ran",), repairs_used=1
            )
        )
        timeline(
            TurnEnded(
                turn=1, stop_reason="answered", verified=True, rounds=self.rounds, repairs_used=1,
                text="slugify collapses repeated separators; all tests pass.",
            )
        )  # fmt: skip
        clock.advance(0.002)
        timeline.close()
        return RoleUsage(
            uncached_input_tokens=1_000 * self.rounds,
            cache_read_tokens=500 * self.rounds,
            output_tokens=120 * self.rounds,
            cost_usd=0.0042 * self.rounds,
            calls=self.rounds,
            latency_ms=900 * self.rounds,
        )


def _model_call(number: int, last: bool) -> ModelCalled:
    return ModelCalled(
        turn=1,
        round=number,
        stop="end_turn" if last else "tool_use",
        served_model="apprentice",
        simulated=True,
        latency_ms=900,
        uncached_input_tokens=1_000,
        cache_write_tokens=0,
        cache_read_tokens=500,
        output_tokens=120,
        cost_usd=0.0042,
        text="All tests pass." if last else "I look at the next file.",
    )


def _tool_call(number: int, rounds: int) -> CallEnded:
    refused, failed = number == 2, number == 3
    name, arguments = [
        ("read_file", '{"path": "slugify.py"}'),
        ("edit_file", '{"path": "slugify.py", "old": "-+", "new": "-{2,}"}'),
        ("shell", '{"command": "python -m unittest"}'),
    ][number % 3]
    return CallEnded(
        turn=1,
        round=number,
        call_id=f"call_{number}",
        tool=name,
        arguments=arguments,
        end="not_started" if refused else "failed" if failed else "succeeded",
        is_error=refused or failed,
        stage="pre_hook" if refused else "",
        elapsed_ms=0.0 if refused else 2.6,
        result="Blocked: tests are not edited." if refused else "exit code: 0\n" + "ok\n" * rounds,
        result_chars=200,
    )


def dump(settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the tracking store, by table."""
    with closing(sqlite3.connect(settings.root.mlflow_database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {table: connection.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}
    return {table: sorted(found, key=repr) for table, found in rows.items() if found}
