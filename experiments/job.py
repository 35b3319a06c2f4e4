"""What Hydra calls: a whole experiment for the sweeper of GEODE, or one cell as a job of any other sweeper."""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

import geode
from experiments.budget import Budget, CommandPurse
from experiments.claims import Claims
from experiments.completion import CompletionJudges
from experiments.detectable import detectable
from experiments.engine import EpisodeBench, EpisodeEngine, LocalEngine
from experiments.forecast import forecast
from experiments.manifest import EpisodeStatus, Manifest
from experiments.mirror import MirrorSpec, SinkMirror
from experiments.past import look_back
from experiments.plan import Asked, ExperimentConflict, Plan, enroll, identity, make_plan
from experiments.preview import Preview, preview_to_json, print_preview
from experiments.progress import Progress
from experiments.records import ExperimentRecord, Ruler, TaskRef, Variant
from experiments.refusals import Refusal, refusal_text, refusals
from experiments.report import ExitCode, Report, print_report, report_to_json
from experiments.run_episode import EpisodeParts, SessionOpener
from experiments.run_spec import LocalExecutor, RunSpec, WorkerExecutor
from experiments.runner import OverBudget, Runner, RunStopped
from experiments.spec import CellFailed, ConfigError, VariantSpec, job_spec
from experiments.store import (
    EpisodeStore,
    RecordDamaged,
    StoreError,
    clean_workspaces,
    list_experiments,
    load_cell,
    locked_experiments,
    read_experiment,
)
from experiments.suite import OutcomeKind, Suite
from experiments.suites.chosen import chosen_suite
from experiments.suites.environments import broken_environments
from experiments.suites.loader import SuiteError
from experiments.worker import WorkerSpec
from experiments.workers import WorkerEngine, cores
from experiments.written import WrittenCells
from geode.clock import Clock, SystemClock
from geode.config.settings import Settings, read_settings
from geode.records.purse import Account
from geode.redaction import Redactor
from geode.serve.accounts import open_ledger
from geode.serve.services import SharedServices


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The task function that is handed to Hydra, with what was taken out of its arguments.

    A launcher may pickle it to a disk, so it holds no settings: they carry the environment.
    """

    root: Path | None = None
    single: bool = False
    plan_only: bool = False
    as_json: bool = False

    def __call__(self, config: object) -> float:
        """Run one cell as a job of a sweeper that is not ours; return its pass rate, which a search can maximise.

        Raises:
            ConfigError: if the configuration is refused.
            CellFailed: if an episode is INVALID or a sink failed.
        """
        variant = job_spec(config)
        if variant.spec.variants:
            raise ConfigError("named variants need hydra/sweeper=geode; another sweeper runs what is swept over, only")
        report = self._run((variant,))
        if report is None:
            return 0.0
        if report.exit_code is not ExitCode.DONE:
            raise CellFailed(int(report.exit_code))
        counts = report.counts[variant.name]
        return counts.get(OutcomeKind.PASS, 0) / max(1, sum(counts.values()))

    def run_variants(self, variants: Sequence[VariantSpec]) -> int:
        """Run all variants as one interleaved experiment; return the exit code.

        Raises:
            ConfigError: if it is refused before anything ran.
        """
        if self.single and len(variants) > 1:
            names = ", ".join(variant.name for variant in variants)
            raise ConfigError(f"geode run takes one variant, and these are {len(variants)} ({names}); use geode sweep")
        report = self._run(variants)
        return int(report.exit_code) if report else int(ExitCode.DONE)

    def _run(self, variants: Sequence[VariantSpec]) -> Report | None:
        try:
            experiment = _Experiment.open(variants, read_settings(self.root), SystemClock())
            if self.plan_only:
                self._show_plan(experiment.preview())
                return None
            report = experiment.run(Console(stderr=True))
        except (ExperimentConflict, SuiteError, StoreError) as refusal:
            raise ConfigError(str(refusal)) from refusal
        if self.as_json:
            _print_json(report_to_json(report))
        else:
            print_report(report, Console())
        return report

    def _show_plan(self, preview: Preview) -> None:
        if self.as_json:
            _print_json(preview_to_json(preview))
        else:
            print_preview(preview, Console())
        if preview.refusals:
            raise ConfigError(refusal_text(preview.refusals))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experiment:
    """One command's experiment: what it asks for, with everything that running it needs."""

    settings: Settings
    clock: Clock
    store: EpisodeStore
    suite: Suite
    spec: RunSpec
    asked: Asked

    @classmethod
    def open(cls, variants: Sequence[VariantSpec], settings: Settings, clock: Clock) -> "_Experiment":
        spec = variants[0].spec
        suite = chosen_suite(spec.suite, [variant.spec.roles["target"] for variant in variants])
        return cls(
            settings=settings,
            clock=clock,
            store=EpisodeStore(settings.root, clock, Redactor.of_environment(dict(settings.environment))),
            suite=suite,
            spec=spec,
            asked=ask(variants, suite),
        )

    def plan(self) -> Plan:
        return make_plan(
            self._enrolled(),
            [variant.name for variant in self.asked.variants],
            self.asked.repeats,
            self.store,
            rerun_invalid=self.spec.invalid == "rerun",
        )

    def _enrolled(self) -> ExperimentRecord:
        name, root = self.asked.name, self.settings.root
        known = name in list_experiments(root)
        return enroll(
            read_experiment(root, name) if known else None,
            self.asked,
            created_at=self.clock.now(),
            geode_version=geode.__version__,
        )

    def refusals(self, plan: Plan) -> tuple[Refusal, ...]:
        tasks = {task.task_id: task for task in self.suite.tasks}
        return refusals(
            plan,
            tasks,
            self.settings.root,
            self.spec.budget,
            refuse_damaged=self.spec.damaged == "refuse",
            allow_moving=self.spec.allow_moving_models,
        )

    def preview(self) -> Preview:
        plan = self.plan()
        refused = self.refusals(plan)
        left_out = {episode.spec.episode_key for refusal in refused for episode in refusal.episodes}
        specs = [episode.spec for block in plan.blocks for episode in block.episodes]
        past = look_back(self.settings.root, plan.experiment, self.clock)
        return Preview(
            plan=plan,
            refusals=refused,
            budget=self.spec.budget,
            forecast=forecast(
                [spec for spec in specs if spec.episode_key not in left_out],
                past.records,
                side_by_side=self._side_by_side,
            ),
            detectable=detectable(plan.experiment, past),
        )

    def run(self, console: Console) -> Report:
        plan, root = self.plan(), self.settings.root
        if refused := self.refusals(plan):
            raise ConfigError(refusal_text(refused))
        if plan.to_run and (broken := broken_environments(self.suite.tasks, root.workspaces)):
            raise SuiteError("; ".join(broken.values()))
        with locked_experiments(root):
            record = self._enrolled()  # read again: another process may have grown it since
            self.store.write_experiment(record)
        with closing(Claims(root)) as claims:
            clean_workspaces(root, claims)
            return self._execute(replace(plan, experiment=record), claims, console)

    def _execute(self, plan: Plan, claims: Claims, console: Console) -> Report:
        manifest = Manifest(self._folder, self.clock)
        manifest.note_lost(claims, self.store)
        for block in plan.blocks:
            for episode in block.episodes:
                manifest.note(episode, EpisodeStatus.PLANNED)
        cells = self._cells_to_write(plan)
        account = Account(experiment=self.asked.name, command=self.clock.ulid(), command_usd=self.spec.budget.cost_usd)
        purse = CommandPurse(open_ledger(self.settings.root, self.clock), account.command)
        mirror = SinkMirror(self._mirror_spec()) if cells else None
        progress = Progress(
            console, self.clock, reused={v.variant: v.reused for v in plan.variants}, to_run=plan.to_run
        )
        bench = EpisodeBench(
            parts=EpisodeParts(
                root=self.settings.root,
                opener=self._opener(),
                clock=self.clock,
                account=account,
                completion=CompletionJudges(self.settings, self.clock),
            ),
            store=self.store,
            tasks={task.task_id: task for task in self.suite.tasks},
            claims=claims,
            manifest=manifest,
        )
        runner = Runner(
            bench=bench,
            engine=self._engine(bench, account),
            budget=Budget(self.spec.budget, self.clock, purse),
            mirror=mirror,
            progress=progress,
        )
        ended, stopped, over_budget = False, "", False
        try:
            ended = runner.run(plan, cells)
            manifest.note_lost(claims, self.store)  # of processes that died meanwhile, too
        except RunStopped as stop:
            stopped, over_budget = str(stop), isinstance(stop, OverBudget)
        finally:
            progress.close()
            manifest.close()
            purse.ledger.close()
        return Report(
            experiment=plan.experiment.name,
            counts=progress.counts,
            planned=sum(variant.total for variant in plan.variants),
            ran=progress.run,
            found=progress.found,
            to_run=plan.to_run,
            invalid_reasons=progress.reasons,
            sink_problems=mirror.problems if mirror is not None else (),
            interrupted=not ended and not stopped,
            stopped=stopped,
            over_budget=over_budget,
        )

    @property
    def _side_by_side(self) -> int:
        match self.spec.executor:
            case LocalExecutor(concurrency=count):
                return count
            case WorkerExecutor(workers=count):
                return count or cores()

    @property
    def _folder(self) -> Path:
        return self.settings.root.experiment(self.asked.name)

    def _cells_to_write(self, plan: Plan) -> tuple[str, ...]:
        names = tuple(variant.variant for variant in plan.variants)
        if not self.spec.sinks or plan.to_run:
            return names if self.spec.sinks else ()
        try:
            cells = [load_cell(self.settings.root, plan.experiment, plan.experiment.variant(name)) for name in names]
        except RecordDamaged:
            return names  # writing them will say what is wrong
        return WrittenCells(self._folder).missing(self.spec.sinks, cells)

    def _mirror_spec(self) -> MirrorSpec:
        return MirrorSpec(
            settings=self.settings,
            experiment=self.asked.name,
            sinks=self.spec.sinks,
            log=self._folder / "sinks.log",
        )

    def _engine(self, bench: EpisodeBench, account: Account) -> EpisodeEngine:
        if isinstance(self.spec.executor, LocalExecutor):
            return LocalEngine(bench=bench, slots=self._side_by_side)
        worker = WorkerSpec(
            settings=self.settings,
            experiment=self.asked.name,
            suite=self.spec.suite,
            targets=tuple(variant.roles["target"] for variant in self.asked.variants),
            parent=os.getpid(),
            account=account,
        )
        return WorkerEngine(bench, worker, self._side_by_side)

    def _opener(self) -> SessionOpener:
        return SharedServices(self.settings, self.clock)


