"""The thin commands of the runtime: `ask`, `sessions`, `effects`."""

import json
from pathlib import Path

import pytest

from tests.done.command import geode
from tests.serve.test_resume_after_kill import killed

__all__ = ["killed"]


@pytest.mark.slow
def test_ask_answers_from_the_folder_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    """Without a key this is what a newcomer tries first."""
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    ran = geode(
        tmp_path, "ask", "-", "--json", "--workspace", str(tmp_path), "--root", str(tmp_path / "r"), stdin="Look?"
    )
    assert ran.code == 0, ran.err
    assert ran.json["simulated"] is True
    assert "notes.txt" in str(ran.json["text"])
    listed = geode(tmp_path, "sessions", "ls", "--root", str(tmp_path / "r"))
    assert str(ran.json["session"]) in listed.out
    state = json.loads((tmp_path / "r" / "sessions" / str(ran.json["session"]) / "state.json").read_text())
    assert (state["mode"], state["status"]) == ("daemon", "idle")


@pytest.mark.slow
def test_a_killed_session_is_listed_looked_into_and_resumed(killed: Path) -> None:
    """What a person does the morning after."""
    root = ("--root", str(killed / "root"))
    assert "open" in geode(killed, "sessions", "ls", *root).out
    before = geode(killed, "effects", "ls", "01KILLED", *root)
    assert "shell" in before.out
    assert "write_file" not in before.out
    resumed = geode(killed, "sessions", "resume", "01KILLED", "--workspace", str(killed / "workspace"), *root)
    assert "simulated" in resumed.out, resumed.err
    assert (killed / "workspace" / "shell.txt").read_text() == "ran\n"
    again = geode(killed, "sessions", "resume", "01KILLED", "--workspace", str(killed / "workspace"), *root)
    assert again.code == 1
    assert "nothing to resume" in again.err


@pytest.mark.slow
def test_an_uncertain_effect_is_settled_once_by_the_operators_word(killed: Path) -> None:
    """Only a person who looked can know; the receipt and the timeline keep who decided what, and why."""
    root = ("--root", str(killed / "root"))
    (effect,) = geode(killed, "effects", "ls", "--json", *root).json["effects"]
    name = str(effect["effect"])
    assert f"state          {effect['state']}" in geode(killed, "effects", "show", "01KILLED", name, *root).out
    assert "no effect '9/x'; there are" in geode(killed, "effects", "show", "01KILLED", "9/x", *root).err
    settle = ("effects", "settle", "01KILLED", name)
    unsaid = geode(killed, *settle, "maybe", "--why", "x", *root)
    assert (unsaid.code, "succeeded, failed, not_started" in unsaid.err) == (2, True)
    settled = geode(killed, *settle, "succeeded", "--why", "shell.txt is there", *root)
    assert settled.code == 0, settled.err
    again = geode(killed, *settle, "failed", "--why", "changed my mind", *root)
    assert (again.code, "is succeeded, as settled by operator" in again.err) == (2, True)
    assert "no uncertain effect" in geode(killed, "effects", "ls", *root).err
    session = next((killed / "root" / "sessions").iterdir())
    last = json.loads((session / "timeline.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["effect"], last["by"]) == ("effect_settled", name, "operator")
    assert last["note"] == "shell.txt is there"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("ask", " "), 2, "empty"),
        (("ask", "x", "--workspace", "nowhere"), 2, "nowhere"),
        (("ask", "x", "--model", "gpt"), 1, "route/id"),
        (("ask", "x", "--model", "anthropic/claude-opus-5.5"), 1, "anthropic/claude-opus-5-5"),
        (("sessions", "resume", "zz"), 2, "geode sessions ls"),
        (("effects", "ls", "zz"), 2, "geode sessions ls"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_can(
    tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """A message without a next step leaves the person where they were."""
    ran = geode(tmp_path, *arguments, more={"GEODE_HOME": str(tmp_path / "root")})
    assert (ran.code, said in ran.err, "Traceback" in ran.err) == (code, True, False), ran.err
