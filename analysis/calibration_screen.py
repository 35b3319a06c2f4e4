"""The calibration of a judge and its thresholds, as a person and as a program reads them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from analysis.calibrations import Measured
from analysis.terminal import open_table, printable
from judges.calibration import Calibration
from judges.reliability_plot import shown
from judges.resampling import FAMILIES_FEW, Estimate

SCHEMA = "geode.calibration/1"


def print_calibration(console: Console, measured: Sequence[Measured]) -> None:
    """Print each dimension: what it rests on, the errors, the bins, and the threshold."""
    for of in measured:
        found = of.forecasts
        by = ", ".join(map(printable, found.served_models)) or "no model"
        heading = f"{found.dimension} by {printable(found.judge)} (served by {by})"
        console.print(Text(heading, style="bold"))
        left_out = "".join(f"; {count} {why}" for why, count in found.left_out.items())
        against = f"against {printable(found.against)}: {len(found.forecasts)} episodes{left_out}"
        console.print(against, soft_wrap=True, markup=False)
        if of.calibration is not None:
            _print_errors(console, of.calibration)
        else:
            console.print(printable(of.no_calibration), style="yellow", soft_wrap=True, markup=False)
        _print_threshold(console, of)
        console.print()


def calibration_to_json(measured: Sequence[Measured], problems: Iterable[str]) -> str:
    """Return the whole as JSON text, forecasts of single episodes included."""
    body: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "dimensions": [_to_json(of) for of in measured],
        "problems": list(problems),
    }
    return json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False)


def _to_json(of: Measured) -> dict[str, JsonValue]:
    calibration = None
    if of.calibration is not None:
        calibration = asdict(of.calibration)
        del calibration["forecasts"]  # they stand beside it
    return {
        "forecasts": asdict(of.forecasts),
        "calibration": calibration,
        "no_calibration": of.no_calibration,
        "threshold": of.threshold.model_dump(mode="json", by_alias=True) if of.threshold else None,
        "no_threshold": of.no_threshold,
        "counted_good": of.counted_good if of.threshold else None,
    }


def _print_errors(console: Console, found: Calibration) -> None:
    level = f"{found.how.confidence:.0%}"
    few = " (few: intervals are rough)" if found.families < FAMILIES_FEW else ""
    by_chance = "" if found.ece_by_chance is None else f"; a calibrated judge would have {found.ece_by_chance:.3f}"
    console.print(
        f"{found.families} families{few}; {level} intervals by family; from its {found.forecasts.basis}\n"
        f"good are {shown(found.base_rate)}\n"
        f"Brier score {shown(found.brier)}\n"
        f"expected calibration error {shown(found.ece)}, {len(found.bins)} bins of equal mass{by_chance}",
        markup=False,
    )
    table = open_table("expected from", "to", "mean", f"came true [{level}]", "episodes", "families")
    for each in found.bins:
        counts = (str(each.count), str(each.families))
        table.add_row(f"{each.low:.2f}", f"{each.high:.2f}", f"{each.expected:.2f}", shown(each.came_true), *counts)
    console.print(table)
    if any(isinstance(each.came_true, Estimate) and each.came_true.interval is None for each in found.bins):
        console.print("a bin whose episodes all ended alike has no interval", style="dim")


def _print_threshold(console: Console, of: Measured) -> None:
    threshold = of.threshold
    if threshold is None:
        style = "yellow" if of.refused else "dim"
        console.print(printable(of.no_threshold), style=style, soft_wrap=True, markup=False)
        return
    accuracy = f"not known ({threshold.no_accuracy})"
    if threshold.accuracy is not None:
        accuracy = f"{threshold.accuracy:.3f}"
        if threshold.accuracy_low is not None and threshold.accuracy_high is not None:
            accuracy += f" [{threshold.accuracy_low:.3f}, {threshold.accuracy_high:.3f}]"
    console.print(
        f"threshold: good from {threshold.threshold:.3f} on ({threshold.basis}), which {of.counted_good} of"
        f" {len(of.forecasts.forecasts)} reach; balanced accuracy on held-out families {accuracy};"
        f" fitted {threshold.at} on {threshold.episodes} episodes against {printable(threshold.against)}",
        soft_wrap=True,
        markup=False,
    )
