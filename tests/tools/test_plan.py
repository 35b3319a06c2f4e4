"""Only what is bound can be seen or dispatched, and a bound plan never changes."""

import dataclasses

import pytest

from geode.scaffold import ToolChoice, ToolPlan
from geode.tools.arguments import check_arguments
from geode.tools.plan import ExtraTools, UnboundTool, bind
from geode.tools.spec import SafetyLevel, ToolSpec
from tests.doubles.tools import CountingTool


def tools(*names: str) -> dict[str, ToolSpec]:
    return {name: CountingTool(name=name).spec for name in names}


def plan(*choices: ToolChoice | str) -> ToolPlan:
    return ToolPlan(tools=tuple(ToolChoice(name=c) if isinstance(c, str) else c for c in choices))


def test_only_named_tools_are_bound_in_the_order_of_the_plan() -> None:
    """Contract 5.7: what the plan leaves out can be neither seen nor dispatched."""
    bound = bind(plan("write_file", "read_file"), tools("read_file", "shell", "write_file"))
    assert [schema.name for schema in bound.schemas] == list(bound.specs) == ["write_file", "read_file"]
    assert bound.get("shell") is None
    assert bound.get("read_file") is bound.specs["read_file"]


def test_an_unknown_tool_is_an_error_that_names_the_nearest() -> None:
    """A silent gap in the plan would be an experiment on another scaffold than the one it is filed under."""
    with pytest.raises(UnboundTool, match="'read_fil', which is not available: did you mean 'read_file'"):
        bind(plan("read_fil"), tools("read_file", "shell"))
    with pytest.raises(UnboundTool, match="there are read_file, shell"):
        bind(plan("zzz"), tools("shell", "read_file"))


def test_a_made_up_name_gets_a_suggestion_and_nothing_else() -> None:
    """R12: `run_shel` is answered with the nearest name; it is never run in its place."""
    bound = bind(plan("shell", "read_file"), tools("shell", "read_file"))
    assert bound.get("shel") is None
    assert bound.nearest("shel") == "shell"
    assert bound.nearest("quantum_teleport") is None
    assert bound.nearest("s" * 100_000) is None


@pytest.mark.parametrize("name", ["drive.search", "New Tool", "t" * 65, "도구", "", "a\n"])
def test_a_name_that_a_provider_refuses_is_refused_here(name: str) -> None:
    """R13: one such name makes every request of the session fail."""
    choice = ToolChoice.model_construct(name=name)
    with pytest.raises(UnboundTool, match="a name has 1 to 64"):
        bind(ToolPlan.model_construct(tools=(choice,)), {name: CountingTool(name=name).spec})


def test_a_tool_cannot_be_bound_under_another_name_than_its_own() -> None:
    """A09: no tool takes the place of another by how it is listed."""
    with pytest.raises(UnboundTool, match="calls itself 'other'"):
        bind(plan("read_file"), {"read_file": CountingTool(name="other").spec})


def test_description_and_hint_are_what_the_model_reads() -> None:
    """They are part of the scaffold under test."""
    bound = bind(plan(ToolChoice(name="shell", description="Run it.", hint="Run the tests.")), tools("shell"))
    assert bound.schemas[0].description == "Run it.\n\nRun the tests."
    hinted = bind(plan(ToolChoice(name="shell", hint="Be careful.")), tools("shell"))
    assert hinted.schemas[0].description == "Count calls of shell.\n\nBe careful."


def test_the_hash_names_the_content_and_not_the_generation() -> None:
    """Equal plans of two sessions have one name; whatever the model or the policy can see changes it."""
    available = tools("a", "b")
    first = bind(plan("a", "b"), available)
    assert bind(plan("a", "b"), available, ExtraTools(generation=7)).plan_hash == first.plan_hash
    others = [
        bind(plan("b", "a"), available),
        bind(plan("a"), available),
        bind(plan(ToolChoice(name="a", hint="x"), "b"), available),
        bind(plan("a", "b"), available | {"a": CountingTool(name="a", level=SafetyLevel.ADMIN).spec}),
        bind(
            plan("a", "b"),
            available | {"a": CountingTool(name="a", input_schema={"type": "object", "properties": {}}).spec},
        ),
    ]
    hashes = {first.plan_hash, *(other.plan_hash for other in others)}
    assert len(hashes) == 1 + len(others)


def test_a_bad_schema_is_an_error_that_names_the_tool() -> None:
    """R45: with six tools, 'invalid schema' alone helps nobody."""
    bad = CountingTool(name="fetch", input_schema={"type": "object", "$ref": "http://169.254.169.254/x"}).spec
    with pytest.raises(UnboundTool, match="'fetch' cannot be used: it refers to 'http://169"):
        bind(plan("shell", "fetch"), tools("shell") | {"fetch": bad})


def test_a_bound_plan_does_not_change_with_what_it_was_bound_from() -> None:
    """A08: a server that changes a schema after approval changes nothing in this session."""
    tool = CountingTool(name="a", input_schema={"type": "object", "required": ["x"]})
    available = {"a": tool.spec}
    bound = bind(plan("a"), available)
    tool.input_schema["required"] = []
    del available["a"]
    spec = bound.get("a")
    assert spec is not None
    assert "missing 'x'" in (check_arguments(spec, {}) or "")
    assert bound.schemas[0].input_schema == {"type": "object", "required": ["x"]}
    with pytest.raises(TypeError):
        bound.specs["b"] = spec  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.generation = 2  # type: ignore[misc]


def test_extra_tools_stand_behind_the_scaffolds_own_under_names_of_their_own() -> None:
    """R44, A09: what a server offers displaces nothing, and takes nobody's place."""
    extra = tuple(tools("s__searchFiles", "s__b-2").values())
    bound = bind(plan("shell"), tools("shell", "read_file"), ExtraTools(specs=extra, generation=4))
    assert list(bound.specs) == ["shell", "s__searchFiles", "s__b-2"]
    assert bound.generation == 4
    assert bound.plan_hash != bind(plan("shell"), tools("shell")).plan_hash
    with pytest.raises(UnboundTool, match="'read_file' is a tool of our own"):
        bind(plan("shell"), tools("shell", "read_file"), ExtraTools(specs=tuple(tools("read_file").values())))
    with pytest.raises(UnboundTool, match="two tools are named 's__a'"):
        bind(plan("shell"), tools("shell"), ExtraTools(specs=(*tools("s__a").values(), *tools("s__a").values())))
