"""Facts of `geode.scaffold`: a scaffold is its content, and its name changes with the content only."""

from typing import Any

import pytest
from pydantic import ValidationError

from geode.scaffold import (
    HookChoice,
    LoopLimits,
    PromptSource,
    RepairBudget,
    Scaffold,
    Skill,
    SubAgentContract,
    ToolChoice,
    ToolPlan,
)

FULL = Scaffold(
    prompt=(PromptSource(kind="rules_folder", origin="rules:one.md", text="Be brief."),),
    hooks=(HookChoice(name="stop_repeats", options={"allowed": 2, "window": 8}),),
    tools=ToolPlan(tools=(ToolChoice(name="read_file"), ToolChoice(name="shell", hint="Only tests."))),
    decomposition="Plan first.",
    repair=RepairBudget(per_prompt=1, preamble="No."),
    skills=(Skill(name="csv", text="Use csv."),),
    sub_agents=(SubAgentContract(name="reader", tools=("read_file",)),),
    limits=LoopLimits(rounds=7),
)

CHANGES: list[dict[str, Any]] = [
    {"prompt": ()},
    {"prompt": (PromptSource(kind="rules_folder", origin="rules:one.md", text="Be brief!"),)},
    {"prompt": (PromptSource(kind="rules_folder", origin="rules:two.md", text="Be brief."),)},
    {"hooks": ()},
    {"hooks": (HookChoice(name="stop_repeats", options={"allowed": 3, "window": 8}),)},
    {"tools": ToolPlan(tools=tuple(reversed(FULL.tools.tools)))},
    {"tools": ToolPlan(tools=(ToolChoice(name="read_file"), ToolChoice(name="shell", hint="Only checks.")))},
    {"tools": ToolPlan(tools=(ToolChoice(name="read_file", description=""), FULL.tools.tools[1]))},
    {"decomposition": "Plan last."},
    {"repair": RepairBudget(per_prompt=2, preamble="No.")},
    {"repair": RepairBudget(per_prompt=1, preamble="Yes.")},
    {"skills": (Skill(name="csv", text="Use csv!"),)},
    {"sub_agents": (SubAgentContract(name="reader", tools=()),)},
    {"limits": LoopLimits(rounds=8)},
    *({"limits": LoopLimits(rounds=7, **{name: 2_000})} for name in ("tokens", "seconds", "cost_usd")),
]


def test_the_name_is_twelve_hex_digits_of_the_content() -> None:
    """A stored result is found by this name, so it must not change by accident between versions."""
    assert Scaffold(tools=ToolPlan(tools=())).scaffold_id == "0e0e51c89ca1"


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_content_changes_the_name(change: dict[str, Any]) -> None:
    assert FULL.model_copy(update=change).scaffold_id != FULL.scaffold_id


def test_the_code_of_an_own_hook_is_content_and_its_absence_is_none() -> None:
    """An edited hook is another scaffold; scaffolds that were named before code was counted keep their names."""
    one, two = (
        FULL.model_copy(update={"hooks": (HookChoice(name="mine", code=code),)}) for code in ("0" * 12, "1" * 12)
    )
    assert one.scaffold_id != two.scaffold_id
    assert "code" not in FULL.model_dump(mode="json")["hooks"][0]


def test_the_same_content_has_the_same_name_however_it_was_made() -> None:
    again = Scaffold.model_validate_json(FULL.model_dump_json())
    options = {"window": 8, "allowed": 2}
    shuffled = FULL.model_copy(update={"hooks": (HookChoice(name="stop_repeats", options=options),)})
    assert again.scaffold_id == shuffled.scaffold_id == FULL.scaffold_id


def test_a_scaffold_cannot_change_under_its_name() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        FULL.decomposition = "other"
    with pytest.raises(ValidationError, match="frozen"):
        FULL.limits.rounds = 99


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"tols": {"tools": []}}, "tols"),
        ({"limits": {"round": 3}}, "limits.round"),
        ({"limits": {"rounds": 0}}, "limits.rounds"),
        ({"limits": {"seconds": float("nan")}}, "limits.seconds"),
        ({"repair": {"per_prompt": -1}}, "repair.per_prompt"),
        ({"hooks": [{"name": "Stop Repeats"}]}, "hooks.0.name"),
        ({"prompt": [{"text": "x", "origin": "/home/somebody/AGENTS.md"}]}, "prompt.0.origin"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(body: dict[str, Any], place: str) -> None:
    """An absolute path of one machine would make a record that no other machine can compare."""
    with pytest.raises(ValidationError) as refused:
        Scaffold.model_validate({"tools": {"tools": []}, **body})
    assert place in [".".join(map(str, error["loc"])) for error in refused.value.errors()]


def test_a_tool_and_a_hook_are_named_once() -> None:
    """The memory of a hook is kept by its name, and the model calls a tool by its name."""
    with pytest.raises(ValidationError, match=r"'shell' more than once"):
        ToolPlan(tools=(ToolChoice(name="shell"), ToolChoice(name="shell", hint="again")))
    twice = (HookChoice(name="stop_repeats"), HookChoice(name="stop_repeats", options={"allowed": 5}))
    with pytest.raises(ValidationError, match=r"'stop_repeats' more than once"):
        Scaffold(tools=ToolPlan(tools=()), hooks=twice)
