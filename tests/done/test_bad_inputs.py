"""Done line 6: a bad input gets a clear message and an exit code that is not 0, and nothing is lost by it.

The table says what stands on the disk, what is typed, and what the message has to hold. Some cases go through the
installed command, some through the same application in this process, and those that end where the configuration is
composed only to there: a start costs a second, a composition a tenth.
"""

import hashlib
import json
import os
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from shutil import copytree

import duckdb
import pytest
from typer.testing import CliRunner

from analysis.warehouse import DuckDBSink, Warehouse
from experiments.spec import ConfigError, compose_spec
from experiments.store import load_cells
from geode.cli import build
from geode.config.paths import StateRoot
from tests.done.command import Ran, geode, start

pytestmark = pytest.mark.slow

SWEEP = ("sweep", "name=kept", "suite.tasks=[config_port]", "tracking=none", "hooks=[],[stop_repeats]")
SESSION = "01KEPT"
MAY_APPEAR = {"claims.lock", "experiments.lock", "geode.duckdb.lock", "mlflow.lock"}
"""Files that hold nothing. Whatever else a refused command leaves is half of something."""

Ground = Callable[[Path], None]
"""Makes the state root what the command finds."""


class Way(StrEnum):
    """How far a case goes."""

    COMPOSED = "composed"
    HERE = "here"
    INSTALLED = "installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """One mistake. `{root}` in what is typed or expected stands for the state root."""

    typed: tuple[str, ...]
    named: tuple[str, ...]
    next_step: str
    code: int = 2
    ground: Ground = lambda _: None
    environment: Mapping[str, str] = field(default_factory=dict)
    root: str | None = "{root}"
    way: Way = Way.HERE


# What stands on the disk.


def replaced(pattern: str, old: str, new: str) -> Ground:
    def ground(root: Path) -> None:
        path = min(root.glob(pattern))
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return ground


def torn(pattern: str) -> Ground:
    def ground(root: Path) -> None:
        path = min(root.glob(pattern))
        path.write_bytes(path.read_bytes()[:50])

    return ground


def gone(pattern: str) -> Ground:
    return lambda root: min(root.glob(pattern)).unlink()


def overwritten(pattern: str) -> Ground:
    def ground(root: Path) -> None:
        min(root.glob(pattern)).write_bytes(b"no such file format " * 400)

    return ground


def two_sessions(root: Path) -> None:
    copytree(root / "sessions" / SESSION, root / "sessions" / f"{SESSION}2")


def newer_warehouse(root: Path) -> None:
    with duckdb.connect(root / "geode.duckdb") as connection:
        connection.execute("UPDATE warehouse_state SET migration = 99")


def rules_in_a_file(root: Path) -> None:
    (root / "rules.md").write_text("# One\nDo it.\n", encoding="utf-8")


# What is typed, and what has to come of it.

CONFIGURATION = {
    "unknown hook": Bad(
        typed=("run", "hooks=[require_tests]"),
        named=("hooks: there is no choice 'require_tests'",),
        next_step="did you mean 'require_test_run'",
        way=Way.COMPOSED,
    ),
    "unknown option of a hook": Bad(
        typed=("run", "hooks=[stop_repeats]", "+hooks.stop_repeats.allow=3"),
        named=("hooks.stop_repeats", "allow"),
        next_step="allowed",
        way=Way.COMPOSED,
    ),
    "misspelt group": Bad(
        typed=("run", "hook=[stop_repeats]"),
        named=("there is no key 'hook'",),
        next_step="did you mean 'hooks'",
        way=Way.COMPOSED,
    ),
    "misspelt key beside a sweep": Bad(
        typed=("sweep", "hooks=[],[stop_repeats]", "repeat=3"),
        named=("repeat: there is no key 'repeat'",),
        next_step="did you mean 'repeats'",
    ),
    "a folder's name for a suite, beside a sweep": Bad(
        typed=("sweep", "repair=0,2", "suite=my_suite"),
        named=("suite: there is no choice 'my_suite'",),
        next_step="suite=./my_suite",
    ),
    "a hook that is not installed": Bad(
        typed=("sweep", "hooks=[],[my_hook]"),
        named=("hooks: there is no choice 'my_hook'",),
        next_step="pip install -e ./my_hook",
    ),
    "an option of a hook that one variant has": Bad(
        typed=("sweep", "hooks=[],[stop_repeats]", "hooks.stop_repeats.allowed=1"),
        named=("hooks.stop_repeats.allowed", "not by every variant"),
        next_step="++hooks.stop_repeats.allowed=...",
    ),
    "misspelt preset": Bad(
        typed=("sweep", "experiment=hook_ablatoin"),
        named=("experiment: there is no choice 'hook_ablatoin'",),
        next_step="did you mean 'hook_ablation'",
        way=Way.COMPOSED,
    ),
    "negative budget": Bad(
        typed=("run", "repair.per_prompt=-1"),
        named=("repair.per_prompt: -1 is refused",),
        next_step="greater than or equal to 0",
        way=Way.COMPOSED,
    ),
    "not a number": Bad(
        typed=("run", "caps.cost_usd=nan"), named=("caps.cost_usd: nan",), next_step="finite number", way=Way.COMPOSED
    ),
    "zero repeats": Bad(
        typed=("run", "repeats=0"), named=("repeats: 0",), next_step="greater than or equal to 1", way=Way.COMPOSED
    ),
    "a word for a list": Bad(
        typed=("run", "seeds=3"), named=("seeds: 3 is refused",), next_step="seeds=[...]", way=Way.COMPOSED
    ),
    "unknown suite": Bad(
        typed=("run", "suite.name=workspaces"),
        named=("suite.name", "'workspaces'"),
        next_step="did you mean 'workspace'",
        way=Way.COMPOSED,
    ),
    "missing task": Bad(
        typed=("run", "suite.tasks=[config_prt]"),
        named=("suite.tasks: there is no task 'config_prt'",),
        next_step="did you mean 'config_port'",
    ),
    "unknown tool": Bad(
        typed=("run", "+tools.shel={}"), named=("tools.shel",), next_step="did you mean 'shell'", way=Way.COMPOSED
    ),
    "unknown model": Bad(
        typed=("run", "role.target=anthropic/claude-opus-5.5"),
        named=("role.target.model", "'anthropic/claude-opus-5.5'"),
        next_step="did you mean 'anthropic/claude-opus-5-5'",
        way=Way.COMPOSED,
    ),
    "an archived model": Bad(
        typed=("sweep", "experiment=archived_sil_2606"),
        named=("gpt-5.5", "nothing was run"),
        next_step="geode models ls",
    ),
    "code in a configuration": Bad(
        typed=("run", "+scaffold._target_=os.system"),
        named=("scaffold._target_",),
        next_step="configuration names registered parts",
        way=Way.COMPOSED,
    ),
    "Korean text without quotes": Bad(
        typed=("run", "question=정확도는?"),
        named=("'question=정확도는?' cannot be parsed",),
        next_step="question=\"'정확도는?'\"",
        way=Way.INSTALLED,
    ),
    "bytes that are no text": Bad(
        typed=("run", "question='caf\udce9'"), named=("caf",), next_step="set the terminal to UTF-8"
    ),
    "commas in a text": Bad(
        typed=("run", "question=this, that"), named=("question",), next_step="a text with commas in quotes"
    ),
    "an interpolation of nothing": Bad(
        typed=("run", "question=${nothing}"),
        named=("question", "'nothing'"),
        next_step="write \\${...}",
        way=Way.COMPOSED,
    ),
    "a name that leads out of the root": Bad(
        typed=("run", "name=../../mine"),
        named=("name: '../../mine'",),
        next_step="write letters A to Z",
        way=Way.COMPOSED,
    ),
    "a rule file without the section": Bad(
        typed=("run", "+prompt.sources.mine={kind: file_sections, path: '{root}/rules.md', sections: [Two]}"),
        named=("prompt.sources.mine: {root}/rules.md has no section 'Two'",),
        next_step="it has 'One'",
        ground=rules_in_a_file,
        way=Way.COMPOSED,
    ),
    "the same variant twice": Bad(
        typed=("sweep", "hooks=[],[]"), named=("are the same scaffold",), next_step="drop one of them"
    ),
    "another ruler under the same name": Bad(
        typed=("sweep", "name=kept", "suite.tasks=[csv_totals]", "hooks=[],[stop_repeats]"),
        named=("'kept' is on record", "csv_totals added"),
        next_step="give this one another name: name=...",
    ),
    "a flag that there is not": Bad(
        typed=("sweep", "--plann"), named=("--plann",), next_step="--plan, --root PATH and --json"
    ),
}

PLACES = {
    "a root that is a file": Bad(
        typed=("ls",),
        root="{root}/geode.duckdb",
        named=("{root}/geode.duckdb", "is no folder"),
        next_step="--root",
        way=Way.INSTALLED,
    ),
    "a root below a file": Bad(
        typed=("ask", "Look."),
        root="{root}/geode.duckdb/x",
        code=1,
        named=("{root}/geode.duckdb/x",),
        next_step="another place",
    ),
    "a home that moves with the folder": Bad(
        typed=("sessions", "ls"),
        root=None,
        environment={"GEODE_HOME": "here"},
        named=("GEODE_HOME is 'here'",),
        next_step="absolute path",
        way=Way.INSTALLED,
    ),
    "an empty home": Bad(
        typed=SWEEP,
        root=None,
        environment={"GEODE_HOME": ""},
        named=("GEODE_HOME is ''",),
        next_step="unset it for ~/.geode",
    ),
    "no workspace": Bad(
        typed=("ask", "Look.", "--workspace", "nowhere"),
        named=("the workspace 'nowhere' is no folder",),
        next_step="--workspace",
        way=Way.INSTALLED,
    ),
    "the whole disk as a workspace": Bad(
        typed=("ask", "Look.", "--workspace", "/"), code=1, named=("'/'",), next_step="name an existing folder"
    ),
    "no archive": Bad(
        typed=("archive", "import", "{root}/sessions"),
        code=1,
        named=("{root}/sessions holds no archive",),
        next_step="looked for MCPMark's",
    ),
    "no golden file": Bad(
        typed=("archive", "check", "--golden", "{root}/nothing.json"),
        named=("{root}/nothing.json",),
        next_step="No such file",
    ),
}

QUESTIONS = {
    "an empty prompt": Bad(
        typed=("ask", " "), named=("the prompt is empty",), next_step="say what you want done", way=Way.INSTALLED
    ),
    "a model that cannot be asked": Bad(
        typed=("ask", "Look.", "--model", "openai/gpt-9"),
        code=1,
        named=("'openai/gpt-9'",),
        next_step="geode models ls",
        way=Way.INSTALLED,
    ),
    "unknown experiment": Bad(
        typed=("compare", "kep"), code=1, named=("'kep' under {root}",), next_step="did you mean 'kept'"
    ),
    "unknown variant": Bad(
        typed=("ls", "kept", "hooks=stop_repeat"),
        code=1,
        named=("'hooks=stop_repeat'",),
        next_step="did you mean",
        way=Way.INSTALLED,
    ),
    "unknown episode": Bad(
        typed=("show", "0000000"), code=1, named=("'0000000'", "{root}"), next_step="geode ls names what there is"
    ),
    "half an episode's name": Bad(typed=("show", "abc"), code=1, named=("'abc'",), next_step="at least 6 digits"),
    "two sessions of that name": Bad(
        typed=("sessions", "resume", "01K"),
        named=("2 sessions begin with '01K'",),
        next_step="give more of the name",
        ground=two_sessions,
        way=Way.INSTALLED,
    ),
    "wrong SQL": Bad(typed=("query", "SELECT x FROM episode"), code=1, named=("episode",), next_step='"episodes'),
    "SQL that writes": Bad(
        typed=("query", "DROP TABLE episodes"), code=1, named=("DROP", "read-only"), next_step="geode query --list"
    ),
    "SQL that reads other files": Bad(
        typed=("query", "SELECT * FROM read_csv('/etc/passwd')"),
        code=1,
        named=("/etc/passwd", "disabled"),
        next_step="geode query --list",
    ),
    "two statements": Bad(typed=("query", "SELECT 1; SELECT 2"), code=1, named=("2 statements",), next_step="give one"),
}

DAMAGE = {
    "a torn episode, looked at": Bad(
        typed=("ls", "kept"), code=1, named=("1 damaged",), next_step="", ground=torn("episodes/*/*/episode.json")
    ),
    "a torn episode, planned again": Bad(
        typed=SWEEP,
        named=("1 x damaged episode.json", "it is not the text of a record"),
        next_step="damaged=set_aside",
        ground=torn("episodes/*/*/episode.json"),
    ),
    "an episode of a newer version": Bad(
        typed=("compare", "kept"),
        code=1,
        named=("episode.json is damaged", "'geode.episode/9'"),
        next_step="newer GEODE, so use that",
        ground=replaced("episodes/*/*/episode.json", "geode.episode/1", "geode.episode/9"),
    ),
    "a torn experiment": Bad(
        typed=("compare", "kept"),
        code=1,
        named=("{root}/experiments/kept/experiment.yaml",),
        next_step="restore it from a copy, or move it away",
        ground=torn("experiments/kept/experiment.yaml"),
    ),
    "an experiment that calls code": Bad(
        typed=("compare", "kept"),
        code=1,
        named=("{root}/experiments/kept/experiment.yaml", "python/name"),
        next_step="restore it from a copy",
        ground=replaced("experiments/kept/experiment.yaml", "question: ''", "question: !!python/name:os.system"),
    ),
    "a timeline of a newer version": Bad(
        typed=("show", "{root}/sessions/01KEPT"),
        code=1,
        named=("timeline.jsonl", "'geode.timeline/9'"),
        next_step="this version reads 'geode.timeline/1'",
        ground=replaced("sessions/*/timeline.jsonl", "geode.timeline/1", "geode.timeline/9"),
    ),
    "a lost checkpoint": Bad(
        typed=("sessions", "resume", SESSION),
        code=1,
        named=("{root}/sessions/01KEPT/session.db is gone",),
        next_step="restore it from a copy",
        ground=gone("sessions/*/session.db"),
        way=Way.INSTALLED,
    ),
    "a damaged checkpoint": Bad(
        typed=("sessions", "resume", SESSION),
        code=1,
        named=("{root}/sessions/01KEPT/session.db is damaged",),
        next_step="start a new session",
        ground=overwritten("sessions/*/session.db"),
        way=Way.INSTALLED,
    ),
    "lost receipts": Bad(
        typed=("effects", "ls", SESSION),
        code=1,
        named=("{root}/sessions/01KEPT/effects.db is gone",),
        next_step="restore it from a copy",
        ground=gone("sessions/*/effects.db"),
        way=Way.INSTALLED,
    ),
    "a damaged status": Bad(
        typed=("sessions", "ls"),
        code=1,
        named=("01KEPT  damaged", "{root}/sessions/01KEPT/state.json"),
        next_step="keep it, and start a new session",
        ground=torn("sessions/*/state.json"),
        way=Way.INSTALLED,
    ),
    "a damaged warehouse": Bad(
        typed=("query", "SELECT 1"),
        code=1,
        named=("{root}/geode.duckdb cannot be opened",),
        next_step="geode archive rebuild",
        ground=overwritten("geode.duckdb"),
    ),
    "a newer warehouse": Bad(
        typed=("query", "SELECT 1"),
        code=1,
        named=("{root}/geode.duckdb has schema 99",),
        next_step="use the newer geode",
        ground=newer_warehouse,
    ),
}

CASES = {**CONFIGURATION, **PLACES, **QUESTIONS, **DAMAGE}
INSTALLED = [name for name, bad in CASES.items() if bad.way is Way.INSTALLED]
CHEAP = [name for name in CASES if name not in INSTALLED]


# How it is tried, and judged.


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state root with a finished experiment of two episodes, a warehouse that has it, and a session."""
    home = tmp_path_factory.mktemp("home")
    root = home / "root"
    ran = here(home, *SWEEP, "repeats=1", "--root", str(root))
    assert ran.code == 0, ran.err
    sink = DuckDBSink(Warehouse(path=root / "geode.duckdb"))
    for cell in load_cells(StateRoot(root), "kept"):
        sink.write(cell)
    asked = here(home, "ask", "Look.", "--workspace", str(home), "--root", str(root))
    assert asked.code == 0, asked.err
    (session,) = root.glob("sessions/*")
    session.rename(session.with_name(SESSION))
    return root


