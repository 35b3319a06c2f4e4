"""What `load_suite` promises to those who write tasks: one layout, a hash that covers it, and errors that lead on."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.suite import OutcomeKind
from experiments.suites import loader
from experiments.suites.loader import SuiteError, copy_fixtures, load_suite, load_task, suite_names

VERIFY = """
from experiments.suite import Outcome, OutcomeKind

def verify(workspace):
    kind = OutcomeKind.PASS if (workspace / "a.txt").read_text() == "good" else OutcomeKind.FAIL
    return Outcome(kind=kind, score=float(kind is OutcomeKind.PASS))
"""
TASK = "schema: geode.task/1\nid: {id}\nfamily: letters\nprompt: |\n  Make /workspace/a.txt good.\n"
OUTLINE = """
answer: It is good.
steps:
  - {id: write, kind: change, call: {tool: write_file, arguments: {path: a.txt, content: good}}}
"""


def write_task(folder: Path, task_id: str) -> Path:
    (folder / "fixtures" / "sub").mkdir(parents=True)
    (folder / "fixtures" / "a.txt").write_text("bad")
    (folder / "fixtures" / "sub" / "b.txt").write_text("b")
    (folder / "task.yaml").write_text(TASK.format(id=task_id))
    (folder / "verify.py").write_text(VERIFY)
    return folder


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "suite.yaml").write_text("schema: geode.suite/1\ndescription: Letters.\n")
    write_task(folder / "second", "b_task")
    write_task(folder / "first", "a_task")
    return folder


def test_a_folder_is_a_suite(suite: Path) -> None:
    """Whoever writes tasks needs no package: the shipped suites have no other layout."""
    (suite / "first" / "outline.yaml").write_text(OUTLINE)
    loaded = load_suite(str(suite))
    assert loaded.name == "mine"
    assert [task.task_id for task in loaded.tasks] == ["a_task", "b_task"]
    first, second = loaded.tasks
    assert first.family == "letters"
    assert first.prompt == "Make /workspace/a.txt good."
    assert first.fixtures == suite / "first" / "fixtures"
    assert first.outline is not None
    assert first.outline.answer == "It is good."
    assert second.outline is None
    assert first.verify(first.fixtures).kind is OutcomeKind.FAIL


def test_a_relative_folder_is_told_from_a_name_by_its_separator(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder called like a shipped suite must not take its place because of where the command is run."""
    suite.rename(suite.parent / "workspace")
    monkeypatch.chdir(suite.parent)
    assert len(load_suite("./workspace").tasks) == 2
    assert len(load_suite("workspace").tasks) > 2


def test_folders_that_begin_with_a_dot_or_underscore_are_no_tasks(suite: Path) -> None:
    """Notes, caches and version control live beside tasks."""
    for name in ("__pycache__", ".git", "_drafts"):
        (suite / name).mkdir()
    assert len(load_suite(str(suite)).tasks) == 2


def test_the_shipped_suites_have_names() -> None:
    """What `geode run suite=...` offers."""
    assert "workspace" in suite_names()


