"""Done line 6: bad inputs get a clear message, an exit code that is not 0, and nothing is lost."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.done.command import Ran, geode

SWEEP = ("sweep", "suite.tasks=[config_port]", "repeats=1", "tracking=duckdb", "name=kept", "hooks=[],[stop_repeats]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A command, and what its message must hold: the value or the place, and the next step."""

    arguments: tuple[str, ...]
    said: tuple[str, ...]


REFUSED = {
    "unknown hook": Bad(arguments=("run", "hooks=[require_tests]"), said=("require_tests", "require_test_run")),
    "unknown option of a hook": Bad(
        arguments=("run", "hooks=[stop_repeats]", "+hooks.stop_repeats.allow=3"), said=("allow", "allowed")
    ),
    "misspelt group": Bad(arguments=("run", "hook=[stop_repeats]"), said=("hook", "hooks")),
    "misspelt preset": Bad(arguments=("sweep", "experiment=hook_ablatoin"), said=("hook_ablatoin", "hook_ablation")),
    "negative budget": Bad(arguments=("run", "repair.per_prompt=-1"), said=("repair.per_prompt", "-1")),
    "zero repeats": Bad(arguments=("run", "repeats=0"), said=("repeats", "0")),
    "unknown suite": Bad(arguments=("run", "suite.name=workspaces"), said=("workspaces", "workspace")),
    "missing task": Bad(arguments=("run", "suite.tasks=[config_prt]"), said=("config_prt", "config_port")),
    "unknown tool": Bad(arguments=("run", "+tools.shel={}"), said=("shel", "shell")),
    "unknown model": Bad(
        arguments=("run", "role.target=anthropic/claude-opus-5-5"), said=("claude-opus-5-5", "simulated/apprentice")
    ),
    "a target of Hydra's": Bad(arguments=("run", "+_target_=os.system"), said=("_target_",)),
    "Korean text without quotes": Bad(arguments=("run", "question=정확도는?"), said=("정확도", "quot")),
    "the same variant twice": Bad(arguments=("sweep", "hooks=[],[]"), said=("same scaffold",)),
    "an archived model": Bad(arguments=("sweep", "experiment=archived_sil_2606"), said=("gpt-5.5", "replay")),
    "unknown experiment": Bad(arguments=("compare", "kep"), said=("kep", "kept")),
    "unknown episode": Bad(arguments=("show", "0000000"), said=("0000000", "geode ls")),
    "wrong SQL": Bad(arguments=("query", "SELECT x FROM episode"), said=("episode",)),
    "SQL that writes": Bad(arguments=("query", "DROP TABLE episodes"), said=("read",)),
    "no archive": Bad(arguments=("archive", "import", "."), said=("MCPMark",)),
    "another ruler under the same name": Bad(
        arguments=("sweep", "name=kept", "suite.tasks=[csv_totals]", "tracking=none", "hooks=[],[stop_repeats]"),
        said=("kept", "name="),
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose state root holds one finished experiment."""
    home = tmp_path_factory.mktemp("home")
    ran = run(home, *SWEEP)
    assert ran.code == 0, ran.err
    return home


def run(home: Path, *arguments: str) -> Ran:
    return geode(home, *arguments, more={"GEODE_HOME": str(home / "root")})


def kept(home: Path) -> dict[str, bytes]:
    """Every record of the finished experiment."""
    found = [*home.glob("root/episodes/*/*/*"), *home.glob("root/experiments/kept/*.yaml")]
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def fault(ran: Ran, bad: Bad) -> str:
    """What is wrong with a refusal, or nothing."""
    text = ran.out + ran.err
    if ran.code == 0:
        return "it is not refused"
    if "Traceback" in text:
        return "it shows a traceback"
    return next((f"it does not say {word!r}" for word in bad.said if word not in text), "")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_words_that_help_and_nothing_is_lost(home: Path, name: str) -> None:
    """Whoever typed it can mend it from the message alone, and yesterday's records are as they were."""
    before = kept(home)
    ran = run(home, *REFUSED[name].arguments)
    assert not fault(ran, REFUSED[name]), f"{ran.code}\n{ran.out}\n{ran.err}"
    assert kept(home) == before


@pytest.mark.slow
def test_a_damaged_episode_is_named_and_moved_only_when_told(home: Path) -> None:
    """A record that cannot be read is evidence, too."""
    (victim, *_) = sorted(home.glob("root/episodes/*/*/episode.json"))
    sound = victim.read_bytes()
    victim.write_bytes(sound[:40])
    refused = run(home, *SWEEP)
    assert refused.code not in (0, 1)
    assert victim.parent.name in refused.err
    assert "damaged=set_aside" in refused.err
    assert victim.read_bytes() == sound[:40]
    mended = run(home, *SWEEP, "damaged=set_aside")
    assert mended.code == 0, mended.err
    assert [path.read_bytes() for path in home.glob("root/set_aside/*/episode.json")] == [sound[:40]]
    assert victim.is_file()


@pytest.mark.slow
def test_a_root_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where a folder is expected, and an empty GEODE_HOME."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    for root in (str(tmp_path / "file"), ""):
        ran = geode(tmp_path, *SWEEP, more={"GEODE_HOME": root})
        assert ran.code != 0
        assert "Traceback" not in ran.err
        assert (root or "GEODE_HOME") in ran.err


def test_the_checker_finds_what_is_wrong() -> None:
    """The table above would pass anything if this did not fail."""
    bad = Bad(arguments=(), said=("hooks",))
    assert fault(Ran(code=0, out="", err="hooks"), bad)
    assert fault(Ran(code=1, out="", err="Traceback: hooks"), bad)
    assert fault(Ran(code=1, out="", err="no"), bad)
    assert not fault(Ran(code=1, out="", err="use hooks"), bad)
