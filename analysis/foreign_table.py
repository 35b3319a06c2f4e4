"""Foreign logs on one screen: what could be paired, the difference of each score, what it took, and what limits it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.compare_table import VERDICT_STYLE
from analysis.foreign import LogsRefused
from analysis.foreign_compare import LogComparison, LogPair, LogSide, LogSpend
from analysis.foreign_pair import Bounds, ScoreRow
from analysis.foreign_tasks import commands, moved_table, transcripts, unpaired
from analysis.terminal import open_table, printable
from experiments.overrides import nearest

_VALUE_CHARS_MAX = 60
_DIFFERENCES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScreen:
    """What a screen shows: `tasks` every task with its transcripts, `scores` these alone; `root` is for our own."""

    tasks: bool = False
    scores: tuple[str, ...] = ()
    root: str = ""


def print_log_comparison(console: Console, comparison: LogComparison, screen: LogScreen) -> None:
    """Print the screen.

    Raises:
        LogsRefused: if a score was asked for that no pair has.
    """
    scores = _chosen(comparison, screen.scores)
    parts: list[RenderableType] = [_header(comparison), *_warnings(comparison, full=screen.tasks), Text()]
    parts += [_main_table(comparison, scores), _legend(comparison, scores)]
    if any(row.mcnemar for _, row in _rows(comparison, scores)):
        parts += [Text("\nPairs of passes and failures (p decides nothing)", style="bold")]
        parts += [_pair_table(comparison, scores)]
    parts += [Text(), *moved_table(comparison, scores, console.width, full=screen.tasks)]
    parts += [
        Text("\nMeans over paired attempts (others: judges and auditors)", style="bold"),
        _spend_table(comparison),
    ]
    parts += [
        Text(),
        *unpaired(comparison, full=screen.tasks),
        _drift(comparison),
        *_beyond(comparison, scores),
        *_verdicts(comparison),
    ]
    console.print(Group(*parts))
    if screen.tasks:
        console.print(transcripts(comparison, scores, screen.root), soft_wrap=True)
    console.print(commands(comparison, scores, screen.root, full=screen.tasks), soft_wrap=True)


def _chosen(comparison: LogComparison, wanted: Sequence[str]) -> tuple[str, ...]:
    names = list(dict.fromkeys(row.score for pair in comparison.pairs for row in pair.found.rows))
    for name in wanted:
        if name not in names:
            raise LogsRefused(f"no score {name!r} in these logs{nearest(name, names)}; there are {', '.join(names)}")
    return tuple(name for name in names if not wanted or name in wanted)


def _rows(comparison: LogComparison, scores: Sequence[str]) -> Iterator[tuple[LogPair, ScoreRow]]:
    """Yield score by score, each with every log that has it."""
    for score in scores:
        for pair in comparison.pairs:
            for row in pair.found.rows:
                if row.score == score:
                    yield pair, row


def _header(comparison: LogComparison) -> Text:
    lines = []
    for log in comparison.logs:
        invalid = f" ({log.invalid} INVALID)" if log.invalid else ""
        about = f"{printable(log.subject)}; attempts: {log.attempts}{invalid}{_when(log)}"
        lines.append(Text.assemble((f"{log.letter}  ", "bold"), printable(log.name), "\n   ", (about, "dim")))
    for letters, text in _grouped((pair.letter, _paired(pair)) for pair in comparison.pairs):
        lines.append(Text(f"{comparison.harness}, A and {letters}: {text}"))
    return Text("\n").join(lines)


def _when(log: LogSide) -> str:
    """Return when the attempts began, as the log has it; of one day the date once."""
    if log.first_start is None or log.last_start is None:
        return ""
    first, last = (text[:16].replace("T", " ") for text in (log.first_start, log.last_start))
    return f", {first}" + (f" to {last[11:] if last[:10] == first[:10] else last}" if last != first else "")


def _paired(pair: LogPair) -> str:
    found = pair.found
    measured = f"{found.measured} measured in both"
    if found.invalid_first or found.invalid_second:
        measured += f" (INVALID: {found.invalid_first} in A, {found.invalid_second} in {pair.letter})"
    alone = f"{len(found.only_first)} only in A, {len(found.only_second)} only in {pair.letter}, and in no figure"
    return f"{found.paired} paired by task and attempt, {measured}" + (
        f"; {alone}" if found.only_first or found.only_second else ", none left over"
    )


def _grouped(told: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each text once, with the letters of all logs that it is told of."""
    letters: dict[str, list[str]] = {}
    for letter, text in told:
        letters.setdefault(text, []).append(letter)
    for text, of in letters.items():
        yield ", ".join(of), text


