"""The attempts of a foreign log, each with what came of it and the command that shows it."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from analysis.foreign import ForeignRun, LogsRefused
from analysis.ls import LIST_SCHEMA
from analysis.terminal import printable
from experiments.overrides import nearest

_SCORES_SHOWN = 4
_REASON_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """One attempt; `shown_as` is what `geode show` takes."""

    task: str
    attempt: str
    shown_as: str
    invalid: str | None
    values: dict[str, float | None]


def attempt_lines(run: ForeignRun, task: str | None = None) -> list[AttemptLine]:
    """List the attempts of a log, or those at one of its tasks.

    Raises:
        LogsRefused: if it has no such task.
    """
    lines = [
        AttemptLine(
            task=unit.task,
            attempt=unit.attempt,
            shown_as=facts.shown_as,
            invalid=facts.invalid,
            values={score: values[unit] for score, values in run.values.items()},
        )
        for unit, facts in sorted(run.attempts.items(), key=lambda item: item[0])
        if task is None or unit.task == task
    ]
    if task is not None and not lines:
        raise LogsRefused(f"no task {task!r} in {run.name}{nearest(task, [unit.task for unit in run.attempts])}")
    return lines


def attempts_to_json(lines: Sequence[AttemptLine]) -> dict[str, Any]:
    """Return the lines as JSON values."""
    return {"schema": LIST_SCHEMA, "items": [asdict(line) for line in lines]}


def print_attempts(console: Console, lines: Sequence[AttemptLine]) -> None:
    """Print two lines an attempt. The command is never folded, so that it can be copied."""
    console.print(Text("\n").join(map(_attempt, lines)), soft_wrap=True)


def _attempt(line: AttemptLine) -> Text:
    scored = [f"{score} {value:g}" for score, value in line.values.items() if value is not None]
    told = scored[:_SCORES_SHOWN]
    if len(scored) > _SCORES_SHOWN:
        told.append(f"{len(scored) - _SCORES_SHOWN} scores more")
    if line.invalid is not None:
        told = [f"INVALID: {line.invalid[:_REASON_CHARS]}"]
    elif len(scored) < len(line.values) or not scored:
        told.append(f"unscored: {len(line.values) - len(scored) or 'everything'}")
    return Text.assemble(
        (printable(line.task), "bold"),
        printable(f" ({line.attempt})  {', '.join(told)}\n"),
        (f"  geode show {shlex.quote(printable(line.shown_as))}", "cyan"),
    )
