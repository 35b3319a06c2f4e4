"""A newcomer's way through the installed command: an own suite, an own hook, and the comparison with and without it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.done.command import environment, geode


def install(hook: Path, site: Path) -> dict[str, str]:
    """Do what an editable installation does, from the package's own pyproject.toml, without a package index."""
    project = tomllib.loads((hook / "pyproject.toml").read_text())["project"]
    metadata = site / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (metadata / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in project["entry-points"].items()
        )
    )
    return {"PYTHONPATH": f"{site}:{hook}"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with a new suite and a new hook, the hook installed. Tests that change one take their own."""
    home = tmp_path_factory.mktemp("newcomer")
    for kind in ("suite", "hook"):
        assert geode(home, "dev", "new", kind, f"my_{kind}").code == 0
    return home, install(home / "my_hook", home / "site")


@pytest.mark.slow
def test_an_own_suite_and_an_own_hook_are_compared_in_five_commands(made: tuple[Path, dict[str, str]]) -> None:
    """This is what a researcher does on day one; the comparison counts every episode that was asked for."""
    home, more = made
    checked = geode(home, "suite", "check", "my_suite")
    assert checked.code == 0, checked.out + checked.err
    swept = geode(
        home,
        "sweep",
        "suite=./my_suite",
        "hooks=[],[my_hook]",
        "repeats=4",
        "name=mine",
        "tracking=none",
        more=more,
    )
    assert swept.code == 0, swept.err
    assert "mine: 8 episodes run, 0 reused, 8 in all." in swept.out
    compared = geode(home, "compare", "mine", "--json", more=more)
    assert "hooks=my_hook" in compared.out, compared.err
    timelines = [path.read_text() for path in (home / ".geode" / "episodes").rglob("timeline.jsonl")]
    assert len(timelines) == 8
    reminded = sum("You have not run the check since your last change" in text for text in timelines)
    assert reminded == 4


@pytest.mark.slow
def test_the_tests_of_a_new_hook_pass(made: tuple[Path, dict[str, str]]) -> None:
    """Whoever changes the hook must be able to trust them; they run where GEODE is installed."""
    home, more = made
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "my_hook"],
        cwd=home,
        env=environment(home, more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("suite=my_suite",), "a suite of yours is given by its folder, as suite=./my_suite"),
        (("suite.name=my_suite",), "a suite of yours is given by its folder, as suite=./my_suite"),
        (("suite=./nowhere",), "no folder './nowhere'; give the path of a folder that holds suite.yaml"),
        (("hooks=[my_hook]", "hooks.my_hook.every_changes=2"), "is set with +hooks.my_hook.every_changes="),
        (
            ("hooks=[my_hook]", "+hooks.my_hook.evry=2"),
            "'my_hook' does not take these options (evry: no such option; it takes every_changes",
        ),
        (("hooks=[my_hok]",), "there is no choice 'my_hok'; did you mean 'my_hook'?"),
    ],
)
def test_a_near_miss_is_answered_with_what_to_type(
    made: tuple[Path, dict[str, str]], arguments: tuple[str, ...], said: str
) -> None:
    """Each of these is what somebody types first."""
    home, more = made
    ran = geode(home, "run", *arguments, "--plan", more=more)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.slow
def test_a_hook_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    """A typing error in one's own hook must not look like a fault of the bench."""
    geode(tmp_path, "dev", "new", "hook", "my_hook")
    more = install(tmp_path / "my_hook", tmp_path / "site")
    (tmp_path / "my_hook" / "my_hook" / "__init__.py").write_text("import nonsense_x\n")
    ran = geode(tmp_path, "run", "hooks=[my_hook]", "--plan", more=more)
    assert ran.code == 2
    assert "the hook 'my_hook' of my_hook:build cannot be imported" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.slow
def test_a_hook_that_raises_is_told_beside_the_figures(tmp_path: Path) -> None:
    """Its variant runs to the end, and may even come out well: nobody should read that as what the idea is worth."""
    geode(tmp_path, "dev", "new", "hook", "my_hook")
    more = install(tmp_path / "my_hook", tmp_path / "site")
    code = tmp_path / "my_hook" / "my_hook" / "__init__.py"
    code.write_text(code.read_text().replace("self.memory.changes += 1", "self.memory.chnages += 1"))
    asked = ("sweep", "hooks=[],[my_hook]", "suite.tasks=[fix_slug]", "repeats=4", "tracking=none", "name=mine")
    assert geode(tmp_path, *asked, more=more).code == 0
    compared = " ".join(geode(tmp_path, "compare", "mine", more=more).out.split())
    assert "the hook 'my_hook' is broken in " in compared
    assert " of 4 episodes of hooks=my_hook, which counts as its strictest answer: at PostToolUse it raised" in compared
    assert "has no attribute 'chnages'" in compared


@pytest.mark.slow
def test_an_edited_hook_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    """Otherwise a researcher would compare with episodes of code that is no more."""
    geode(tmp_path, "dev", "new", "hook", "my_hook")
    more = install(tmp_path / "my_hook", tmp_path / "site")
    asked = ("run", "hooks=[my_hook]", "suite.tasks=[fix_slug]", "repeats=1", "tracking=none")
    assert "1 episodes run, 0 reused" in geode(tmp_path, *asked, "name=mine", more=more).out
    with (tmp_path / "my_hook" / "my_hook" / "__init__.py").open("a") as code:
        code.write("# another thought\n")
    again = geode(tmp_path, *asked, "name=mine", more=more)
    assert again.code == 2
    assert "the code of the hook my_hook has changed" in again.err
    assert "1 episodes run, 0 reused" in geode(tmp_path, *asked, "name=mine_2", more=more).out


@pytest.mark.slow
def test_a_simulated_worker_is_not_given_a_task_that_it_cannot_know(tmp_path: Path) -> None:
    """Without an outline it only looks around: a table of failures that say nothing of any scaffold."""
    geode(tmp_path, "dev", "new", "suite", "my_suite")
    (tmp_path / "my_suite" / "first_task" / "outline.yaml").unlink()
    ran = geode(tmp_path, "run", "suite=./my_suite")
    assert ran.code == 2
    assert "first_task: simulated/apprentice can only do a task that has an outline.yaml" in ran.err


@pytest.mark.slow
def test_a_suite_of_an_installed_package_is_a_choice(tmp_path: Path) -> None:
    """Suites travel as packages; nobody should have to know where pip has put one."""
    geode(tmp_path, "dev", "new", "suite", "my_letters")
    site = tmp_path / "site"
    metadata = site / "my_letters-1.dist-info"
    metadata.mkdir(parents=True)
    (tmp_path / "my_letters").rename(site / "my_letters")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my_letters\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[geode.suites]\nletters = my_letters\n")
    ran = geode(tmp_path, "run", "suite=letters", "--plan", "--json", more={"PYTHONPATH": str(site)})
    assert ran.code == 0, ran.err
    assert "default" in ran.out
