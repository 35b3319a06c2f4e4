from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from geode.clock import ManualClock
from geode.config.config_dir import config_dir
from geode.dev.fake_provider.keys import FAKE_KEYS
from geode.llm.credentials import ACCESS
from geode.llm.errors import CredentialMissing, RouteRefused
from judges import catalogue
from judges.catalogue import (
    EngineChoice,
    EngineParts,
    JudgeConfigError,
    choice_of,
    model_words,
    open_engine,
    read_choice,
)
from judges.engine import JudgeEngine
from judges.independence import Independent, NotIndependent
from judges.judgment import Judgment
from tests.judges.jev_house import RUBRIC
from tests.judges.scripted import Scripted
from tests.judges.views import view

CLAUDE, GPT = "anthropic/claude-opus-5-5", "openai/gpt-6-astra"
JUDGES = config_dir() / "judge"


def parts() -> EngineParts:
    keys = {access.variable: FAKE_KEYS[route] for route, access in ACCESS.items()}
    return EngineParts(clock=ManualClock(), environment=keys)


def opened(name: str, *words: str) -> JudgeEngine:
    return open_engine(read_choice(JUDGES, name, words), parts())


def refusal(name: str, *words: str) -> str:
    with pytest.raises(JudgeConfigError) as refused:
        read_choice(JUDGES, name, words)
    return str(refused.value)


def test_a_language_model_is_named_by_its_route_and_id() -> None:
    engine = opened("llm", *model_words("llm", CLAUDE), "options.effort=high")
    assert (engine.name, engine.models) == ("llm", (CLAUDE,))
    assert engine.engine_id != opened("llm", f"model={CLAUDE}").engine_id


def test_without_a_model_there_is_no_such_judge() -> None:
    """None is taken that nobody chose: it would be billed."""
    assert "it names no model; name one with --model route/id" in refusal("llm")


def test_a_decision_model_is_named_in_the_same_way() -> None:
    assert opened("jev", *model_words("jev", "typesafe/jev-1.14.0")).models == ("typesafe/jev-1.14.0",)


def test_a_decision_model_cannot_be_asked_for_a_rationale() -> None:
    with pytest.raises(RouteRefused, match="decision-only"):
        opened("llm", "model=typesafe/jev-1.13.0")


def test_a_moving_id_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(RouteRefused, match="different models at different times"):
        opened("llm", "model=openrouter/auto")
    assert opened("llm", "model=openrouter/auto", "allow_moving=true").models == ("openrouter/auto",)


def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    with pytest.raises(CredentialMissing):
        open_engine(read_choice(JUDGES, "llm", [f"model={CLAUDE}"]), EngineParts(clock=ManualClock()))


def test_the_shipped_cascade_asks_the_cheap_ones_first() -> None:
    engine = opened("cascade", f"stages.llm.model={CLAUDE}")
    assert (engine.name, engine.models) == ("cascade", ("openrouter/typesafe/jev-1.13", CLAUDE))
    assert engine.engine_id != opened("cascade", f"stages.llm.model={CLAUDE}", "escalate.jev.highest=0.6").engine_id


def test_a_band_is_of_a_stage_with_another_one_behind_it() -> None:
    text = refusal("cascade", f"stages.llm.model={CLAUDE}", "escalate.llm.highest=0.5")
    assert "'llm' is no stage with another one behind it; there are rules, jev" in text


def test_the_shipped_panel_has_three_members() -> None:
    engine = opened("panel", f"members.one.model={CLAUDE}", f"members.two.model={GPT}")
    assert engine.models == (CLAUDE, GPT, "openrouter/typesafe/jev-1.13")
    text = refusal("panel", f"members.one.model={CLAUDE}", f"members.two.model={GPT}", "quorum=4")
    assert "the quorum 4 is more than the 3 members" in text


def nested(allow: str) -> EngineChoice:
    rules, llm = {"engine": "rules"}, {"engine": "llm", "model": CLAUDE}
    panel = {"engine": "panel", "members": {"rules": rules, "llm": llm}}
    return choice_of("nested", {"engine": "cascade", "stages": {"panel": panel, "last": llm}}, [allow] if allow else [])


async def test_the_guard_of_independence_holds_for_engines_within_engines() -> None:
    engine = open_engine(nested(""), parts())
    assert engine.models == (CLAUDE,)
    with pytest.raises(NotIndependent, match="both of the family anthropic"):
        await engine.judge(view(target="anthropic/claude-sonnet-5"), RUBRIC)


def test_the_guard_is_lifted_where_it_is_lifted_for_a_part() -> None:
    assert nested("").allow_same_family is False  # type: ignore[union-attr]
    assert nested("stages.panel.members.llm.allow_same_family=true").allow_same_family is True  # type: ignore[union-attr]


def test_an_engine_that_asks_no_model_needs_no_guard() -> None:
    assert not isinstance(opened("rules"), Independent)


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("nobody", [], "there is no judge 'nobody'; there are cascade, jev, llm, panel, recorded, rules"),
        ("llm", [f"model={CLAUDE}", "input_tokens_max=10"], "input_tokens_max"),
        ("llm", [f"model={CLAUDE}", "temprature=1"], "temprature"),
        ("cascade", [f"stages.llm.model={CLAUDE}", "stages.past.engine=recorded"], "stages.past"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(name: str, words: list[str], text: str) -> None:
    assert text in refusal(name, *words)


class TestPackages:
    """Engines of installed packages, by the entry-point group `geode.judges`."""

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        points = EntryPoints(
            EntryPoint(name=name, value=f"tests.judges.test_catalogue:{value}", group=catalogue.JUDGES_GROUP)
            for name, value in (("mine", "make_mine"), ("broken", "nothing_there"))
        )
        monkeypatch.setattr(catalogue, "entry_points", points.select)

    async def test_one_is_chosen_by_its_name(self) -> None:
        engine = opened("mine", "options.done=1")
        judgment: Judgment = await engine.judge(view(), RUBRIC)
        assert judgment.scored["done"].value == 1

    async def test_its_models_are_held_against_the_target(self) -> None:
        with pytest.raises(NotIndependent):
            await opened("mine").judge(view(target="openai/gpt-6-sol"), RUBRIC)

    def test_one_that_cannot_be_opened_is_named(self) -> None:
        with pytest.raises(JudgeConfigError, match=r"the judge 'broken' of tests\.judges.* cannot be opened"):
            opened("broken")
        with pytest.raises(JudgeConfigError, match=r"'mine' .* cannot be opened \(ValueError: care is not mine\)"):
            opened("mine", "options.care=1")

    def test_one_in_a_cascade_is_named_too(self, tmp_path: Path) -> None:
        (tmp_path / "both.yaml").write_text(
            "engine: cascade\nstages: {rules: {engine: rules}, last: {engine: package, name: gone}}\n"
        )
        with pytest.raises(JudgeConfigError, match="no installed package has the judge 'gone'; there are broken, mine"):
            open_engine(read_choice(tmp_path, "both"), parts())


def make_mine(options: dict[str, float], parts: EngineParts) -> JudgeEngine:
    """What a package would offer."""
    assert parts.clock is not None
    if "care" in options:
        raise ValueError("care is not mine")
    return Scripted(options, "mine", model=GPT)
