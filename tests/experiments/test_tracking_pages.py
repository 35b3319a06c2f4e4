"""The texts in MLflow read as the answer, and each figure of a task opens an episode behind it."""

import re
from dataclasses import replace

from experiments.comparison import ComparisonTable, comparison_table
from experiments.tracking_links import Links
from experiments.tracking_names import NOTE_CHARS
from experiments.tracking_pages import answer, cell_note, comparison_page, experiment_note, outdated_note
from experiments.tracking_store import TrackedExperiment
from experiments.tracking_traces import TraceHome, trace_id_of
from tests.doubles.cells import Letters, make_cells, make_experiment

LETTERS: Letters = {
    "baseline": {"a": "FFFFFF", "b": "FFFFFP", "c": "PPPPPP"},
    "hook": {"a": "PPPPPP", "b": "PPPPPF", "c": "PPPPPP"},
    "bad": {"a": "FFFFFF", "b": "FFFFFF", "c": "FFFFFI"},
}
HOME = TrackedExperiment(experiment_id="7", artifact_location="")


def table(letters: Letters = LETTERS) -> ComparisonTable:
    return comparison_table(make_cells(letters))


def links(found: ComparisonTable) -> Links:
    names = (row.variant for row in found.rows)
    return Links(home=HOME, parent_id="parent", baseline="baseline", run_ids={name: f"run_{name}" for name in names})


def lines(text: str, beginning: str) -> list[str]:
    """The lines that begin so, without the addresses of their links."""
    return [line for line in re.sub(r"\]\([^)]*\)", "]", text).splitlines() if line.startswith(beginning)]


def test_the_note_answers_on_its_first_line() -> None:
    """MLflow shows one line of it on every page of the experiment, and a link in it is one step away."""
    found = table()
    note = experiment_note(found, links(found))
    assert answer(found).startswith("hook is better by +55.6 points (+")
    assert note.startswith(
        f"**{answer(found)}.** [Every task, with its transcripts](#/experiments/7/runs/parent/artifacts/"
    )
    assert "⚠ simulated: says nothing about a language model (simulated/apprentice)." in note
    assert "⚠ episodes that measured nothing are INVALID and in no rate: 1 of bad." in note
    assert [line.split(" | ")[:3] for line in lines(note, "| [")] == [
        ["| [baseline]", "baseline", "0.389"],
        ["| [hook]", "KEEP", "0.944"],
        ["| [bad]", "INVALID", "0.000"],
    ]
    (hook,) = lines(note, "| [hook]")
    assert hook.endswith("| not tested | [+11 -1] (p = 0.0063) | +2 -0 | 0.0125 |")


def test_nobody_better_is_an_answer() -> None:
    """So is somebody worse."""
    same = {"a": "PFPF"}
    assert answer(table({"baseline": same, "hook": same})) == "No variant is shown to be better than baseline"
    worse = table({"baseline": {"a": "P" * 12}, "hook": {"a": "F" * 12}})
    assert answer(worse).startswith("hook is worse by -100.0 points")
    holes = table({"baseline": {"a": "PPPP"}, "hook": {"a": "PPII"}})
    assert answer(holes) == "1 of 1 candidates cannot be judged: their evidence is INVALID"
    assert answer(table({"baseline": same})) == "baseline is the only variant: there is nothing to compare it with"


def test_a_candidate_says_its_verdict_why_and_what_its_pairs_did() -> None:
    """Whoever opens a run from the list has not seen the comparison."""
    found = table()
    note = cell_note(found, found.candidates[0], links(found))
    assert note.startswith("**KEEP**: the whole interval [+")
    assert "- Beyond these tasks: not tested: 3 families, 10 needed." in note
    assert "- Pairs: 11 won, 1 lost, 6 ended alike, 0 not measured; McNemar p = 0.0063" in note
    assert "- Episodes: 0 INVALID, 0 not run. Drift over the run: not tested" in note
    assert lines(note, "| a") == ["| a | a | 0/6 | [6/6] | 6 | 0 |"]
    assert lines(note, "| b") == ["| b | b | 1/6 | [5/6] | 5 | 1 |"]
    assert lines(note, "| c") == ["| c | c | 6/6 | [6/6] |  |  |"]
    assert lines(cell_note(found, found.baseline, links(found)), "| b") == ["| b | b | [1/6] |"]