def _warnings(comparison: LogComparison, *, full: bool) -> Iterator[Text]:
    for warning in comparison.warnings:
        yield Text(printable(warning), style="yellow")
    shown = comparison.ruler_differences if full else comparison.ruler_differences[:_DIFFERENCES_SHOWN]
    for difference in shown:
        logs: dict[str, list[str]] = {}
        for log, value in zip(comparison.logs, difference.values, strict=True):
            logs.setdefault(value, []).append(log.letter)
        values = "; ".join(f"{_shortened(value)} in {', '.join(letters)}" for value, letters in logs.items())
        what = "the rulers differ in" if difference.strict else "also different:"
        yield Text(printable(f"{what} {difference.name}: {values}"), style="yellow" if difference.strict else "dim")
    if hidden := len(comparison.ruler_differences) - len(shown):
        yield Text(f"and {hidden} more differences: --tasks", style="dim")


def _shortened(value: str) -> str:
    """Keep the end: of two long paths it tells more than the beginning."""
    return value if len(value) <= _VALUE_CHARS_MAX else f"…{value[1 - _VALUE_CHARS_MAX :]}"


def _main_table(comparison: LogComparison, scores: Sequence[str]) -> Table:
    rows = list(_rows(comparison, scores))
    several = len(comparison.pairs) > 1
    unscored = any(row.unscored_first or row.unscored_second for _, row in rows)
    second = "log" if several else "B"
    level = f"{100 * comparison.confidence:g} %"
    headers = ["pairs", *([f"unscored A, {second}"] if unscored else []), "A", second]
    table = open_table("score", *([""] if several else []), *headers, f"{second} - A [{level}]", "tasks")
    told = ""
    for pair, row in rows:
        cells = [
            "" if row.score == told else printable(row.score),
            *([pair.letter] if several else []),
            str(row.pairs),
            *([f"{row.unscored_first}, {row.unscored_second}"] if unscored else []),
            _figure(row.first),
            _figure(row.second),
        ]
        table.add_row(*map(Text, cells), _difference(row), f"+{len(row.better)} -{len(row.worse)}")
        told = row.score
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _difference(row: ScoreRow) -> Text:
    if row.difference is None:
        return Text("no pair", style="dim")
    shown = f"{row.difference + 0.0:+.2f}"
    if row.interval is None:
        return Text(f"{shown} no interval  ", style="dim")
    return Text(f"{shown} {_interval(row.interval)}", style="bold" if row.interval.side else "")


def _interval(bounds: Bounds) -> str:
    return f"[{bounds.low:+.2f}, {bounds.high:+.2f}]{'*' if bounds.side else ' '}"


def _legend(comparison: LogComparison, scores: Sequence[str]) -> Text:
    rows = [row for _, row in _rows(comparison, scores)]
    count = sum(len(pair.found.rows) for pair in comparison.pairs)
    levels = list(dict.fromkeys(pair.found.level for pair in comparison.pairs))
    text = (
        "\nMeans over tasks, which weigh equally, of the pairs with a value in both.  tasks: how many are higher and"
        f" lower.  The intervals tell what holds {' and '.join(levels)}"
    )
    text += f", all {count} together" if count > 1 else ""
    text += "; * leaves out zero."
    if any(row.interval is None and row.difference is not None for row in rows):
        text += "  No interval: no difference varies, or there is one pair."
    if any(row.interval is not None and row.interval.standard_error is None for row in rows):
        text += "  One pair leaves the whole range of a difference."
    if not set(scores) <= set(comparison.passes_and_failures):
        text += "  Whether more is better depends on the score."
    return Text(text, style="dim")


