"""What a person sees while episodes are judged, and after it: values by dimension, what has none, and what it cost."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Self

from pydantic import JsonValue
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from analysis.rejudge import Judged
from analysis.terminal import open_table, printable
from geode.llm.usage import shown_usd
from judges.cascade import CascadeAccount
from judges.engine import JudgeEngine
from judges.judgment import Judgment
from judges.repeats import repeats_of
from judges.rubric import Rubric

SUMMARY_SCHEMA = "geode.judging/1"
_NAMES_SHOWN = 5


class JudgeScreen:
    """Shows on standard error how many are judged, and what it has cost so far."""

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self._progress = Progress(
            TextColumn("judging"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[cost]}"),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("", total=total, cost="")
        self._cost_usd: float | None = 0.0

    def told(self, judgment: Judgment) -> None:
        """Count one judgment."""
        cost = judgment.cost_usd
        self._cost_usd = None if self._cost_usd is None or cost is None else self._cost_usd + cost
        self._progress.update(self._task, advance=1, cost=shown_usd(self._cost_usd) if judgment.asked else "")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def print_summary(
    console: Console, judged: Judged, engine: JudgeEngine, rubric: Rubric, account: CascadeAccount | None = None
) -> None:
    """Print what came of a run; `account` is that of a cascade."""
    if judged.given:
        again = any(judgment.repetition for judgment in judged.given)
        table = open_table("dimension", "mean", *(["± of repeats"] if again else []), "scale", "scored", "unscored")
        reasons = _reasons(judged)
        for dimension, repeats in zip(rubric.dimensions, repeats_of(judged.given, rubric), strict=True):
            better = "lower is better" if dimension.direction == "lower" else "higher is better"
            table.add_row(
                dimension.name,
                "none" if repeats.mean is None else f"{repeats.mean:.2f}",
                *(["none" if repeats.spread is None else f"{repeats.spread:.2f}"] if again else []),
                f"{dimension.lowest} to {dimension.highest}, {better}",
                str(repeats.values),
                reasons.get(dimension.name, "0"),
            )
        console.print(table)
    sent = [asked for judgment in judged.given for asked in judgment.asked]
    models = ", ".join(dict.fromkeys(asked.served_model for asked in sent if asked.served_model))
    by = f"{engine.name} ({printable(models)})" if models else engine.name
    spent = ""
    if waited_ms := [asked.latency_ms for asked in sent if asked.model]:
        spent = f", {judged.requests} requests, {shown_usd(judged.cost_usd)}, {median(waited_ms):.0f} ms each (median)"
    console.print(
        f"{len(judged.given)} judgments by {by} under {rubric.name}, {judged.found} were there before{spent}",
        soft_wrap=True,
    )
    if account is not None and judged.given:
        _print_account(console, account)
    for line in _troubles(judged):
        console.print(printable(line), style="yellow", soft_wrap=True, markup=False)


def _print_account(console: Console, account: CascadeAccount) -> None:
    table = open_table("stage", "decided", "with a value", "episodes asked about", "requests", "cost")
    for stage in account.stages:
        counts = map(str, (stage.decided, stage.scored, stage.episodes, stage.requests))
        table.add_row(printable(stage.stage), *counts, shown_usd(stage.cost_usd))
    console.print(table)
    last = printable(account.stages[-1].stage)
    if account.last_alone_usd is None:
        estimate = f"what {last} alone would have cost is not known: it was not asked, or a cost is not known"
    else:
        estimate = (
            f"{last} alone would have cost about {shown_usd(account.last_alone_usd)},"
            f" by the {account.rests_on} of {account.episodes} episodes that it was asked about"
        )
    console.print(f"in all {shown_usd(account.cost_usd)}; {estimate}", soft_wrap=True)


def summary_to_json(judged: Judged, engine: JudgeEngine, rubric: Rubric, account: CascadeAccount | None = None) -> str:
    """Return what came of a run as JSON text."""
    body: dict[str, JsonValue] = {
        "schema": SUMMARY_SCHEMA,
        "engine": engine.name,
        "engine_id": engine.engine_id,
        "rubric": rubric.name,
        "rubric_id": rubric.rubric_id,
        "question_set": engine.question_set(rubric),
        "given": [judgment.model_dump(mode="json", by_alias=True) for judgment in judged.given],
        "repeats": [asdict(repeats) for repeats in repeats_of(judged.given, rubric)],
        "found": judged.found,
        "left": judged.left,
        "requests": judged.requests,
        "cost_usd": judged.cost_usd,
        "cascade": None if account is None else account.to_json(),
        "stopped": judged.stopped,
        "refused": list(judged.refused),
        "unreadable": list(judged.unreadable),
        "elsewhere": list(judged.elsewhere),
        "problems": list(judged.problems),
    }
    return json.dumps(body, ensure_ascii=False, indent=1)


def _reasons(judged: Judged) -> dict[str, str]:
    counted: dict[str, list[str]] = defaultdict(list)
    for (dimension, reason), count in sorted(judged.unscored().items()):
        counted[dimension].append(f"{count} {reason}")
    return {dimension: ", ".join(parts) for dimension, parts in counted.items()}


def _troubles(judged: Judged) -> Sequence[str]:
    lines = list(_failures(judged))
    if judged.stopped:
        lines.append(f"stopped: {judged.stopped}")
    if judged.left:
        lines.append(f"{judged.left} are still to be judged; the same command goes on with them")
    if judged.elsewhere:
        lines.append(f"another command judges {_some(judged.elsewhere)} at the moment")
    lines += [f"not judged: {name}" for name in judged.refused[:_NAMES_SHOWN]]
    if (more := len(judged.refused) - _NAMES_SHOWN) > 0:
        lines.append(f"and {more} more are not judged for such a reason")
    lines += [f"cannot be read: {name}" for name in judged.unreadable[:_NAMES_SHOWN]]
    if (more := len(judged.unreadable) - _NAMES_SHOWN) > 0:
        lines.append(f"and {more} more cannot be read")
    return [*lines, *judged.problems[:_NAMES_SHOWN]]


def _failures(judged: Judged) -> Sequence[str]:
    """Tell of requests that failed, each reason once: `infrastructure` alone does not say what is to be mended."""
    why = Counter(asked.failed for judgment in judged.given for asked in judgment.asked if asked.failed)
    lines = [
        f"{count} request{'s' if count > 1 else ''} failed: {reason}" for reason, count in why.most_common(_NAMES_SHOWN)
    ]
    more = why.total() - sum(count for _, count in why.most_common(_NAMES_SHOWN))
    return [*lines, f"and {more} more failed for other reasons"] if more else lines


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"
