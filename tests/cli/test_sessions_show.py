"""`geode sessions show`: what was, what is open, and what to type next."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.done.command import geode
from tests.serve.test_resume_after_kill import killed

__all__ = ["killed"]

pytestmark = pytest.mark.slow


def show(home: Path, *arguments: str) -> tuple[int, str, str]:
    ran = geode(home, "sessions", "show", *arguments, "--root", str(home / "root"))
    assert "Traceback" not in ran.err
    return ran.code, ran.out, ran.err


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_killed_session_is_shown_with_what_is_open_and_what_to_type(killed: Path) -> None:
    """The morning after: what ran, what nobody knows, and the commands, which work as they stand there."""
    folder = killed / "root" / "sessions" / "01KILLED"
    before = content(folder)
    code, out, err = show(killed, "last")
    assert (code, err) == (0, "")
    assert content(folder) == before, "looking is not owning"
    assert "session   01KILLED  unfinished" in out
    assert "turn 1    Write, then die." in out
    assert "w  write_file  succeeded" in out
    assert "s  shell  uncertain" in out
    assert "r  read_file  unknown" in out
    assert "the prompt of turn 1 is unfinished" in out
    assert "nobody knows how effect 1/s ended" in out
    commands = [line.removeprefix("next").split() for line in out.splitlines() if line.startswith("next")]
    assert [command[1:3] for command in commands] == [["effects", "settle"], ["sessions", "resume"]]
    filled = {"END": "succeeded", "HOW_YOU_KNOW": "looked", "FOLDER": str(killed / "workspace")}
    for command in commands:
        ran = geode(killed, *(filled.get(word, word) for word in command[1:]), "--root", str(killed / "root"))
        assert ran.code == 0, ran.err
    code, out, _ = show(killed, "01K")
    assert (code, "ended" in out.splitlines()[0], "\nopen" in out, "\nnext" in out) == (0, True, False, False)


def test_a_program_reads_the_same(killed: Path) -> None:
    code, out, _ = show(killed, "last", "--json")
    told = json.loads(out)
    assert (code, told["schema"], told["standing"]) == (0, "geode.session_report/1", "unfinished")
    assert told["uncertain"] == ["1/s"]
    ends = {call["call_id"]: call["end"] for call in told["turns"][0]["rounds"][0]["calls"]}
    assert ends == {"w": "succeeded", "s": "uncertain", "r": "unknown"}
    assert len(told["next"]) == 2


def test_a_running_session_is_shown_while_it_runs(killed: Path) -> None:
    """From another process, without waiting for it; there is nothing to type but patience."""
    root = killed / "root"
    holds = (
        "import sys; from pathlib import Path; from tests.serve.killed_session import services\n"
        "from tests.doubles.models import ScriptedModel\n"
        "root = Path(sys.argv[1])\n"
        "services(root).reopen_session(root / 'sessions/01KILLED', root.parent / 'workspace',"
        " adapter=ScriptedModel([]))\n"
        "print('open', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(root)],
        cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        code, out, _ = show(killed, "last")
        owner.kill()
    assert code == 0
    assert "session   01KILLED  running" in out
    assert f"process {owner.pid}" in out
    assert "w  write_file  succeeded" in out
    assert "next" not in out


def test_what_never_began_and_what_is_not_there_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "root" / "sessions" / "01EMPTY").mkdir(parents=True)
    code, out, err = show(tmp_path, "01E")
    assert (code, out, "nothing of session 01EMPTY can be shown" in err) == (1, "", True)
    code, out, err = show(tmp_path, "zz")
    assert (code, out, "geode sessions ls" in err) == (2, "", True)