@pytest.fixture
def root(filled: Path, tmp_path: Path) -> Path:
    return copytree(filled, tmp_path / "root")


def here(home: Path, *arguments: str, more: Mapping[str, str] | None = None) -> Ran:
    """Run the command in this process."""
    before = Path.cwd()
    os.chdir(home)
    try:
        result = CliRunner().invoke(
            build(), arguments, env={"HYDRA_FULL_ERROR": "1", "GEODE_HOME": None, **(more or {})}
        )
    finally:
        os.chdir(before)
    raised = result.exception if not isinstance(result.exception, SystemExit) else None
    shown = "".join(traceback.format_exception(raised)) if raised else ""
    return Ran(code=result.exit_code, out=result.stdout, err=result.stderr + shown)


def composed(overrides: Sequence[str]) -> Ran:
    """Do what `geode run` does first; what is refused there ends with exit code 2 and this message."""
    try:
        compose_spec(overrides)
    except ConfigError as refusal:
        return Ran(code=2, out="", err=f"geode: {refusal}\n")
    return Ran(code=0, out="", err="")


def attempt(bad: Bad, root: Path) -> Ran:
    typed = [word.replace("{root}", str(root)) for word in bad.typed]
    named = ["--root", bad.root.replace("{root}", str(root))] if bad.root else []
    match bad.way:
        case Way.COMPOSED:
            return composed(typed[1:])
        case Way.HERE:
            return here(root.parent, *typed, *named, more=bad.environment)
        case Way.INSTALLED:
            return geode(root.parent, *typed, *named, more=bad.environment)


