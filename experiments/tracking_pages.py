"""What MLflow shows of a comparison, in Markdown: a page for the experiment, and short texts on its runs.

Each figure of a task opens the transcript of an episode behind it. MLflow renders Markdown with working links; HTML is
shown in a frame that its links cannot leave, and a table logged as JSON has none.
"""

from collections.abc import Iterable, Iterator, Sequence

from experiments.comparison import ComparisonRow, ComparisonTable, TaskFigures
from experiments.gate import Beyond, VerdictKind
from experiments.stats import Interval
from experiments.tracking_cells import headline_metrics
from experiments.tracking_links import Links
from experiments.tracking_names import NOTE_CHARS
from experiments.tracking_verdicts import beyond_text, drift_text, p_text, points, reasons_text
from geode.events import preview

_QUESTION_CHARS = 1_000
_REWRITTEN = "GEODE writes this text again when the experiment grows."
_TASK_COLUMNS = ("task", "family")
_VARIANT_COLUMNS = (
    "variant", "verdict", "pass rate", "difference", "generalises", "pairs (McNemar)", "tasks", "cost, USD",
)  # fmt: skip
_SPEND_COLUMNS = {
    "episodes": ("episodes", ".0f"),
    "cost, USD": ("cost_usd_per_episode", ".4f"),
    "tokens in": ("tokens_in_per_episode", ".0f"),
    "tokens out": ("tokens_out_per_episode", ".0f"),
    "model time, s": ("latency_s_per_episode", ".1f"),
    "wall time, s": ("wall_s_per_episode", ".2f"),
    "rounds": ("rounds_per_episode", ".1f"),
    "repairs": ("repairs_per_episode", ".2f"),
    "INVALID": ("invalid", ".0f"),
}


def comparison_page(table: ComparisonTable, links: Links) -> str:
    """Return the whole comparison; it may be as long as it must."""
    return "\n".join(
        [
            f"# {table.experiment.name}: {answer(table)}",
            "",
            _text(table.experiment.question),
            *_warnings(table),
            "",
            _ruler(table),
            "",
            "## Variants",
            "",
            *_table(_VARIANT_COLUMNS, _variant_cells(table, links)),
            "",
            *(f"- **{row.variant}**: {_text(reasons_text(row))}." for row in _ranked(table)),
            "",
            *_beyond(table),
            "## Tasks",
            "",
            "Passes of measured episodes. Each figure opens an episode: a failed one if there is one; its arrows lead"
            " to the others of the same variant and task.",
            "",
            *_task_table(table, links),
            "",
            *_moved(table, links),
            "## What it took",
            "",
            "Means over finished episodes, INVALID ones too.",
            "",
            *_table(("variant", *_SPEND_COLUMNS, "not run"), map(_spend_cells, table.rows)),
            "",
            f"In a terminal: `geode compare {table.experiment.name} --tasks --pairs --usage`; each trace names the"
            " `geode show` of its episode.",
        ]
    )


def experiment_note(table: ComparisonTable, links: Links) -> str:
    """Return the text above the pages of the experiment and on its own run: the answer, and who stands where."""
    # MLflow shows one line of it on every page of the experiment, and the rest when asked.
    head = [
        f"**{answer(table)}.** [Every task, with its transcripts]({links.comparison()})",
        "",
        _text(preview(table.experiment.question, _QUESTION_CHARS)),
        *_warnings(table),
        "",
    ]
    lines = _table(_VARIANT_COLUMNS, _variant_cells(table, links))
    return _within(NOTE_CHARS, head, lines, ["", _ruler(table), "", _REWRITTEN], links)


def cell_note(table: ComparisonTable, row: ComparisonRow, links: Links) -> str:
    """Return the text on the run of a cell: its verdict, why, and its tasks with a transcript each."""
    of_all = f"[all variants]({links.comparison()})"
    if row.verdict is None:
        head = [f"**Baseline**: the other variants are compared with it; see {of_all}.", ""]
        lines = _table(
            (*_TASK_COLUMNS, "passes"), ((*_task_cells(task), _episode(row, task, links)) for task in row.tasks)
        )
    else:
        head = [f"**{row.verdict.kind.value}**: {_text(reasons_text(row))}.", "", *_figures(table, row), ""]
        head += [f"{_link('Its pairs side by side', links.pairs(row.variant))} · {of_all}", ""]
        columns = (*_TASK_COLUMNS, table.baseline.variant, row.variant, "won", "lost")
        lines = _table(columns, _paired_cells(table.baseline, row, links))
    return _within(NOTE_CHARS, head, lines, ["", _REWRITTEN], links)


