"""Facts of the operator's hooks: they decide in every session but an experiment's, and see no key."""

import json
from pathlib import Path

import pytest

from tests.done.command import geode

pytestmark = pytest.mark.slow


def with_hooks(root: Path, **points: str) -> tuple[str, str]:
    root.mkdir(exist_ok=True)
    hooks = {point: [{"hooks": [{"type": "command", "command": command}]}] for point, command in points.items()}
    (root / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    return "--root", str(root)


def ask(home: Path, root: tuple[str, str], **more: str) -> tuple[int, dict[str, object]]:
    ran = geode(home, "ask", "Look around.", "--json", "--workspace", str(home), *root, more=more)
    assert ran.out, ran.err
    return ran.code, ran.json


def test_a_hook_of_the_operator_blocks_a_prompt_with_its_reason(tmp_path: Path) -> None:
    root = with_hooks(tmp_path / "root", UserPromptSubmit="echo not on a Sunday >&2; exit 2")
    _, said = ask(tmp_path, root)
    assert (said["stop"], said["detail"]) == ("prompt_blocked", "not on a Sunday")


def test_a_broken_hook_blocks_and_says_that_it_is_broken(tmp_path: Path) -> None:
    """R33: a typing error in a guard's path must not be a guard that is off."""
    _, said = ask(tmp_path, with_hooks(tmp_path / "root", UserPromptSubmit="./no_such_guard"))
    assert said["stop"] == "prompt_blocked"
    assert "is broken" in str(said["detail"])
    assert "127" in str(said["detail"])


def test_a_hook_sees_no_key_of_ours(tmp_path: Path) -> None:
    """R40: the allow-list is of names that hold none."""
    root = with_hooks(tmp_path / "root", UserPromptSubmit=f"env > {tmp_path}/env; exit 0")
    canary = "zx-canary-0123456789"
    ask(tmp_path, root, ANTHROPIC_API_KEY=canary, GEODE_SLACK_TOKEN=canary, MY_RANDOM_TOKEN=canary)
    seen = (tmp_path / "env").read_text()
    assert canary not in seen
    assert f"GEODE_PROJECT_DIR={tmp_path}" in seen


def test_a_command_hears_what_happens_and_its_failure_is_evidence(tmp_path: Path) -> None:
    """It is done before `geode ask` is, and says nothing to the model."""
    names = ("SessionStart", "turn_ended", "SessionEnd")
    keep = {name: f"sleep 0.2; cat > {tmp_path}/{name}" for name in names}
    root = with_hooks(tmp_path / "root", **keep, call_ended="exit 7")
    code, said = ask(tmp_path, root)
    assert code == 0
    assert [json.loads((tmp_path / name).read_text())["hook_event_name"] for name in names] == list(names)
    evidence = (tmp_path / "root" / "sessions" / str(said["session"]) / "evidence.jsonl").read_text()
    assert evidence.count("hook call_ended[0.0]") == 1
    assert "exit code 7" in evidence


def test_an_experiment_is_not_touched_by_hooks_of_one_machine(tmp_path: Path) -> None:
    """It measures its scaffold; else the same experiment would say something else on another machine."""
    root = with_hooks(tmp_path / "root", UserPromptSubmit="exit 2", PreToolUse="exit 2", Stop="exit 2")
    ran = geode(tmp_path, "run", "suite.tasks=[fix_slug]", "repeats=2", "tracking=none", "--json", *root)
    assert ran.json["ran"] == 2, ran.err
    timelines = list((tmp_path / "root" / "episodes").rglob("timeline.jsonl"))
    assert len(timelines) == 2
    assert not any("hook_decided" in path.read_text() for path in timelines)


def test_no_session_begins_without_guards_that_cannot_be_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "hooks.json").write_text("{")
    ran = geode(tmp_path, "ask", "Look.", "--workspace", str(tmp_path), "--root", str(root))
    assert (ran.code, "hooks.json is not JSON" in ran.err, "Traceback" in ran.err) == (1, True, False)
    listed = geode(tmp_path, "hooks", "ls", "--root", str(root))
    assert (listed.code, "hooks.json is not JSON" in listed.err) == (2, True)


def test_hooks_are_listed_with_what_has_no_place_here(tmp_path: Path) -> None:
    root = with_hooks(tmp_path / "root", Stop="./end.sh", SessionEnd="./bye.sh", WorktreeCreate="./t.sh")
    listed = geode(tmp_path, "hooks", "ls", *root)
    assert "Stop[0.0]  guard  within 60 s  ./end.sh" in listed.out
    assert "SessionEnd[0.0]  is told  within 60 s  ./bye.sh" in listed.out
    assert "hooks.WorktreeCreate: there is no such point" in listed.err
    assert geode(tmp_path, "hooks", "ls", "--json", *root).json["not_used"]
