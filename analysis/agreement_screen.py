"""The agreement of judges, and the noise of each, as a person and as a program reads them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.terminal import open_table, printable
from judges.agreement import Agreement, DimensionAgreement, Level, PairAgreement
from judges.expense import Expense
from judges.ratings import Scored
from judges.resampling import FAMILIES_FEW, Estimate, Figure, NotEstimated
from judges.variance import Variance

SCHEMA = "geode.agreement/1"
_NONE = "–"


def print_agreement(console: Console, found: Agreement, *, confusion: bool) -> None:
    """Print a table of figures for each pair of judges, and why some are not there."""
    console.print(_heading(found), soft_wrap=True, markup=False)
    if found.families < FAMILIES_FEW:
        console.print(f"{found.families} families: the intervals are rough", style="yellow")
    both = [dimension for dimension in found.dimensions if any(pair.both for pair in dimension.pairs)]
    for place in range(len(found.dimensions[0].pairs)):
        pair = found.dimensions[0].pairs[place]
        shown = [(dimension, dimension.pairs[place]) for dimension in both if dimension.pairs[place].both]
        if shown:
            console.print(Text(f"\n{printable(pair.first)} (A) against {printable(pair.second)} (B)", style="bold"))
            console.print(_pair_table(found, shown))
            console.print()
            console.print(_means_table(found, shown))
    if len(found.judges) > 2:
        console.print(Text("\nKrippendorff's alpha over all judges", style="bold"))
        console.print(_alphas_table(both))
    _print_notes(console, found)
    if confusion:
        for dimension in both:
            for pair in dimension.pairs:
                console.print()
                console.print(_confusion_table(dimension, pair))


def print_noise(console: Console, noise: Sequence[Variance], confidence: float) -> None:
    """Print where the spread of each judge's values comes from."""
    table = open_table("variance components", "scenarios", "episodes", "judgments", "scenario", "run", "judge")
    notes: dict[str, list[str]] = defaultdict(list)
    for of in noise:
        name = f"{of.judge}: {of.dimension}"
        for figure in (of.scenario, of.run, of.repetition):
            if why := _why(figure):
                notes[why].append(name)
        counts = (str(of.scenarios), str(of.episodes), str(of.judgments))
        figures = (_shown(figure) for figure in (of.scenario, of.run, of.repetition))
        table.add_row(printable(name), *counts, *figures)
    console.print()
    console.print(table)
    console.print(f"in squared units of the dimension, {confidence:.0%} intervals by family", style="dim")
    for why, names in notes.items():
        console.print(f"{_NONE} {', '.join(dict.fromkeys(names))}: {why}", style="dim", soft_wrap=True, markup=False)


def print_expenses(console: Console, taken: Sequence[Expense]) -> None:
    """Print what each judge took: requests, money and time."""
    table = open_table("judge", "judgments", "unscored", "requests", "cost USD", "USD per 1,000", "median s")
    for of in taken:
        unscored = f"{of.unscored / of.entries:.0%}" if of.entries else _NONE
        cost = f"{of.cost_usd:.4f}" + (f" and {of.unpriced} unknown" if of.unpriced else "")
        rate = _NONE if of.usd_per_1000 is None else f"{of.usd_per_1000:.2f}"
        took = _NONE if of.latency_ms is None else f"{of.latency_ms / 1_000:.2f}"
        table.add_row(printable(of.judge), str(of.judgments), unscored, str(of.requests), cost, rate, took)
    console.print()
    console.print(table)


def agreement_to_json(
    found: Agreement | None, noise: Sequence[Variance], taken: Sequence[Expense], problems: Iterable[str]
) -> str:
    """Return the whole as JSON text: each figure with its interval, or with the reason for which there is none."""
    body: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "agreement": asdict(found) if found else None,
        "noise": [asdict(of) for of in noise],
        "expenses": [asdict(of) for of in taken],
        "problems": list(problems),
    }
    return json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False)


def _heading(found: Agreement) -> str:
    left_out = "".join(f"; {count} {why}" for why, count in found.left_out.items())
    return (
        f"{found.episodes} episodes in {found.families} families judged by {', '.join(map(printable, found.judges))}"
        f" under {found.rubric} ({found.rubric_id}){left_out}"
    )