def outdated_note(note: str) -> str:
    """Return an experiment's note with a first line that says that there is more by now."""
    return preview(
        f"**The experiment has grown since this was written; run its command to the end.**\n\n{note}", NOTE_CHARS - 100
    )


def answer(table: ComparisonTable) -> str:
    """Say in one sentence whom the gate keeps, rejects and cannot judge, and by how much."""
    if not table.candidates:
        return f"{table.baseline.variant} is the only variant: there is nothing to compare it with"
    of_kind = {
        kind: [row for row in _ranked(table) if row.verdict and row.verdict.kind is kind] for kind in VerdictKind
    }
    parts = [f"{row.variant} is better by {_interval(row, ' points')}" for row in of_kind[VerdictKind.KEEP]]
    parts += [f"{row.variant} is worse by {_interval(row, ' points')}" for row in of_kind[VerdictKind.REJECT]]
    if not parts and of_kind[VerdictKind.UNDECIDED]:
        parts = [f"No variant is shown to be better than {table.baseline.variant}"]
    if invalid := len(of_kind[VerdictKind.INVALID]):
        parts += [f"{invalid} of {len(table.candidates)} candidates cannot be judged: their evidence is INVALID"]
    return "; ".join(parts)


def _ranked(table: ComparisonTable) -> list[ComparisonRow]:
    """Return the candidates, the best first, those that cannot be estimated last."""

    def place(row: ComparisonRow) -> tuple[bool, float]:
        difference = row.verdict.difference if row.verdict else None
        return difference is None, -(difference.estimate if difference else 0.0)

    return sorted(table.candidates, key=place)


def _warnings(table: ComparisonTable) -> Iterator[str]:
    for warning in table.warnings:
        yield ""
        yield f"⚠ {_text(warning)}."


def _ruler(table: ComparisonTable) -> str:
    experiment = table.experiment
    ruler = experiment.ruler
    families = len({task.family for task in ruler.tasks})
    return (
        f"Suite {_text(ruler.suite)}: {len(ruler.tasks)} tasks in {families} families, {experiment.repeats} repeats of "
        f"seed {', '.join(map(str, ruler.seeds))}; ruler `{ruler.ruler_id}`. Differences are points to "
        f"{experiment.baseline}, tasks weighing equally; {_intervals_hold(table)}. Pairs: won and lost; tasks: "
        f"better and worse. Drift over the run: {drift_text(table)}."
    )


def _intervals_hold(table: ComparisonTable) -> str:
    together = f" for all {len(table.candidates)} candidates together" if len(table.candidates) > 1 else ""
    return f"intervals hold{together} at {table.experiment.ruler.confidence:.0%}"


def _variant_cells(table: ComparisonTable, links: Links) -> Iterator[Sequence[str]]:
    for row in (table.baseline, *_ranked(table)):
        figures = headline_metrics(row.cell.episodes)
        name, rate = _link(row.variant, links.cell(row.variant)), _figure(figures.get("pass_rate"), ".3f")
        cost = _figure(figures.get("cost_usd_per_episode"), ".4f")
        if row.verdict is None or row.generalises is None:
            yield name, "baseline", rate, "", "", "", "", cost
            continue
        pairs = row.pairs
        won_and_lost = _link(f"+{pairs.only_candidate} -{pairs.only_baseline}", links.pairs(row.variant))
        tasks = f"+{len(pairs.better)} -{len(pairs.worse)}"
        shown = (_interval(row), row.generalises.kind.value, f"{won_and_lost} ({p_text(pairs.p)})", tasks)
        yield name, row.verdict.kind.value, rate, *shown, cost


def _figures(table: ComparisonTable, row: ComparisonRow) -> Iterator[str]:
    yield f"- On these tasks: {_interval(row, ' points')} to {table.baseline.variant}; {_intervals_hold(table)}."
    yield f"- Beyond these tasks: {_text(beyond_text(row))}."
    pairs = row.pairs
    ends = f"{pairs.only_candidate} won, {pairs.only_baseline} lost, {pairs.both + pairs.neither} ended alike"
    yield f"- Pairs: {ends}, {pairs.unmeasured} not measured; McNemar {p_text(pairs.p)}, for this candidate alone."
    yield f"- Episodes: {row.invalid} INVALID, {row.missing} not run. Drift over the run: {drift_text(table)}."


