"""`geode models` as the installed command: the catalogue, one model of it, and a real call when it is asked for."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from geode.dev.fake_provider.script import Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from tests.done.command import Ran, geode
from tests.doubles.provider import keys_of

CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def double() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def models(home: Path, *arguments: str, **environment: str) -> Ran:
    return geode(home, "models", *arguments, "--root", str(home / "root"), more=environment)


def test_the_catalogue_is_listed_with_the_keys_that_are_set(tmp_path: Path) -> None:
    ran = models(tmp_path, "ls", "--route", "anthropic", ANTHROPIC_API_KEY=CANARY)
    assert ran.code == 0
    rows = {row.split()[0]: row.split() for row in ran.out.splitlines()}
    assert rows["claude-opus-5-5"][1:] == [
        "anthropic,openrouter",
        "primary",
        "1,000,000",
        "128,000",
        "4/20",
        "anthropic",
    ]
    assert "gpt-6-sol" not in rows
    assert rows["claude-sonnet-4-5-20250929"][-2:] == ["ended", "2026-11-30"]
    assert CANARY not in ran.out + ran.err
    assert not (tmp_path / "root").exists(), "looking makes nothing"


def test_the_list_is_json_for_a_program(tmp_path: Path) -> None:
    listed = models(tmp_path, "ls", "--json").json
    assert listed["schema"] == "geode.model-list/1"
    rows = listed["models"]
    assert isinstance(rows, list)
    names = [name for row in rows if isinstance(row, dict) for name in (row["names"] or ())]  # type: ignore[union-attr]
    assert {"zai/glm-4.7-flash", "openrouter/auto", "openai-codex/gpt-6-luna"} <= set(names)


def test_one_model_is_shown_by_its_id_or_by_a_route(tmp_path: Path) -> None:
    shown = models(tmp_path, "show", "gpt-6-sol", OPENAI_API_KEY=CANARY)
    assert "openai/gpt-6-sol  (OPENAI_API_KEY is set)" in shown.out
    assert "openai-codex/gpt-6-sol  (OPENAI_CODEX_TOKEN is not set)" in shown.out
    assert "input 2, cache read 0.2, cache write 2.5, output 10; as of 2026-09-22" in shown.out
    assert models(tmp_path, "show", "openai/gpt-6-sol", "--json").json["efforts"] == [
        *("none", "low", "medium", "high", "xhigh", "max")
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "claude-9"), "geode models ls names all"),
        (("show", "anthropic/claude-opus-5.5"), "did you mean 'anthropic/claude-opus-5-5'"),
        (("ls", "--route", "claude"), "there are anthropic, openai"),
        (("check",), "no key of a route is set"),
        (("check", "--route", "typesafe"), "only judges"),
    ],
)
def test_what_there_is_not_is_refused_with_the_next_step(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = models(tmp_path, *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_check_asks_a_cheap_model_of_each_route_with_a_key_once(tmp_path: Path, double: FakeProvider) -> None:
    double.play(Script(then=Step(text="ready")))
    ran = models(tmp_path, "check", "--json", **keys_of(double))
    assert ran.code == 0, ran.err
    checks = ran.json["checks"]
    assert isinstance(checks, list)
    assert [(row["model"], row["ok"], row["cost_origin"]) for row in checks if isinstance(row, dict)] == [
        ("anthropic/claude-haiku-4-5-20251001", True, "computed"),
        ("openai/gpt-6-luna", True, "computed"),
        ("openai-codex/gpt-6-luna", True, "unknown"),
        ("zai/glm-4.7-flash", True, "computed"),
        ("openrouter/anthropic/claude-haiku-4.5", True, "reported"),
    ]
    assert len(double.requests) == 5


def test_a_check_that_fails_says_why_and_ends_with_1(tmp_path: Path, double: FakeProvider) -> None:
    double.play(Script(steps=(Step(failure=Failure.FORBIDDEN),), then=Step(text="ready")))
    ran = models(tmp_path, "check", "openai/gpt-6-sol", "zai/glm-5.3", **keys_of(double))
    assert ran.code == 1
    failed, fine = ran.out.splitlines()
    assert failed.startswith("failed  openai/gpt-6-sol: AuthenticationFailed")
    assert fine.startswith("ok      zai/glm-5.3: served by glm-5.3 in ")
    assert re.search(r" ms, 0\.00\d{4} USD \(computed\)$", fine), fine