def test_each_figure_of_a_task_opens_an_episode_of_that_variant_and_task() -> None:
    """One cell of the table to a transcript behind it, in one step."""
    found = table()
    page = comparison_page(found, links(found))
    for place, task in enumerate("abc"):
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {task} | {task} |"))
        opened = re.findall(r"selectedEvaluationId=(tr-[0-9a-f]{32})\)", line)
        looked_at = [row.tasks[place].look_at for row in found.rows]
        assert opened == [
            trace_id_of(TraceHome(experiment=HOME, run_id=f"run_{row.variant}", variant=row.variant), record)
            for row, record in zip(found.rows, looked_at, strict=True)
            if record
        ]
        assert len(opened) == 3
    assert "| c | c | [6/6]" in page
    assert "[0/5 (1 INVALID)]" in page


def test_tasks_better_and_worse_open_the_two_ends_of_a_pair() -> None:
    """Two transcripts tell what a difference of rates does not."""
    found = table()
    page = comparison_page(found, links(found))
    assert lines(page, "| hook | a") == ["| hook | a | 6 | 0 | [side by side] |"]
    assert lines(page, "| bad | b") == ["| bad | b | 0 | 1 | [side by side] |"]
    assert page.count("runs/run_bad/traces?compareToRunUuid=run_baseline&selectedEvaluationId=tr-") == 2


def test_the_task_of_a_candidate_opens_a_pair_that_fell_the_way_it_moved() -> None:
    """`b` was won five times and lost once: a look at the one loss would mislead."""
    found = table()
    row = found.candidates[0]
    (line,) = (line for line in cell_note(found, row, links(found)).splitlines() if line.startswith("| b |"))
    won = row.records()[row.pairs.better[1].candidate_key]
    home = TraceHome(experiment=HOME, run_id="run_hook", variant="hook")
    assert (row.pairs.better[1].task_id, won.outcome.kind.value) == ("b", "PASS")
    assert f"selectedEvaluationId={trace_id_of(home, won)})" in line


def test_families_that_agree_are_told_with_their_interval() -> None:
    """The statement beyond the tasks at hand stands apart, with its own error."""
    tasks = "abcdefghijkl"
    uneven = {task: "PPPPPPFF".replace("F", "P", place % 2) for place, task in enumerate(tasks)}
    found = table({"baseline": dict.fromkeys(tasks, "FFFFPPFF"), "hook": uneven})
    (line,) = lines(comparison_page(found, links(found)), "| hook | generalises |")
    assert line.startswith("| hook | generalises | +56.2 (+")
    assert "| +12 -0 | the whole interval" in line


def test_a_note_that_would_be_too_long_says_where_the_rest_is() -> None:
    """MLflow refuses a description of more than 8,000 characters, and the whole would be lost."""
    tasks = [f"task_{number:03}" for number in range(200)]
    found = table({name: dict.fromkeys(tasks, "PF") for name in ("baseline", "hook")})
    for row in found.rows:
        note = cell_note(found, row, links(found))
        assert len(note) <= NOTE_CHARS
        assert len(outdated_note(note)) <= NOTE_CHARS
        shown = len(lines(note, "| task_"))
        assert 20 < shown < 200
        assert f"[{200 - shown} more]" in lines(note, "[")[-1]
    assert len(lines(comparison_page(found, links(found)), "| task_")) == 200


def test_free_text_does_not_break_a_table_or_a_page() -> None:
    """Questions and names of families are anybody's."""
    cells = make_cells(LETTERS, make_experiment(LETTERS).model_copy(update={"question": "Is a | b?\n\n# No\n" * 400}))
    found = comparison_table(cells)
    note = experiment_note(found, links(found))
    assert len(note) <= NOTE_CHARS
    assert "\n# No" not in note
    task = found.rows[0].tasks[0]
    piped = replace(task, task=task.task.model_copy(update={"family": "a|b\nc"}))
    odd = replace(found, rows=tuple(replace(row, tasks=(piped, *row.tasks[1:])) for row in found.rows))
    assert "| a | a\\|b c | [0/6]" in re.sub(r"\]\([^)]*\)", "]", comparison_page(odd, links(odd)))
