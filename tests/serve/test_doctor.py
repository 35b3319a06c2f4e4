"""Facts of `geode doctor`: it says what is there, what will fail and what to do, and changes nothing."""

import json
from pathlib import Path

import pytest

from geode.config.settings import read_settings
from geode.serve.doctor import Finding, Health, examine, has_wal_race
from geode.tools.sandbox import why_no_sandbox
from tests.done.command import geode
from tests.doubles.sandboxes import WHY_NO_BWRAP


def found(root: Path, **environment: str) -> dict[str, Finding]:
    settings = read_settings(root, {"PATH": "/nowhere", **environment})
    return {finding.about: finding for finding in examine(settings)}


@pytest.mark.parametrize(
    ("version", "raced"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
    ],
)
def test_the_versions_with_the_race_are_known(version: tuple[int, int, int], raced: bool) -> None:
    """R25: 3.7.0 to 3.51.2, fixed in 3.51.3 and in two older lines."""
    assert has_wal_race(version) is raced


def test_looking_changes_nothing(tmp_path: Path) -> None:
    findings = found(tmp_path / "root")
    assert "not made yet" in findings["state root"].text
    assert not (tmp_path / "root").exists()


def test_a_root_that_cannot_be_used_is_bad_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "hooks.json").write_text("[")
    findings = found(tmp_path)
    assert findings["hooks"].health is Health.BAD
    assert "hooks.json is not JSON" in findings["hooks"].text


def test_which_keys_are_set_is_told_and_no_key(tmp_path: Path) -> None:
    canary = "zx-canary-0123456789"
    text = found(tmp_path, ANTHROPIC_API_KEY=canary)["keys"].text
    assert text == "routes with a key: anthropic (ANTHROPIC_API_KEY)"
    assert found(tmp_path)["keys"].text == "no key of a route is set: only simulated models answer"


def test_a_key_that_its_route_refuses_is_told_with_the_reason_and_no_key(tmp_path: Path) -> None:
    canary = "sk-ant-oat01-0123456789"
    finding = found(tmp_path, ANTHROPIC_API_KEY=canary)["keys"]
    assert finding.health is Health.MISSING
    assert "OAuth token of a Claude subscription" in finding.text
    assert canary not in finding.text


@pytest.mark.slow
def test_the_command_ends_with_1_if_something_will_fail(tmp_path: Path) -> None:
    fine = geode(tmp_path, "doctor", "--root", str(tmp_path / "root"))
    assert fine.code == 0, fine.out
    assert "SQLite 3." in fine.out
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "hooks.json").write_text(json.dumps({"hooks": 1}))
    ill = geode(tmp_path, "doctor", "--json", "--root", str(tmp_path / "root"))
    assert ill.code == 1
    assert [one["about"] for one in ill.json["findings"] if one["health"] == "bad"] == ["hooks"]


@pytest.mark.parametrize(("path", "health"), [("/nowhere", Health.MISSING), ("", Health.OK)])
def test_whether_there_is_a_sandbox_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, health: Health
) -> None:
    """By trying it: bwrap is on many a machine where it may not make a namespace."""
    why_no_sandbox.cache_clear()
    if path:
        monkeypatch.setenv("PATH", path)
    elif WHY_NO_BWRAP:
        pytest.skip(WHY_NO_BWRAP)
    assert found(tmp_path)["sandbox"].health is health
    why_no_sandbox.cache_clear()