def _beyond(table: ComparisonTable) -> Iterator[str]:
    found = [row.generalises for row in table.candidates if row.generalises]
    if not found:
        return
    yield from ("## Beyond these tasks", "")
    if len(reasons := {row.reason for row in found}) == 1 and all(row.kind is Beyond.NOT_TESTED for row in found):
        yield from (f"{Beyond.NOT_TESTED.value}: {_text(reasons.pop())}.", "")
        return
    yield from (f"Means over {found[0].families} families, each one observation.", "")
    cells = (
        (
            row.candidate,
            row.kind.value,
            _shown(row.difference),
            f"+{row.families_better} -{row.families_worse}",
            row.reason,
        )
        for row in found
    )
    yield from (*_table(("variant", "generalises", "difference", "families", "because"), cells), "")


def _task_table(table: ComparisonTable, links: Links) -> list[str]:
    cells = (
        (*_task_cells(of_task[0]), *(_episode(row, task, links) for row, task in zip(table.rows, of_task, strict=True)))
        for of_task in zip(*(row.tasks for row in table.rows), strict=True)
    )
    return _table((*_TASK_COLUMNS, *(row.variant for row in table.rows)), cells)


def _moved(table: ComparisonTable, links: Links) -> Iterator[str]:
    cells = []
    for row in _ranked(table):
        records = row.records()
        for task in (*row.pairs.better, *row.pairs.worse):
            side = _link("side by side", links.pairs(row.variant, records[task.candidate_key]))
            cells.append((row.variant, task.task_id, str(task.won), str(task.lost), side))
    if cells:
        yield from ("## Tasks better and worse", "")
        yield f"Pairs that {table.baseline.variant} failed and the variant passed, or the reverse; the link opens both."
        yield from ("", *_table(("variant", "task", "won", "lost", "transcripts"), cells), "")


def _paired_cells(baseline: ComparisonRow, row: ComparisonRow, links: Links) -> Iterator[Sequence[str]]:
    """Yield the tasks of a candidate, those that moved first; the variant's figure opens both ends of a pair."""
    moved = {task.task_id: task for task in (*row.pairs.better, *row.pairs.worse)}
    places = {task_id: place for place, task_id in enumerate(moved)}
    records = row.records()
    both = zip(baseline.tasks, row.tasks, strict=True)
    for of_baseline, of_row in sorted(both, key=lambda pair: places.get(pair[0].task.task_id, len(places))):
        task = moved.get(of_row.task.task_id)
        record = records[task.candidate_key] if task else of_row.look_at
        figure = _link(_passes(of_row), links.pairs(row.variant, record) if record else None)
        won_and_lost = (str(task.won), str(task.lost)) if task else ("", "")
        yield *_task_cells(of_row), _passes(of_baseline), figure, *won_and_lost


def _spend_cells(row: ComparisonRow) -> Sequence[str]:
    figures = headline_metrics(row.cell.episodes)
    shown = (_figure(figures.get(name), form) for name, form in _SPEND_COLUMNS.values())
    return row.variant, *shown, str(row.missing)


def _task_cells(task: TaskFigures) -> Sequence[str]:
    return task.task.task_id, task.task.family


def _episode(row: ComparisonRow, task: TaskFigures, links: Links) -> str:
    return _link(_passes(task), links.episode(row.variant, task.look_at) if task.look_at else None)


def _passes(task: TaskFigures) -> str:
    notes = [f"{task.invalid} INVALID"] * bool(task.invalid) + [f"{task.missing} not run"] * bool(task.missing)
    return f"{task.passes}/{task.measured}" + (f" ({', '.join(notes)})" if notes else "")


def _interval(row: ComparisonRow, unit: str = "") -> str:
    return _shown(row.verdict.difference if row.verdict else None, unit)


def _shown(found: Interval | None, unit: str = "") -> str:
    if found is None:
        return "not measured"
    return f"{points(found.estimate)}{unit} ({points(found.low)} to {points(found.high)})"


def _figure(value: float | None, form: str) -> str:
    return "not measured" if value is None else format(value, form)


def _link(text: str, address: str | None) -> str:
    return f"[{text}]({address})" if address else text


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [" | ".join(["", *(_text(cell).replace("|", "\\|") for cell in line), ""]).strip() for line in lines]


def _text(text: str) -> str:
    """Keep free text from ending its line."""
    return " ".join(text.split())


def _within(limit: int, head: Sequence[str], lines: Sequence[str], tail: Sequence[str], links: Links) -> str:
    """Put as many lines between head and tail as `limit` characters hold, and say where the others are."""
    for shown in range(len(lines), -1, -1):
        left_out = len(lines) - shown
        more = ["", f"[{left_out} more]({links.comparison()})"] if left_out else []
        if len(text := "\n".join([*head, *lines[:shown], *more, *tail])) <= limit:
            break
    return text