def test_an_installed_package_brings_its_suite(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suites travel as packages; the entry point is all that the package has to say."""
    site = suite.parent / "site"
    site.mkdir()
    suite.rename(site / "letters_package")
    metadata = site / "letters_package-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: letters-package\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[geode.suites]\nletters = letters_package\nbroken = no_such_package\nmodule = this\n"
    )
    monkeypatch.syspath_prepend(site)
    assert {"letters", "workspace"} <= set(suite_names())
    loaded = load_suite("letters")
    assert loaded.name == "letters"
    assert len(loaded.tasks) == 2
    with pytest.raises(SuiteError, match=r"broken = no_such_package .* cannot be imported .* uninstall"):
        load_suite("broken")
    with pytest.raises(SuiteError, match=r"module = this .* is no package; name the package"):
        load_suite("module")


def test_a_workspace_holds_the_fixtures_and_nothing_that_python_cached(suite: Path, tmp_path: Path) -> None:
    """An installer compiles the modules of fixtures, too; the agent would find files that no hash covers."""
    cache = suite / "first" / "fixtures" / "sub" / "__pycache__"
    cache.mkdir()
    (cache / "b.pyc").write_bytes(b"\0")
    copy_fixtures(load_task(suite / "first"), tmp_path / "w" / "here")
    found = {str(path.relative_to(tmp_path / "w" / "here")) for path in (tmp_path / "w").rglob("*") if path.is_file()}
    assert found == {"a.txt", "sub/b.txt"}


@pytest.mark.parametrize("part", ["task.yaml", "verify.py", "fixtures/a.txt", "fixtures/sub/b.txt", "outline.yaml"])
def test_the_hash_covers_every_file(suite: Path, part: str) -> None:
    """An episode is looked up by this hash: what changed without it would be measured as if it had not."""
    (suite / "first" / "outline.yaml").write_text(OUTLINE)
    before = load_task(suite / "first").task_hash
    with (suite / "first" / part).open("a") as file:
        file.write("\n")
    assert load_task(suite / "first").task_hash != before


def test_the_hash_covers_names_and_not_the_place(suite: Path, tmp_path: Path) -> None:
    """The same task on another machine is the same task; a renamed file is another one."""
    before = load_task(suite / "first").task_hash
    shutil.copytree(suite / "first", tmp_path / "copy")
    (tmp_path / "copy" / "__pycache__").mkdir()
    (tmp_path / "copy" / "__pycache__" / "verify.pyc").write_bytes(b"\0")
    assert re.fullmatch("[0-9a-f]{64}", before)
    assert load_task(tmp_path / "copy").task_hash == before
    (tmp_path / "copy" / "fixtures" / "sub" / "b.txt").rename(tmp_path / "copy" / "fixtures" / "c.txt")
    assert load_task(tmp_path / "copy").task_hash != before


def test_the_hash_covers_the_shared_checks_of_a_verifier_that_uses_them(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another `verifying.py` may give another outcome, and an old episode must not stand for the new one."""
    verifier = suite / "second" / "verify.py"
    verifier.write_text("from experiments.suites.verifying import outcome_of\n" + verifier.read_text())
    alone, sharing = (load_task(suite / name).task_hash for name in ("first", "second"))
    other = tmp_path / "verifying.py"
    other.write_text("# other checks")
    monkeypatch.setattr(loader, "_SHARED_CHECKS", (other,))
    assert load_task(suite / "first").task_hash == alone
    assert load_task(suite / "second").task_hash != sharing


def test_a_changed_verifier_runs_at_once(suite: Path) -> None:
    """A compilation cached by time and size would run the old bytes under the new hash."""
    for expected, kind in (("good", OutcomeKind.FAIL), ("bad!", OutcomeKind.FAIL), ("bad", OutcomeKind.PASS)):
        (suite / "first" / "verify.py").write_text(VERIFY.replace('"good"', repr(expected)))
        task = load_task(suite / "first")
        assert task.verify(task.fixtures).kind is kind
    assert not (suite / "first" / "__pycache__").exists()


def test_verifiers_do_not_see_each_other(suite: Path) -> None:
    """Every task has a module `verify`; under one name the last would answer for all, and two suites would clash."""
    (suite / "first" / "verify.py").write_text(VERIFY.replace('"good"', '"bad"'))
    first, second = load_suite(str(suite)).tasks
    assert first.verify(first.fixtures).kind is OutcomeKind.PASS
    assert second.verify(second.fixtures).kind is OutcomeKind.FAIL
    assert "verify" not in sys.modules


def test_a_dataclass_in_a_verifier_finds_its_own_module(suite: Path) -> None:
    """Dataclasses with postponed annotations look the module up by name while it is being executed."""
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Row:\n    a: int\n"
    (suite / "first" / "verify.py").write_text(text + VERIFY)
    assert load_task(suite / "first").task_id == "a_task"


def drop(name: str) -> Callable[[Path], None]:
    def change(suite: Path) -> None:
        path = suite / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def put(name: str, text: str) -> Callable[[Path], None]:
    def change(suite: Path) -> None:
        (suite / name).write_text(text)

    return change


def add(name: str, text: str) -> Callable[[Path], None]:
    def change(suite: Path) -> None:
        (suite / name).write_text((suite / name).read_text() + text)

    return change


def link(suite: Path) -> None:
    (suite / "first/fixtures/c.txt").symlink_to(suite / "first/fixtures/a.txt")


def empty(suite: Path) -> None:
    drop("first/fixtures")(suite)
    (suite / "first/fixtures/__pycache__").mkdir(parents=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("suite.yaml"), r"suite\.yaml is missing; a suite's folder holds suite\.yaml and one folder a task"),
        (add("suite.yaml", "tasks: [a]\n"), r"suite\.yaml: unknown key 'tasks'; remove it, .* schema, description"),
        (drop("first/task.yaml"), r"first/task\.yaml is missing; every folder of a suite is a task"),
        (add("first/task.yaml", "famly: x\n"), r"first/task\.yaml: unknown key 'famly'; did you mean 'family'\?"),
        (add("first/task.yaml", "id: c\n"), r"first/task\.yaml .* key 'id' stands twice .* keep one"),
        (put("first/task.yaml", "schema: geode.task/1\nid: x\nfamily: y\n"), r"the key 'prompt' is missing; add it"),
        (put("first/task.yaml", TASK.format(id="A-1")), r"first/task\.yaml: 'id' is 'A-1'; string should match"),
        (put("first/task.yaml", TASK.format(id="x").replace("/1", "/9")), r"'schema' is 'geode\.task/9'; input should"),
        (put("first/task.yaml", TASK.format(id="b_task")), r"second/task\.yaml: the id 'b_task' is taken by first/"),
        (put("first/task.yaml", "- a\n"), r"first/task\.yaml holds \['a'\]; it must hold keys and values \(schema, id"),
        (put("first/task.yaml", "id: [\n"), r"first/task\.yaml cannot be read as YAML: .*line 2"),
        (put("first/outline.yaml", "steps: []\nanswer: x\n"), r"first/outline\.yaml: 'steps' is \[\]; tuple should"),
        (
            put("first/outline.yaml", OUTLINE + OUTLINE.splitlines()[-1]),
            r"outline\.yaml: two steps have the id 'write'",
        ),
        (drop("first/fixtures"), r"first/fixtures is missing; create the folder"),
        (empty, r"first/fixtures holds no file; put the files"),
        (link, r"first/fixtures/c\.txt is a symbolic link, .*; put a copy"),
        (drop("first/verify.py"), r"first/verify\.py is missing; write one with `def verify"),
        (put("first/verify.py", "def check(): ...\n"), r"first/verify\.py defines no function verify; add `def verify"),
        (put("first/verify.py", "import no_such_thing\n"), r"first/verify\.py cannot be loaded .*no_such_thing.*; run"),
        (put("first/verify.py", "import sys\nsys.exit(7)\n"), r"first/verify\.py cannot be loaded \(SystemExit"),
        (put("first/verify.py", "def verify(:\n"), r"first/verify\.py cannot be loaded \(SyntaxError"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_the_next_step(
    suite: Path, change: Callable[[Path], None], message: str
) -> None:
    """Whoever writes a first task gets something wrong, and should not have to read this module."""
    change(suite)
    with pytest.raises(SuiteError, match=message):
        load_suite(str(suite))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("workspce", r"no suite 'workspce'; did you mean 'workspace'\?"),
        ("", r"no suite ''; there are .*workspace.* \./my_suite"),
        ("./nowhere", r"no folder '\./nowhere'; give the path"),
    ],
)
def test_an_unknown_suite_is_refused_with_the_nearest_name(name: str, message: str) -> None:
    """A misspelt suite must not fall back to another."""
    with pytest.raises(SuiteError, match=message):
        load_suite(name)


def test_an_empty_suite_is_refused(tmp_path: Path) -> None:
    """An experiment over no tasks would end with a table of nothing."""
    (tmp_path / "suite.yaml").write_text("schema: geode.suite/1\ndescription: Nothing.\n")
    with pytest.raises(SuiteError, match=r"holds no task; add a folder"):
        load_suite(str(tmp_path))