def _pair_table(found: Agreement, shown: Sequence[tuple[DimensionAgreement, PairAgreement]]) -> Table:
    level = f"{found.how.confidence:.0%}"
    figures = (f"alpha [{level}]", f"kappa [{level}]", f"A - B [{level}]", "95% of differences")
    table = open_table("dimension", "both", *figures)
    for dimension, pair in shown:
        alpha = next(iter(dimension.alphas.values())) if len(found.judges) == 2 else NotEstimated(reason="")
        limits = f"{_value(pair.limit_low, signed=True)} to {_value(pair.limit_high, signed=True)}"
        table.add_row(
            dimension.dimension,
            str(pair.both),
            _shown(alpha) if len(found.judges) == 2 else "below",
            _shown(pair.kappa),
            _shown(pair.bias, signed=True),
            limits if isinstance(pair.limit_low, Estimate) else _NONE,
        )
    return table


def _means_table(found: Agreement, shown: Sequence[tuple[DimensionAgreement, PairAgreement]]) -> Table:
    """Show the rest: correlations, and what each judge scored by itself."""
    level = f"{found.how.confidence:.0%}"
    figures = (f"Pearson [{level}]", f"Spearman [{level}]", f"same [{level}]", "mean A (unscored)", "mean B (unscored)")
    table = open_table("dimension", *figures)
    for dimension, pair in shown:
        judges = {judge.judge: judge for judge in dimension.judges}
        table.add_row(
            dimension.dimension,
            _shown(pair.pearson),
            _shown(pair.spearman),
            _shown(pair.confusion.same),
            _mean(judges[pair.first]),
            _mean(judges[pair.second]),
        )
    return table


def _mean(judge: Scored) -> str:
    return f"{_value(judge.mean)} ({sum(judge.unscored.values())})"


def _alphas_table(dimensions: Sequence[DimensionAgreement]) -> Table:
    table = open_table("dimension", "scored by all", *Level)
    for dimension in dimensions:
        figures = (_shown(dimension.alphas[level]) if level in dimension.alphas else "" for level in Level)
        table.add_row(dimension.dimension, str(dimension.all_scored), *figures)
    return table


def _print_notes(console: Console, found: Agreement) -> None:
    notes: dict[str, list[str]] = defaultdict(list)
    nothing = [of.dimension for of in found.dimensions if not any(pair.both for pair in of.pairs)]
    for dimension in found.dimensions:
        if dimension.dimension not in nothing:
            for name, figure in _named(dimension):
                if why := _why(figure):
                    notes[f"{dimension.dimension}: {why}"].append(name)
    if nothing:
        console.print(f"\nnothing that two judges scored: {', '.join(nothing)}", style="dim", soft_wrap=True)
    for why, names in notes.items():
        line = f"{_NONE} {printable(why)} ({', '.join(dict.fromkeys(names))})"
        console.print(line, style="dim", soft_wrap=True, markup=False)
    alpha = "alpha is Krippendorff's for intervals, nominal for flags and choices (--json has ordinal)"
    kappa = "kappa is Cohen's with quadratic weights"
    console.print(f"{alpha}; {kappa}; intervals draw families {found.how.draws} times", style="dim", soft_wrap=True)


def _named(dimension: DimensionAgreement) -> Iterator[tuple[str, Figure]]:
    for level, figure in dimension.alphas.items():
        yield f"alpha {level}", figure
    for pair in dimension.pairs:
        yield from (("kappa", pair.kappa), ("Pearson", pair.pearson), ("Spearman", pair.spearman))
        yield from (("bias", pair.bias), ("limits", pair.limit_low), ("same", pair.confusion.same))


def _confusion_table(dimension: DimensionAgreement, pair: PairAgreement) -> Table:
    labels = [f"{label:g}" for label in pair.confusion.labels]
    name = (
        f"{dimension.dimension}, nearest {pair.confusion.binned}: {printable(pair.first)} \\ {printable(pair.second)}"
    )
    table = open_table(name, *labels)
    for label, counts in zip(labels, pair.confusion.counts, strict=True):
        table.add_row(label, *(str(count) if count else "." for count in counts))
    return table


def _why(figure: Figure) -> str:
    return figure.reason if isinstance(figure, NotEstimated) else figure.no_interval


def _value(figure: Figure, *, signed: bool = False) -> str:
    if isinstance(figure, NotEstimated):
        return _NONE
    return f"{figure.value:+.2f}" if signed else f"{figure.value:.2f}"


def _shown(figure: Figure, *, signed: bool = False) -> str:
    if isinstance(figure, NotEstimated) or figure.interval is None:
        return _value(figure, signed=signed)
    form = "+.2f" if signed else ".2f"
    return f"{figure.value:{form}} [{figure.interval.low:{form}}, {figure.interval.high:{form}}]"
