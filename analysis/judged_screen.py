"""Variants compared by judged values, as a person and as a program reads it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from analysis.compare_table import VERDICT_STYLE
from analysis.terminal import open_table, printable
from experiments.gate import Verdict
from experiments.judged import JudgedArm, JudgedEvidence
from judges.rubric import Rubric

SCHEMA = "geode.judged_comparison/1"
Decided = Sequence[tuple[JudgedEvidence, Sequence[Verdict]]]


def print_judged(console: Console, judge: str, rubric: Rubric, decided: Decided, confidence: float) -> None:
    """Print a table for each dimension: means with what is missing from them, differences and verdicts."""
    nothing = [evidence.dimension for evidence, _ in decided if not any(arm.scored for arm in evidence.arms)]
    for evidence, verdicts in decided:
        if evidence.dimension in nothing:
            continue
        dimension = rubric.dimension(evidence.dimension)
        heading = (
            f"{dimension.name} by {printable(judge)}, normalised: 1 is the good end ({dimension.direction} is better)"
        )
        console.print(Text(heading, style="bold"))
        table = open_table(
            "variant", "mean", "scored", "unscored", "INVALID", f"difference [{confidence:.0%}]", "verdict"
        )
        by_name = {verdict.candidate: verdict for verdict in verdicts}
        for arm in evidence.arms:
            verdict = by_name.get(arm.name)
            kind = Text(verdict.kind, style=VERDICT_STYLE[verdict.kind]) if verdict else ""
            table.add_row(printable(arm.name), *_figures(arm), _difference(verdict), kind)
        console.print(table)
        for verdict in verdicts:
            for reason in verdict.reasons:
                console.print(f"{printable(verdict.candidate)}: {printable(reason.text)}", soft_wrap=True, markup=False)
        console.print()
    if nothing:
        console.print(f"nothing is scored on {', '.join(nothing)}", style="dim", soft_wrap=True)
    console.print("each dimension is a question of its own; its intervals hold for all variants together", style="dim")


def judged_to_json(judge: str, rubric: Rubric, decided: Decided, problems: Iterable[str]) -> str:
    """Return the comparison as JSON text."""
    body: dict[str, JsonValue] = {
        "schema": SCHEMA,
        "judge": judge,
        "rubric": rubric.name,
        "rubric_id": rubric.rubric_id,
        "dimensions": [
            {
                "dimension": evidence.dimension,
                "variants": [asdict(arm) for arm in evidence.arms],
                "verdicts": [asdict(verdict) for verdict in verdicts],
            }
            for evidence, verdicts in decided
        ],
        "problems": list(problems),
    }
    return json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False)


def _figures(arm: JudgedArm) -> tuple[str, str, str, str]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(arm.unscored.items()))
    not_judged = f"{arm.not_judged} not judged" if arm.not_judged else ""
    unscored = ", ".join(filter(None, (reasons, not_judged))) or "0"
    return "–" if arm.mean is None else f"{arm.mean:.3f}", str(arm.scored), unscored, str(arm.invalid)


def _difference(verdict: Verdict | None) -> str:
    if verdict is None or verdict.difference is None:
        return "" if verdict is None else "–"
    found = verdict.difference
    return f"{found.estimate:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
