"""`geode judge`: episodes that have run, judged or judged anew."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from analysis.cli_judge_agreement import add_commands

if TYPE_CHECKING:
    from analysis.rejudge import Judged

_RUN = "run"
_EXIT_INCOMPLETE, _EXIT_BUDGET = 1, 4
_EXAMPLE = "Example:  geode judge hook_ablation --engine rules --rubric task_quality"


class _JudgesByDefault(TyperGroup):
    """`geode judge X` is `geode judge run X`: what is no name of a command is something to judge."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; without one of its names, take `run`."""
        if args and args[0] not in self.commands:
            args = [_RUN, *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Give what begins with an option to `run`, too, unless it asks for this group's help."""
        if args and args[0].startswith("-") and args[0] not in {"--help", "-h"}:
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add `judge`."""
    judge = typer.Typer(
        cls=_JudgesByDefault, no_args_is_help=True, help="Judge episodes that have run, and ask how good judges are."
    )
    judge.command(_RUN, epilog=_EXAMPLE)(run)
    add_commands(judge)
    app.add_typer(judge, name="judge", epilog=_EXAMPLE)


def run(
    what: list[str] = typer.Argument(
        ...,
        help="Experiments, EXPERIMENT:VARIANT, episodes by key or folder, .eval logs or folders of them; and"
        " key=value, which changes the engine's configuration.",
    ),
    *,
    engine: str = typer.Option("rules", "--engine", "-e", help="A file of configs/judge, by its name."),
    rubric: str = typer.Option("task_quality", "--rubric", "-r", help="A file of configs/rubric by name, or a path."),
    route: str = typer.Option(
        "", "--route", help="By which route the engine's model is reached; the same as route=..."
    ),
    model: str = typer.Option("", "--model", help="The engine's model as route/id."),
    repeat: int = typer.Option(1, "--repeat", "-k", min=1, max=1_000, help="Judge the same transcript so many times."),
    concurrency: int = typer.Option(4, min=1, max=256, help="So many episodes at once."),
    budget: float = typer.Option(None, min=0, help="US dollars that this command may spend."),
    root: Path | None = typer.Option(None, "--root", help="The state root; by default GEODE_HOME, or ~/.geode."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Judge episodes under a rubric, and keep each judgment beside its episode.

    The same command again goes on where this one ended: what is judged is neither asked nor paid for again. Exit codes:
    0 all are judged; 1 some are not; 2 refused before anything was asked; 4 stopped by a budget; 130 interrupted.
    """
    import asyncio

    from analysis.importers.files import ArchiveError
    from analysis.judge_screen import JudgeScreen, print_summary, summary_to_json
    from analysis.judged import NothingToJudge, find_subjects, recorded_by
    from analysis.rejudge import judge_subjects
    from analysis.show import EpisodeNotFound
    from analysis.terminal import open_console
    from experiments.store import StoreError
    from geode.cli.failure import fail
    from geode.cli.state import settings_of
    from geode.clock import SystemClock
    from geode.config.config_dir import config_dir
    from geode.executor.policy import Mode
    from geode.llm.errors import ConfigurationError
    from geode.records.purse import Account
    from geode.redaction import Redactor
    from geode.serve.accounts import Accounts
    from judges.cascade import account_of
    from judges.catalogue import (
        CascadeChoice,
        EngineParts,
        JudgeConfigError,
        RecordedChoice,
        model_words,
        open_engine,
        read_choice,
    )
    from judges.engine import RubricRefused
    from judges.rubric import RubricError, find_rubric

    settings, clock = settings_of(root), SystemClock()
    words = [word for word in what if "=" in word and "/" not in word.partition("=")[0]]
    names = [word for word in what if word not in words]
    words += [*([f"route={route}"] if route else []), *(model_words(engine, model) if model else [])]
    refusals = (NothingToJudge, EpisodeNotFound, ArchiveError, StoreError, JudgeConfigError, RubricRefused, RubricError)
    try:
        choice = read_choice(config_dir() / "judge", engine, words)
        asked = find_rubric(config_dir() / "rubric", rubric)
        if not names:
            raise NothingToJudge("name what to judge: an experiment, an episode, or a .eval log; geode ls lists them")
        found = [subject for name in names for subject in find_subjects(settings.root, name)]
        subjects = tuple({(subject.ledger, subject.name): subject for subject in found}.values())
        parts = EngineParts(
            clock=clock,
            environment=settings.environment,
            purse=Accounts(settings.root, clock).purse(
                Account(role="judge", command=clock.ulid(), command_usd=budget), session="", mode=Mode.EXPERIMENT
            ),
            redactor=Redactor.of_environment(dict(settings.environment)),
            records=recorded_by(subjects, choice.scorer) if isinstance(choice, RecordedChoice) else {},
        )
        judge = open_engine(choice, parts)
        with JudgeScreen(len(subjects) * repeat, quiet=as_json) as screen:
            judged = asyncio.run(
                judge_subjects(subjects, judge, asked, repetitions=repeat, concurrency=concurrency, told=screen.told)
            )
    except (*refusals, ConfigurationError) as error:
        fail(str(error), 2)
    except KeyboardInterrupt:
        fail("interrupted; what was judged is kept, and the same command goes on", 130)
    account = account_of(judged.given, tuple(choice.stages)) if isinstance(choice, CascadeChoice) else None
    if as_json:
        typer.echo(summary_to_json(judged, judge, asked, account))
    else:
        print_summary(open_console(), judged, judge, asked, account)
    _end(judged)


def _end(judged: "Judged") -> None:
    if judged.out_of_budget:
        raise typer.Exit(_EXIT_BUDGET)
    if judged.left or judged.unreadable or judged.refused:
        raise typer.Exit(_EXIT_INCOMPLETE)
