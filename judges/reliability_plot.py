"""A reliability diagram as a picture: what a judge expected against what came true, with how much stands behind it."""

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from judges.calibration import Calibration
from judges.resampling import FAMILIES_FEW, Estimate, Figure

SUFFIXES = (".png", ".svg")

_INK, _GOOD, _BAD, _DIAGONAL = "#1b4f72", "#5dade2", "#d5d8dc", "#7f8c8d"
_WIDTH_IN, _HEIGHT_IN, _DPI = 7.0, 8.4, 150
_TITLE_CHARS = 88
_HISTOGRAM_BINS = 20


def draw_reliability(calibration: Calibration, path: Path) -> None:
    """Draw the diagram into `path`, whose suffix says which kind of picture it is.

    Raises:
        ValueError: if the suffix is neither .png nor .svg, or there is no forecast to draw.
        OSError: if it cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} is no name of a picture: it must end in {' or '.join(SUFFIXES)}")
    if not calibration.bins:
        raise ValueError("there is no forecast to draw")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a salt an SVG would have other ids at each drawing.
    with rc_context({"svg.hashsalt": "geode", "svg.fonttype": "none", "font.size": 10}):
        picture = Picture(figsize=(_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        above, below = picture.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (4, 1)})
        _draw_rates(above, calibration)
        _draw_counts(below, calibration)
        picture.suptitle(_title(calibration), fontsize=10.5, parse_math=False)
        picture.legend(loc="outside lower center", ncols=2, fontsize=8.5, frameon=False)
        picture.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _title(calibration: Calibration) -> str:
    found = calibration.forecasts
    model = ", ".join(found.served_models) or "no model"
    by_chance = "" if calibration.ece_by_chance is None else f"; by chance alone {calibration.ece_by_chance:.3f}"
    few = " (few: intervals are rough)" if calibration.families < FAMILIES_FEW else ""
    lines = (
        f"{found.judge}, served by {model}: {found.dimension}, from its {found.basis}",
        f"against {found.against}; n = {calibration.count} in {calibration.families} families{few}",
        f"Brier {shown(calibration.brier)}, ECE {shown(calibration.ece)}{by_chance}",
    )
    return "\n".join(fill(line, _TITLE_CHARS) for line in lines)


def _draw_rates(axes: Axes, calibration: Calibration) -> None:
    bins = calibration.bins
    axes.plot([0, 1], [0, 1], linestyle="--", color=_DIAGONAL, label="comes true as often as expected")
    if isinstance(calibration.base_rate, Estimate):
        rate = calibration.base_rate.value
        axes.axhline(rate, linestyle=":", color=_DIAGONAL, label=f"share of all that is good, {rate:.2f}")
    drawn = [(each, each.came_true) for each in bins if isinstance(each.came_true, Estimate)]
    expected, rates = [each.expected for each, _ in drawn], [rate.value for _, rate in drawn]
    counts = sorted({each.count for each in bins})
    size = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    axes.hlines(rates, [each.low for each, _ in drawn], [each.high for each, _ in drawn], color=_INK, alpha=0.25)
    axes.plot(expected, rates, color=_INK, marker="o", label=f"mean of a bin of {size} episodes, and its width")
    known = [(at, rate.interval) for at, (_, rate) in zip(expected, drawn, strict=True) if rate.interval]
    axes.vlines(
        [at for at, _ in known],
        [interval.low for _, interval in known],
        [interval.high for _, interval in known],
        color=_INK,
        alpha=0.6,
        linewidth=2.5,
        label=f"{calibration.how.confidence:.0%} interval by family, none where all ended alike",
    )
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="share of episodes that is good")
    axes.grid(alpha=0.2)


def _draw_counts(axes: Axes, calibration: Calibration) -> None:
    """Draw how many episodes have which forecast, in steps of equal width: bins of equal mass look alike."""
    found = calibration.forecasts.forecasts
    edges = np.linspace(0, 1, _HISTOGRAM_BINS + 1)
    good, bad = (np.histogram([f.expected for f in found if f.good is kind], edges)[0] for kind in (True, False))
    width = 1 / _HISTOGRAM_BINS
    axes.bar(edges[:-1], good, width, align="edge", color=_GOOD, edgecolor="white", label="episodes that are good")
    top = axes.bar(
        edges[:-1], bad, width, good, align="edge", color=_BAD, edgecolor="white", label="episodes that are not"
    )
    axes.bar_label(top, [str(count) if count else "" for count in (good + bad).tolist()], fontsize=8, padding=1)
    axes.set(
        ylim=(0, 1.2 * max(1, (good + bad).max())),
        xlabel="expected probability that the episode is good",
        ylabel="episodes",
    )
    axes.grid(axis="y", alpha=0.2)


def shown(figure: Figure) -> str:
    """Return a figure with its interval as text, or why there is none."""
    if not isinstance(figure, Estimate):
        return f"not computed ({figure.reason})"
    if figure.interval is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.interval.low:.3f}, {figure.interval.high:.3f}]"
