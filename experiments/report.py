"""What a command says at its end: the result, for a person and as JSON, and the exit code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from pydantic import JsonValue
from rich.console import Console

from experiments.progress import Counts, counts_table, pass_rate
from experiments.suite import OutcomeKind

_SHOWN = 10  # lines of one kind; a thousand say no more than ten


class ExitCode(IntEnum):
    """How `geode run` and `geode sweep` end."""

    DONE = 0
    INVALID = 1
    REFUSED = 2
    SINK_FAILED = 3
    OVER_BUDGET = 4
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How one command ended. `counts` has all outcomes of the planned cells, `ran` only what this command added.

    `stopped` says why it did not come to its end and what to do; `over_budget` that a cap of its budget is the reason.
    `found` are episodes that were to run here, and that another process has run meanwhile.
    """

    experiment: str
    counts: Counts
    planned: int
    ran: int
    to_run: int
    invalid_reasons: Mapping[str, int]
    sink_problems: Sequence[str]
    found: int = 0
    interrupted: bool = False
    stopped: str = ""
    over_budget: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """The gravest of what happened."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.sink_problems:
            return ExitCode.SINK_FAILED
        if self.over_budget:
            return ExitCode.OVER_BUDGET
        invalid = any(of_variant.get(OutcomeKind.INVALID) for of_variant in self.counts.values())
        return ExitCode.INVALID if invalid or self.stopped else ExitCode.DONE


def report_to_json(report: Report) -> dict[str, JsonValue]:
    """Return the report as JSON values."""
    return {
        "schema": "geode.run_report/1",
        "experiment": report.experiment,
        "exit_code": int(report.exit_code),
        "planned": report.planned,
        "to_run": report.to_run,
        "ran": report.ran,
        "found": report.found,
        "variants": {name: counts_to_json(counts) for name, counts in report.counts.items()},
        "invalid_reasons": dict(report.invalid_reasons),
        "sink_problems": list(report.sink_problems),
        "stopped": report.stopped,
    }


def print_report(report: Report, console: Console) -> None:
    """Show the report, and what to do next."""
    console.print(counts_table(report.counts))
    for line in _lines(report):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _lines(report: Report) -> Iterator[str]:
    reused = report.planned - report.to_run
    found = f"{report.found} run by another process, " if report.found else ""
    yield f"{report.experiment}: {report.ran} episodes run, {found}{reused} reused, {report.planned} in all."
    for reason, times in sorted(report.invalid_reasons.items(), key=lambda pair: -pair[1])[:_SHOWN]:
        yield f"INVALID {times} x {reason}"
    if any(of_variant.get(OutcomeKind.INVALID) for of_variant in report.counts.values()):
        yield (
            "INVALID episodes measured nothing. To run them again: the same command with invalid=rerun;"
            " if you mend the suite, under another name=..."
        )
    for problem in report.sink_problems:
        yield f"sink failed: {problem}"
    if report.sink_problems:
        yield "No episode is lost. Repair the cause, then: geode archive rebuild"
    if report.interrupted:
        yield "Interrupted. What is done is kept; run the same command again to go on."
    elif report.stopped:
        yield f"Stopped: {report.stopped}"
        left = report.to_run - report.ran - report.found
        yield f"{left} of {report.to_run} episodes are still to run; what is done is kept."
    else:
        yield f"Next: geode compare {report.experiment}"


def counts_to_json(counts: Mapping[OutcomeKind, int]) -> dict[str, JsonValue]:
    """Return how often each outcome came, and the share of passes among what was measured."""
    return {kind.value: counts.get(kind, 0) for kind in OutcomeKind} | {"pass_rate": pass_rate(counts)}