def content(root: Path) -> dict[str, str]:
    """Every file under `root`, by its hash."""
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def faults(bad: Bad, root: Path, ran: Ran, before: Mapping[str, str]) -> list[str]:
    """Say what is wrong with how `bad` was refused."""
    said, after = ran.out + ran.err, content(root)
    wanted = [word.replace("{root}", str(root)) for word in (*bad.named, bad.next_step)]
    found = [f"it does not say {word!r}" for word in wanted if word not in said]
    if ran.code != bad.code:
        found.append(f"exit code {ran.code}, not {bad.code}")
    if "Traceback" in said:
        found.append("it shows a traceback")
    found += [f"{name} is lost or changed" for name in before if after.get(name) != before[name]]
    found += [f"{name} is left behind" for name in after if name not in before and Path(name).name not in MAY_APPEAR]
    return found


@pytest.mark.parametrize("name", CHEAP)
def test_it_is_refused_in_words_that_help_and_nothing_is_lost(name: str, root: Path) -> None:
    """Whoever typed it can mend it from the message alone, and yesterday's records are as they were."""
    CASES[name].ground(root)
    before = content(root)
    ran = attempt(CASES[name], root)
    assert faults(CASES[name], root, ran, before) == [], f"{ran.code}\n{ran.out}\n{ran.err}"