def _pair_table(comparison: LogComparison, scores: Sequence[str]) -> Table:
    several = len(comparison.pairs) > 1
    headers = ("both pass", "only A", "only log" if several else "only B", "neither", "p (McNemar, exact)")
    table = open_table("score", *([""] if several else []), *headers)
    for pair, row in _rows(comparison, scores):
        if (found := row.mcnemar) is not None:
            counts = (found.both, found.only_first, found.only_second, found.neither)
            letter = [pair.letter] if several else []
            table.add_row(Text(printable(row.score)), *letter, *map(str, counts), f"{found.p:.4f}")
    return table


_SPENT: tuple[tuple[str, Callable[[LogSpend], float | None], str], ...] = (
    ("tokens", lambda spend: spend.tokens, ",.0f"),
    ("of others", lambda spend: spend.other_tokens, ",.0f"),
    ("cost $", lambda spend: spend.cost_usd, ".4f"),
    ("time s", lambda spend: spend.wall_s, ",.1f"),
    ("turns", lambda spend: spend.turns, ".1f"),
    ("calls", lambda spend: spend.tool_calls, ".1f"),
    ("failed", lambda spend: spend.tool_errors, ".2f"),
    ("repairs", lambda spend: spend.repairs, ".2f"),
)


def _spend_table(comparison: LogComparison) -> Table:
    """Show what any log tells of. Tokens and cost are those of what is compared; others are judges and auditors."""
    kinds = [kind for kind in _SPENT if any(kind[1](log.spend) is not None for log in comparison.logs)]
    table = open_table("log", "attempts", *(name for name, _, _ in kinds))
    for log in comparison.logs:
        table.add_row(log.letter, str(log.spend.attempts), *_spent(log, kinds))
    return table


def _spent(log: LogSide, kinds: Sequence[tuple[str, Callable[[LogSpend], float | None], str]]) -> Iterator[str]:
    for _, pick, form in kinds:
        value = pick(log.spend)
        yield "–" if value is None else format(value, form)


def _drift(comparison: LogComparison) -> Text:
    if not comparison.drift:
        return Text("Drift over time: not tested: in no log does a task vary over attempts whose times are known.")
    most = comparison.drift[0]
    shown = f"smallest p = {most.p:.4f}, of {len(comparison.drift)} series"
    return Text(f"Drift over time: {'found, see above' if comparison.drifted else 'none found'} ({shown}).")


def _beyond(comparison: LogComparison, scores: Sequence[str]) -> Iterator[Text]:
    untested = [(p.letter, p.found.not_over_families) for p in comparison.pairs if p.found.not_over_families]
    for letters, why in _grouped(untested):
        yield Text(f"Beyond these tasks, {letters}: not tested: {why}.")
    for pair, row in _rows(comparison, scores):
        if row.over_families is not None:
            shown = _interval(row.over_families).rstrip()
            yield Text(
                printable(f"Beyond these tasks, {pair.letter} - A of {row.score}: {shown}")
                + f" over {pair.found.families} families, each one observation."
            )


def _verdicts(comparison: LogComparison) -> Iterator[Text]:
    for kind in dict.fromkeys(pair.verdict.kind for pair in comparison.pairs):
        of_kind = [pair for pair in comparison.pairs if pair.verdict.kind is kind]
        told = [(pair.letter, reason.text) for pair in of_kind for reason in pair.verdict.reasons]
        for letters, text in _grouped(told):
            yield Text.assemble(f"{letters}: ", (kind, VERDICT_STYLE[kind]), printable(f": {text}."))