def ask(variants: Sequence[VariantSpec], suite: Suite) -> Asked:
    """Return what a command asks of an experiment. Without a name it is named by its ruler.

    Raises:
        ExperimentConflict: if two variants are the same scaffold in the same roles.
    """
    spec = variants[0].spec
    ruler = Ruler(
        suite=suite.name,
        tasks=tuple(TaskRef(task_id=t.task_id, family=t.family, task_hash=t.task_hash) for t in suite.tasks),
        seeds=spec.seeds,
        caps=spec.caps,
        confidence=spec.gate.confidence,
        rule=spec.gate.rule,
    )
    made: list[Variant] = []
    for variant in variants:
        scaffold = variant.spec.scaffold
        new = Variant(
            name=variant.name,
            scaffold_id=scaffold.scaffold_id,
            scaffold=scaffold,
            roles=variant.spec.roles,
            options=variant.spec.options,
            overrides=variant.overrides,
        )
        for other in made:
            if identity(other) == identity(new):
                raise ExperimentConflict(
                    f"the variants {other.name!r} and {variant.name!r} are the same scaffold ({other.scaffold_id}):"
                    f" what differs in {variant.overrides or 'their overrides'} has no effect; drop one of them"
                )
        made.append(new)
    return Asked(
        name=spec.name or f"adhoc-{ruler.ruler_id}",
        question=spec.question,
        baseline=spec.baseline,
        variants=tuple(made),
        ruler=ruler,
        repeats=spec.repeats,
    )


def _print_json(body: object) -> None:
    sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=1) + "\n")