@pytest.mark.parametrize("name", INSTALLED)
def test_the_installed_command_refuses_it_like_that_too(name: str, root: Path) -> None:
    """What is caught here could still escape there: encodings, standard streams, an interpreter of its own."""
    test_it_is_refused_in_words_that_help_and_nothing_is_lost(name, root)


def test_a_damaged_episode_is_moved_when_told_and_run_afresh(root: Path) -> None:
    """A record that cannot be read is evidence, too: it is set aside as it is."""
    victim = min(root.glob("episodes/*/*/episode.json"))
    torn("episodes/*/*/episode.json")(root)
    damaged = victim.read_bytes()
    mended = here(root.parent, *SWEEP, "repeats=1", "damaged=set_aside", "--root", str(root))
    assert mended.code == 0, mended.err
    assert [path.read_bytes() for path in root.glob("set_aside/*/episode.json")] == [damaged]
    assert json.loads(victim.read_bytes())["episode_key"] == victim.parent.name


def test_a_taken_port_names_the_next(root: Path) -> None:
    """MLflow itself would start and wait."""
    (root / "mlflow").mkdir()
    (root / "mlflow" / "mlflow.db").touch()
    before = content(root)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = geode(root.parent, "ui", "--no-open", "--port", str(port), "--root", str(root))
    bad = Bad(typed=(), code=1, named=(f"port {port} on 127.0.0.1",), next_step=f"--port {port + 1}")
    assert faults(bad, root, ran, before) == [], ran.err


