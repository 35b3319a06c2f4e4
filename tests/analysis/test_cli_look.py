"""The commands parse, call, print, and end with a code that means something."""

import json
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from analysis.cli_look import register
from geode.config.paths import StateRoot
from tests.doubles.cells import make_cells, store_cells
from tests.doubles.evals import judged, sample, write_eval
from tests.doubles.foreign_logs import write_mcpmark

LETTERS = {"baseline": {"a": "FFFFFFFF"}, "hook": {"a": "PPPPPPPP"}, "placebo": {"a": "FFFPFFFF"}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store_cells(StateRoot(tmp_path), make_cells(LETTERS))
    return tmp_path


def geode(*arguments: str) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    register(app)
    return CliRunner().invoke(app, list(arguments))


def test_compare_prints_the_screen_and_ends_with_zero(root: Path) -> None:
    """Whatever the verdicts are, it could compare."""
    result = geode("compare", "ablation", "--tasks", "--usage", "--root", str(root))
    assert result.exit_code == 0
    assert "KEEP" in result.stdout
    assert "Pass rate by task" in result.stdout
    assert f"--root {root}" in result.stdout


def test_compare_gives_everything_as_json(root: Path) -> None:
    """A filter and another baseline reach the comparison."""
    result = geode("compare", "ablation", "hook", "--baseline", "placebo", "--json", "--root", str(root))
    body = json.loads(result.stdout)
    assert [row["name"] for row in body["rows"]] == ["placebo", "hook"]
    assert body["candidates"] == 2


@pytest.mark.parametrize(
    ("candidate", "code"), [("PPPPPPPP", 0), ("FFFFFFFF", 3), ("FFFPPPPP", 4), ("IIIIIIII", 5), ("PPPPPPP.", 5)]
)
def test_the_verdict_on_one_candidate_is_an_exit_code_if_asked(tmp_path: Path, candidate: str, code: int) -> None:
    """A script that promotes on 0 must not promote on UNDECIDED; without the flag, 0 says that it could compare."""
    baseline = "PPPPPPPP" if code == 3 else "FFFFFFFF" if code == 0 else "FFFPFPPP"
    cells = {"baseline": {"a": baseline, "b": baseline}, "hook": {"a": candidate, "b": candidate}}
    store_cells(StateRoot(tmp_path), make_cells(cells))
    assert geode("compare", "ablation", "--root", str(tmp_path)).exit_code == 0
    told = geode("compare", "ablation", "--exit-code", "--root", str(tmp_path))
    assert told.exit_code == code
    assert "hook" in told.stdout
    assert geode("compare", "ablation", "--exit-code", "--json", "--root", str(tmp_path)).exit_code == code


def test_the_exit_code_of_one_among_many_takes_its_name(root: Path) -> None:
    """One code cannot tell of two verdicts, and says so instead of choosing."""
    several = geode("compare", "ablation", "--exit-code", "--root", str(root))
    assert (several.exit_code, several.stdout) == (1, "")
    assert "2 are shown (hook, placebo); name one" in several.stderr
    assert geode("compare", "ablation", "hook", "--exit-code", "--root", str(root)).exit_code == 0
    assert geode("compare", "ablation", "placebo", "--exit-code", "--root", str(root)).exit_code == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "ablatoin"), "did you mean 'ablation'"),
        (("compare", "ablation", "hok"), "did you mean 'hook'"),
        (("compare", "ablation", "--baseline", "basline"), "did you mean 'baseline'"),
        (("ls", "ablatoin"), "did you mean 'ablation'"),
        (("ls", "ablation", "hok"), "did you mean 'hook'"),
        (("show", "abc"), "at least 6 digits"),
        (("show", "000000"), "no episode"),
        (("truth", "ablatoin", "-o", "x.json"), "did you mean 'ablation'"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_a_code(root: Path, arguments: tuple[str, ...], said: str) -> None:
    """The value, the place and the next step; no traceback."""
    result = geode(*arguments, "--root", str(root))
    assert result.exit_code == 1
    assert result.stderr.startswith("geode: ")
    assert said in result.stderr
    assert result.stdout == ""


def test_ls_leads_from_experiments_to_an_episode_that_show_takes(root: Path) -> None:
    """Every name that is printed is accepted by the next command."""
    assert "ablation" in geode("ls", "--root", str(root)).stdout
    assert "hook" in geode("ls", "ablation", "--root", str(root)).stdout
    first = geode("ls", "ablation", "hook", "--root", str(root)).stdout.splitlines()[2].split()[0]
    shown = geode("show", first, "--json", "--root", str(root))
    assert json.loads(shown.stdout)["record"]["task_id"] == "a"
    assert shown.exit_code == 1  # these folders have no timeline, and that is said
    assert "timeline.jsonl is gone" in geode("show", first, "--root", str(root)).stdout


def test_a_damaged_record_in_a_list_is_in_the_exit_code(root: Path) -> None:
    """A script that lists results must not take a lost one for a missing one."""
    folder = next(path for path in root.glob("episodes/*/*"))
    (folder / "episode.json").write_text("{", encoding="utf-8")
    assert geode("ls", "--root", str(root)).exit_code == 0  # of an experiment only what is there is counted
    assert geode("ls", "ablation", "--root", str(root)).exit_code == 1
    (root / "experiments" / "ablation" / "experiment.yaml").write_text("[", encoding="utf-8")
    assert geode("ls", "--root", str(root)).exit_code == 1


def test_an_empty_root_says_how_to_begin(tmp_path: Path) -> None:
    """The first look comes before the first sweep."""
    result = geode("ls", "--root", str(tmp_path))
    assert result.exit_code == 0
    assert "geode sweep" in result.stdout
    assert json.loads(geode("ls", "--json", "--root", str(tmp_path)).stdout)["items"] == []


def test_a_long_run_becomes_a_truth(root: Path) -> None:
    """The file is what `geode compare` reads."""
    file = root / "truth.json"
    assert geode("truth", "ablation", "-o", str(file), "--root", str(root)).exit_code == 0
    assert json.loads(file.read_text())["schema"] == "geode.truth/1"


def test_logs_are_compared_by_the_same_command(tmp_path: Path) -> None:
    """Two or more paths; --exit-code tells that nothing is decided."""
    paths = [str(write_mcpmark(tmp_path / name, letters)) for name, letters in (("a", "FFFF"), ("b", "PPPF"))]
    shown = geode("compare", *paths)
    assert shown.exit_code == 0
    assert "4 paired by task and attempt" in shown.stdout
    body = json.loads(geode("compare", *paths, "--json").stdout)
    assert body["pairs"][0]["found"]["rows"][0]["difference"] == 0.75
    assert geode("compare", *paths, "--exit-code").exit_code == 4
    third = str(write_mcpmark(tmp_path / "c", "IIII"))
    assert geode("compare", paths[0], third, "--exit-code", "--json").exit_code == 5
    assert json.loads(geode("compare", *paths, third, "--json").stdout)["pairs"][1]["letter"] == "C"


def test_wrong_logs_are_one_message_that_names_what_to_mend(root: Path, tmp_path: Path) -> None:
    """Each mistake has its own words, before anything is printed."""
    logs = tmp_path / "logs"
    a, b = str(write_mcpmark(logs / "a", "FFFF")), str(write_mcpmark(logs / "b", "PPPF"))
    log = str(write_eval(logs / "c.eval", [sample("s1", judged({"calm": 1}))]))
    torn = logs / "torn.eval"
    torn.write_bytes(Path(log).read_bytes()[:200])
    (logs / "empty").mkdir()
    wrong = {
        "give two logs to compare": [a],
        "are the same log": [a, a],
        "of mcpmark": [a, log],
        "'ablation' is the name of an experiment": ["ablation", a],
        "no whole .eval log": [log, str(torn)],
        "is no archive that this version reads": [a, str(logs / "empty")],
        f"{logs}/none does not exist": [a, b, str(logs / "none")],
        "the first log is the baseline": [a, b, "--baseline", b],
        "no score 'sucess' in these logs; did you mean 'success'": [a, b, "--score", "sucess"],
        "--exit-code tells of one log": [a, b, str(write_mcpmark(logs / "d", "PPPP")), "--exit-code"],
        "--score is for logs": ["ablation", "--score", "calm"],
    }
    for said, arguments in wrong.items():
        refused = geode("compare", *arguments, "--root", str(root))
        assert (refused.exit_code, refused.stdout) == (1, ""), said
        assert refused.stderr.startswith("geode: ")
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr


def test_from_a_list_or_a_table_of_a_log_it_is_one_command_to_the_transcript(tmp_path: Path) -> None:
    """What is printed after `geode show` is what the command takes."""
    talk: list[dict[str, object]] = [{"role": "assistant", "content": "All is well."}]
    paths = []
    for name in "ab":
        body = {**sample("s 1", judged({"calm": 1}), messages=talk), "uuid": name}  # type: ignore[arg-type]
        paths.append(str(write_eval(tmp_path / f"{name}.eval", [body])))
    for printed in (geode("ls", paths[0]), geode("compare", *paths), geode("compare", *paths, "--tasks")):
        line = next(line for line in printed.stdout.splitlines() if "geode show" in line)
        wanted = shlex.split(line[line.index("geode show") :])[2]
        assert "All is well." in geode("show", wanted).stdout
    assert json.loads(geode("show", f"{paths[0]}#s 1/1", "--json").stdout)["lines"][0]["text"] == "All is well."
    missing = geode("show", f"{paths[0]}#s2/1")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert json.loads(geode("ls", paths[0], "--json").stdout)["items"][0]["task"] == "s 1"
    assert geode("ls", paths[0], "--task", "s2").exit_code == 1


def test_the_episodes_behind_one_figure_are_listed(root: Path) -> None:
    """A variant and a task name a figure of the table."""
    listed = geode("ls", "ablation", "hook", "--task", "a", "--json", "--root", str(root))
    assert {line["variant"] for line in json.loads(listed.stdout)["items"]} == {"hook"}
    assert "geode show" in geode("ls", "ablation", "--task", "a", "--root", str(root)).stdout
