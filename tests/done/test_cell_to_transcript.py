"""Done line 7, in the terminal: from any cell of a table to the transcript behind it with one printed command."""

import re
import shlex
from pathlib import Path

import pytest

from tests.done.command import Ran, geode


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("swept")
    ran = geode(
        home, "sweep", "hooks=[],[require_test_run]", "prompt=base,terse,harmful", "suite.tasks=[config_port,fix_slug]",
        "repeats=2", "name=small", "tracking=none", "--root", str(home),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return home


def table_below(screen: str, title: str) -> list[str]:
    lines = screen[screen.index(title) :].splitlines()[1:]
    return lines[: lines.index("") if "" in lines else len(lines)]


def shown(home: Path, key: str) -> Ran:
    ran = geode(home, "show", key, "--root", str(home))
    assert ran.code == 0, ran.err
    return ran


@pytest.mark.slow
def test_every_cell_of_the_task_table_names_an_episode_that_is_shown(swept: Path) -> None:
    """The table says `geode show KEY` on top, and below each figure stands a KEY of this task and this variant."""
    screen = geode(swept, "compare", "small", "--tasks", "--root", str(swept)).out
    assert "an episode behind each figure: geode show KEY" in screen
    keys = [re.findall(r"\b[0-9a-f]{8}\b", line) for line in table_below(screen, "Pass rate by task")]
    rows = [found for found in keys if found]
    assert [len(row) for row in rows] == [6, 6]
    body = geode(swept, "compare", "small", "--json", "--root", str(swept)).json
    tasks = body["tasks"]
    assert isinstance(tasks, list)
    for task, row in zip(tasks, rows, strict=True):
        assert [cell["look_at"][:8] for cell in task["cells"]] == row  # type: ignore[index, call-overload]
    for task, cell, key in ((tasks[0], 1, rows[0][1]), (tasks[1], 5, rows[1][5])):
        text = " ".join(shown(swept, key).out.split())
        assert f"task {task['task_id']} " in text  # type: ignore[index, call-overload]
        assert f"small/{task['cells'][cell]['variant']}" in text  # type: ignore[index, call-overload]
        assert "round 1 " in text  # the transcript itself, and not its head alone


@pytest.mark.slow
def test_a_narrow_terminal_loses_no_key(swept: Path) -> None:
    """Where a key would be folded it could not be copied: then each variant has a line of its own."""
    screen = geode(swept, "compare", "small", "--tasks", "--root", str(swept), more={"COLUMNS": "70"}).out
    lines = [line.split() for line in table_below(screen, "Pass rate by task")]
    keys = [words[-1] for words in lines if words and re.fullmatch("[0-9a-f]{12}", words[-1])]
    assert len(keys) == len(set(keys)) == 12
    assert shown(swept, keys[-1]).out


@pytest.mark.slow
def test_the_commands_below_the_tables_run_as_they_are_printed(swept: Path) -> None:
    """All other episodes behind one figure are one command away, too, and each of those has its own."""
    screen = geode(swept, "compare", "small", "--tasks", "--pairs", "--root", str(swept)).out
    printed = [line for line in screen.splitlines() if line.startswith(("  geode show", "  geode ls"))]
    assert len(printed) == 3
    for line in printed:
        command = line.split("  ")[1]
        ran = geode(swept, *shlex.split(command)[1:])
        assert ran.code == 0, ran.err
    of_one_figure = geode(swept, *shlex.split(printed[1].split("  ")[1])[1:], "--json").json["items"]
    assert isinstance(of_one_figure, list)
    assert len(of_one_figure) == 2
    for line in of_one_figure:
        assert shown(swept, line["episode_key"]).out  # type: ignore[index, call-overload, arg-type]


@pytest.mark.slow
def test_two_experiments_name_the_episodes_behind_each_task(swept: Path) -> None:
    """Across experiments the tables are those of logs; their commands repeat the root."""
    ran = geode(
        swept, "sweep", "hooks=[]", "prompt=careful", "suite.tasks=[config_port,fix_slug]", "repeats=2", "name=later",
        "tracking=none", "--root", str(swept),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    screen = geode(swept, "compare", "small", "later", "--tasks", "--root", str(swept)).out
    printed = [line for line in screen.splitlines() if "geode show" in line]
    assert len(printed) == 2 * 2 * 2
    command = printed[-1][printed[-1].index("geode show") :].split("  ")[0]
    text = " ".join(geode(swept, *shlex.split(command)[1:]).out.split())
    assert "small/" in text or "later/" in text
    assert "round 1 " in text