def test_a_disk_that_takes_no_more_stops_the_run_and_the_same_command_goes_on(root: Path) -> None:
    """What was finished stays, byte for byte, and what was not is no outcome."""
    done = {name: digest for name, digest in content(root).items() if name.startswith("episodes")}
    command = (*SWEEP, "repeats=2", "--root", str(root))
    # No file grows beyond 20 KB, and Python would not notice that of a compiled module which it writes.
    stopped = geode(root.parent, *command, before="export PYTHONDONTWRITEBYTECODE=1; ulimit -f 40")
    assert stopped.code == 1
    assert f"Stopped: the disk failed at {root}/episodes/" in stopped.out
    assert "run the same command" in stopped.out
    assert "Traceback" not in stopped.out + stopped.err
    assert len(list(root.glob("episodes/*/*/episode.json"))) == 2
    resumed = here(root.parent, *command, "--json")
    assert (resumed.code, resumed.json["ran"]) == (0, 2), resumed.err
    after = content(root)
    assert {name: after.get(name) for name in done} == done


def test_an_output_that_is_full_is_no_fault_of_the_records(root: Path) -> None:
    """`geode ls > log` on a full disk."""
    before = content(root)
    ran = geode(root.parent, "ls", "--root", str(root), before="exec > /dev/full")
    bad = Bad(typed=(), code=1, named=("No space left on device",), next_step="make room where the output")
    assert faults(bad, root, ran, before) == [], ran.err


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(root: Path) -> None:
    """`geode ls | head -0`."""
    listing = start(root.parent, "ls", "--root", str(root))
    assert listing.stdout is not None
    listing.stdout.close()
    listing.stdout = None
    _, err = listing.communicate(timeout=60)
    assert (listing.returncode, err) == (1, "")


