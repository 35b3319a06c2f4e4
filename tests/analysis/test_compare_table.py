"""The screen that a comparison ends on: everything that limits the reading stands on it."""

import io

import pytest
from rich.console import Console

from analysis.compare import compare
from analysis.compare_table import print_comparison
from analysis.truth import distil_truth
from tests.doubles.cells import Letters, drawn, make_cells

TASKS = ("fix_a", "fix_b", "csv_c", "csv_d")
RATES = {"baseline": 0.3, "hook": 0.9, "placebo": 0.3, "a_harmful_prompt_with_a_long_name": 0.02}
LETTERS = drawn({name: dict.fromkeys(TASKS, rate) for name, rate in RATES.items()}, repeats=20, seed=2)


def screen(letters: Letters = LETTERS, *, width: int = 120, root: str = "", truth_of: int = 0) -> str:
    cells = make_cells(letters)
    truth = distil_truth(cells[:truth_of], "t") if truth_of else None
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_comparison(console, compare(cells, "baseline", truth=truth), tasks=True, pairs=True, usage=True, root=root)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_screen_says_what_was_measured_with_what() -> None:
    """A table without its ruler cannot be compared with the next one."""
    text = screen()
    for fact in ("Which hook helps?", "4 tasks in 2 families", "20 repeats", "seed 1", "paired_fixed at 95 %"):
        assert fact in text
    assert make_cells(LETTERS)[0].experiment.ruler.ruler_id in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(width: int) -> None:
    """An interval with its end cut off is another interval."""
    text = screen(width=width, truth_of=4)
    tables = text[: text.index("\n  geode show")]  # commands are not folded: they are there to be copied
    assert max(len(line) for line in tables.splitlines()) <= width
    assert "…" not in text
    for verdict in ("KEEP", "REJECT", "UNDECIDED"):
        assert verdict in text


def test_a_simulated_table_says_so_and_shows_the_truth_or_that_it_is_unknown() -> None:
    """The truth column is there to judge the gate by; one that was not measured is not guessed, nor given a column."""
    assert "simulated: says nothing about a language model" in screen()
    assert "truth" not in screen()
    assert "truth: the same difference in a long run" in screen(truth_of=4)
    assert screen(truth_of=4).count("not measured") == 0
    assert screen(truth_of=2).count("not measured") == 2


def test_what_is_measured_in_what_unit_is_told() -> None:
    """A price may be that of an episode or of all of them; of one candidate there is no "all"."""
    told = " ".join(screen().split())
    assert "the intervals hold for all 3 candidates together" in told
    assert "cost: mean of an episode" in told
    assert "together" not in screen({name: LETTERS[name] for name in ("baseline", "hook")})


def test_what_the_naive_rule_would_have_done_is_one_line() -> None:
    """The reader sees what they would have believed without an error bar."""
    line = next(line for line in screen().splitlines() if line.startswith("A comparison by point estimate"))
    assert "hook" in line
    assert line.rstrip().endswith("The gate keeps: hook.")


def test_every_moved_task_names_two_episodes_to_look_at() -> None:
    """From a task that got worse it is one step to what happened, and one to what happened without the hook."""
    cells = make_cells({"baseline": {"fix_a": "FFPP", "fix_b": "PPPP"}, "hook": {"fix_a": "PPPP", "fix_b": "PFPP"}})
    console = Console(file=io.StringIO(), width=120, highlight=False)
    print_comparison(console, compare(cells, "baseline"), pairs=True)
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["hook", "5", "1", "2", "0", "0", "1.0000"] in lines
    by_name = {cell.variant.name: [stored.record.episode_key[:12] for stored in cell.episodes] for cell in cells}
    assert ["hook", "fix_a", "2", "0", by_name["hook"][0], by_name["baseline"][0]] in lines
    assert ["fix_b", "0", "1", by_name["hook"][5], by_name["baseline"][5]] in lines


@pytest.mark.parametrize("width", [80, 120])
def test_behind_every_figure_of_a_task_stands_an_episode(width: int) -> None:
    """From a cell of the table to its transcript is one command, however narrow the terminal."""
    letters = {"baseline": {"fix_a": "FFPP", "fix_b": "PPPP"}, "hook": {"fix_a": "PPPI", "fix_b": "PF.P"}}
    letters |= {f"placebo_{number}": letters["baseline"] for number in range(7)}
    cells = make_cells(letters)
    text = screen(letters, width=width)
    table = text[text.index("Pass rate by task") : text.index("Pairs:")]
    keys = {
        (cell.variant.name, stored.record.task_id, stored.record.repetition): stored.record.episode_key
        for cell in cells
        for stored in cell.episodes
    }
    shown = [("baseline", "fix_a", 0), ("baseline", "fix_b", 0), ("hook", "fix_a", 3), ("hook", "fix_b", 1)]
    for place in shown:  # a failed episode, else an INVALID one, else any
        assert keys[place][:8] in table
    assert "1 INVALID" in table
    assert "1 missing" in table
    first = next(line.split() for line in table.splitlines() if line.startswith("fix_a"))
    rates = ["fix_a", "50", "100", *["50"] * 7]  # a column a variant, or a line
    assert first == (rates if width == 120 else ["fix_a", "baseline", "50", keys[shown[0]][:12]])


def test_ten_families_get_a_table_of_their_own() -> None:
    """What holds on these tasks and what holds beyond them are two statements, and both have an interval."""
    tasks = [f"f{number}_{place}" for number in range(11) for place in "ab"]
    rates = {"baseline": dict.fromkeys(tasks, 0.3), "hook": dict.fromkeys(tasks, 0.9)}
    text = screen(drawn({**rates, "placebo": rates["baseline"]}, repeats=4, seed=4), width=100)
    table = text[text.index("means over 11 families") :]
    assert "generalises" in next(line for line in table.splitlines() if line.startswith("hook"))
    assert "does not" in next(line for line in table.splitlines() if line.startswith("placebo"))
    assert "Beyond these tasks: not tested: 2 families, 10 needed." in screen()


def test_reasons_that_the_interval_does_not_tell_are_told() -> None:
    """An INVALID without its reason leads nowhere."""
    text = screen({"baseline": {"a": "PFPF"}, "hook": {"a": "PPIP"}, "late": {"a": "PP.."}})
    assert "hook: 1 of 4 episodes of 'hook' are INVALID" in text
    assert "late: 2 of 4 episodes of 'late' have not run" in text
    assert "2 missing" in text


def test_a_reason_of_all_is_told_once() -> None:
    """A broken baseline is one fact, not six."""
    text = " ".join(screen({"baseline": {"a": "IIII"}, "x": {"a": "PPPP"}, "y": {"a": "PPPP"}}).split())
    assert text.count("episodes of 'baseline' are INVALID") == 1
    assert "every variant: 4 of 4" in text


def test_the_commands_lead_to_an_episode_and_repeat_the_root() -> None:
    """Every number can be traced, on the same root."""
    lines = [line.split("  ")[1] for line in screen(root="/r").splitlines() if line.startswith("  geode")]
    assert [line.split()[1] for line in lines] == ["show", "ls", "compare", "ls", "query", "ui"]
    assert all(line.endswith("--root /r") for line in lines)


def test_a_baseline_alone_is_shown_without_talk_of_candidates() -> None:
    """`geode run` makes experiments of one variant."""
    text = screen({"baseline": {"a": "PPFF"}})
    assert "50.0" in text
    assert "candidates" not in text