def test_a_prompt_that_nobody_can_type_is_an_empty_one(root: Path) -> None:
    """A service without standard input, as cron starts it."""
    before = content(root)
    ran = geode(root.parent, "ask", "-", "--root", str(root), before="exec <&-")
    bad = Bad(typed=(), named=("the prompt is empty",), next_step="say what you want done")
    assert faults(bad, root, ran, before) == [], ran.err


def test_a_terminal_that_lacks_the_letters_shows_their_escapes(root: Path) -> None:
    """A question in Korean must not keep anybody on an old terminal from the list."""
    replaced("experiments/kept/experiment.yaml", "question: ''", "question: '정확도는?'")(root)
    ran = geode(root.parent, "ls", "--root", str(root), more={"PYTHONIOENCODING": "ascii"})
    assert (ran.code, ran.err) == (0, "")
    assert "\\uc815" in ran.out


def test_the_judge_of_refusals_can_find_each_fault(tmp_path: Path) -> None:
    """The table would let anything pass if this did not fail."""
    (tmp_path / "record").write_text("1", encoding="utf-8")
    before = content(tmp_path)
    bad = Bad(typed=(), named=("hook",), next_step="did you mean 'hooks'")
    good = Ran(code=2, out="", err="geode: there is no key 'hook'; did you mean 'hooks'?")
    assert faults(bad, tmp_path, good, before) == []
    sabotaged = {
        "it does not say \"did you mean 'hooks'\"": Ran(code=2, out="", err="geode: there is no key 'hook'"),
        "it does not say 'hook'": Ran(code=2, out="", err="geode: invalid; did you mean 'h00ks'?"),
        "exit code 0, not 2": Ran(code=0, out="", err=good.err),
        "it shows a traceback": Ran(code=2, out="", err=f"Traceback (most recent call last):\n{good.err}"),
    }
    for fault, ran in sabotaged.items():
        assert fault in faults(bad, tmp_path, ran, before)
    (tmp_path / "record").write_text("2", encoding="utf-8")
    (tmp_path / ".record.1.tmp").touch()
    assert faults(bad, tmp_path, good, before) == ["record is lost or changed", ".record.1.tmp is left behind"]


def test_every_case_names_something_and_enough_of_them_go_through_the_command() -> None:
    """A case without words would be a case without a check."""
    assert all(bad.named and bad.code for bad in CASES.values())
    assert len(CASES) >= 45
    assert len(INSTALLED) >= 12
