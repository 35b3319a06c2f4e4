"""Every preset and every choice of the shipped configuration composes, and says what its name promises."""

import itertools
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml
from pydantic import JsonValue
from typer.testing import CliRunner

from experiments.cli import register
from experiments.records import Caps, TaskRef, Variant, episode_key
from experiments.run_spec import RunSpec, build_run_spec
from experiments.spec import compose_spec
from geode.config.config_dir import config_dir
from geode.hooks.library import ABLATED, LIBRARY
from geode.llm import routes
from geode.llm.apprentice.faults import FaultName, Where
from geode.llm.apprentice.hearing import Hearing, StepKind
from geode.llm.simulated import shipped_table
from geode.loop.prompt import system_prompt
from geode.tools.catalogue import TOOLS

pytestmark = pytest.mark.slow  # a composition costs 0.1 s, and there are many

ARCHIVED = "archived_sil_2606"


def choices(group: str) -> list[str]:
    return sorted(file.stem for file in (config_dir() / group).glob("*.yaml"))


PRESETS = [name for name in choices("experiment") if name != ARCHIVED]


@cache
def composed(*overrides: str) -> RunSpec:
    return compose_spec(list(overrides))


def params_of(preset: str) -> dict[str, str]:
    tree = yaml.safe_load((config_dir() / "experiment" / f"{preset}.yaml").read_text(encoding="utf-8"))
    params = tree.get("hydra", {}).get("sweeper", {}).get("params", {})
    return {str(key): str(value) for key, value in params.items()}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_composes_and_its_variants_name_choices_that_exist(preset: str) -> None:
    """A preset is copied by those who begin; one that is broken teaches nothing."""
    spec = composed(f"experiment={preset}")
    assert (spec.name, bool(spec.question)) == (preset, True)
    assert spec.baseline is None or spec.baseline in spec.variants
    for override in itertools.chain(*spec.variants.values(), (f"{k}={v}" for k, v in params_of(preset).items())):
        group, _, names = override.partition("=")
        if (config_dir() / group).is_dir():  # what is no group is a value, which composing checks
            assert set(re.findall(r"\w+", names)) <= set(choices(group)), override


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_planned_with_variants_that_differ(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command composes each variant, and refuses two that are the same scaffold in the same roles."""
    code, shown, told = planned(tmp_path, monkeypatch, [f"experiment={preset}", "--json"])
    assert code == 0, told
    named = list(composed(f"experiment={preset}").variants)
    assert named == [] or list(json.loads(shown)["variants"]) == named


GROUPS = ["executor", "gate", "hooks", "prompt", "repair", "role/auditor", "role/judge", "role/target", "scaffold"]
GROUPS += ["suite", "tools", "tracking"]
CHOICES = {group: [name for name in choices(group) if name != "sil_2606"] for group in GROUPS}


@pytest.mark.parametrize("at", range(max(map(len, CHOICES.values()))))
def test_every_choice_of_every_group_composes(at: int) -> None:
    """One of each group at a time, so that all are taken in as few compositions as the largest group needs."""
    chosen = {group: names[at % len(names)] for group, names in CHOICES.items()}
    spec = composed(*(f"{group}=[{name}]" if group == "hooks" else f"{group}={name}" for group, name in chosen.items()))
    assert [hook.name for hook in spec.scaffold.hooks] == [chosen["hooks"]]
    assert list(spec.roles) == ["target", "auditor", "judge"]


def test_every_hook_that_ships_is_a_choice_and_its_file_repeats_the_defaults_of_the_code() -> None:
    """The file shows what can be set; a value in it that is not the code's own would be a second default."""
    assert choices("hooks") == sorted(LIBRARY)
    for choice in composed(f"hooks=[{','.join(LIBRARY)}]").scaffold.hooks:
        defaults = vars(type(LIBRARY[choice.name]({})))["options_type"]()
        assert {key: getattr(defaults, key) for key in choice.options} == choice.options


def test_the_hooks_of_the_library_are_ablated_one_by_one() -> None:
    alone = {name: (f"hooks=[{name}]",) for name in sorted(set(LIBRARY) - set(ABLATED))}
    assert composed("experiment=hooks_library").variants == {"baseline": (), **alone}


def test_the_repair_budget_goes_from_none_to_four_with_a_hook_that_uses_it() -> None:
    """Without a hook that sends answers back, all budgets are the same."""
    spec = composed("experiment=repair_budget")
    assert list(spec.variants.values()) == [(f"repair={n}",) for n in range(5)]
    assert [composed(f"repair={n}").scaffold.repair.per_prompt for n in range(5)] == [0, 1, 2, 3, 4]
    assert [hook.name for hook in spec.scaffold.hooks] == ["require_test_run"]


# The prompts


def heard(prompt: str, fault: FaultName) -> float:
    """The rate of a fault under a prompt, as a share of its rate under no words at all."""
    step: StepKind = (
        "change" if fault in (FaultName.EDIT_ELSEWHERE, FaultName.OMIT_STEP, FaultName.OVERLOOK) else "check"
    )
    text = system_prompt(composed(f"prompt={prompt}").scaffold)
    silent = Hearing(shipped_table(), system="", tools="").rate(fault, step)
    return Hearing(shipped_table(), system=text, tools="").rate(fault, step) / silent


def test_the_careful_prompt_names_every_habit_that_the_table_rewards() -> None:
    """It is the most that a system prompt can do for the simulated worker."""
    table = shipped_table()
    text = system_prompt(composed("prompt=careful").scaffold)
    hearing = Hearing(table, system=text, tools="")
    rewarded = {
        fault
        for fault, entry in table.faults.items()
        if any(cue.where is Where.SYSTEM and cue.factor is not None and cue.factor < 1 for cue in entry.cues)
    }
    kinds: tuple[StepKind, ...] = ("inspect", "change", "check")
    silent = Hearing(table, system="", tools="")
    helped = {f for f in FaultName if any(hearing.rate(f, kind) < silent.rate(f, kind) for kind in kinds)}
    assert helped == rewarded
    assert not [f for f in FaultName if any(hearing.rate(f, kind) > silent.rate(f, kind) for kind in kinds)]


@pytest.mark.parametrize("prompt", ["handbook", "rules"])
def test_a_prompt_from_files_says_what_the_files_say(prompt: str) -> None:
    """Where the text came from is on record without a path; its words count like inline ones."""
    sources = composed(f"prompt={prompt}").scaffold.prompt
    assert {source.kind for source in sources} == {"file_sections" if prompt == "handbook" else "rules_folder"}
    assert not [source.origin for source in sources if "/" in source.origin]
    assert heard(prompt, FaultName.SKIP_CHECK) < 1
    assert heard("terse", FaultName.SKIP_CHECK) == heard("base", FaultName.SKIP_CHECK) == 1


def test_one_section_of_the_handbook_can_be_chosen() -> None:
    (source,) = composed("prompt=handbook", "prompt.sources.handbook.sections=[Testing]").scaffold.prompt
    assert source.text.startswith("## Testing\nRun the tests")
    assert source.origin == "handbook.md#Testing"


def test_the_tool_sets_describe_the_same_tools() -> None:
    """Only what the model reads may differ, or the comparison would be one of tools."""
    sets = {name: composed(f"tools={name}").scaffold.tools.tools for name in ("default", "with_hints", "rewritten")}
    six = ("list_files", "read_file", "write_file", "edit_file", "search", "shell")
    assert {tuple(choice.name for choice in tools) for tools in sets.values()} == {six}
    assert all(choice.hint for choice in sets["with_hints"])
    assert all(choice.description for choice in sets["rewritten"])


def test_git_comes_beside_the_six_tools() -> None:
    """The six keep their order, which is part of what the model sees."""
    names = [choice.name for choice in composed("tools=with_git").scaffold.tools.tools]
    assert names == [name for name in TOOLS if name != "web_fetch"]


# Roles

PLAYED = {"target": "simulated/apprentice"}


def test_a_role_that_is_null_leaves_no_trace_in_what_names_an_episode() -> None:
    """Episodes that exist keep their keys: roles came in beside the target, and nobody pays twice for them."""
    spec = composed()
    assert spec.roles == PLAYED
    variant = Variant(name="v", scaffold_id="d81d0509d0df", scaffold=spec.scaffold, roles=spec.roles)
    task = TaskRef(task_id="t", family="f", task_hash="0" * 64)
    key = episode_key(variant, task, 0, 0, Caps())
    assert key == "4aa69f73c58b5c45700e53bb32925789cf7af2a61393e55250deceb2a73897ba"


def test_roles_beside_the_target_are_bound_by_group_or_by_value() -> None:
    judged = {**PLAYED, "judge": "simulated/apprentice"}
    assert composed("role/judge=apprentice").roles == judged
    assert composed("+role.judge=simulated/apprentice").roles == judged
    both = composed("experiment=roles", "role/auditor=apprentice", "role/judge=apprentice").roles
    assert both == {**judged, "auditor": "simulated/apprentice"}


def test_the_archived_roles_are_known_as_recorded_and_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing launches a model of the past under its old name, or another one in its place."""
    code, shown, told = planned(tmp_path, monkeypatch, [f"experiment={ARCHIVED}", "--json"])
    assert code == 2
    (variant,) = json.loads(shown)["variants"].values()
    assert variant["refused"] == variant["new"] == 22
    lines = told.splitlines()
    assert lines.pop(0) == "geode: 22 planned episodes are refused; nothing was run:"
    recorded = {"target": "openai-codex/gpt-5.5", "auditor": "anthropic/claude-opus-4-8"}
    recorded["judge"] = recorded["auditor"]
    assert [line.split(": ")[0] for line in lines] == [f"  22 x role.{role}.model" for role in recorded]
    for line, model in zip(lines, recorded.values(), strict=True):
        assert f"{model!r} is bound as run-2606 has it on record" in line
        assert "replayed from those records, not launched" in line
        assert line.endswith("bind the role to another model of `geode models ls`")
    assert set(recorded.values()) <= set(routes.ARCHIVED)


def test_the_archived_roles_are_kept_by_the_specification_that_is_refused() -> None:
    """They are well formed: what replays them reads them from the same files."""
    roles = {
        role: yaml.safe_load((config_dir() / "role" / role / "sil_2606.yaml").read_text(encoding="utf-8"))
        for role in ("target", "auditor", "judge")
    }
    tree: dict[str, JsonValue] = {"repeats": 1, "tools": {"shell": {}}, "role": roles, "suite": {"name": "workspace"}}
    assert list(build_run_spec(tree, [Path()]).roles) == ["target", "auditor", "judge"]


# The command


def planned(root: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]) -> tuple[int, str, str]:
    monkeypatch.chdir(root)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")  # as the command sets it; set here, it is taken back after the test
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["sweep", *arguments, "--plan", "--root", str(root / "root")])
    return result.exit_code, result.stdout, result.stderr


def test_the_factorial_is_the_product_of_its_factors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra's own product, written in the preset: each level of a factor meets each of the others."""
    assert params_of("full_factorial") == {"prompt": "base,careful", "hooks": "[],[require_test_run]", "repair": "0,2"}
    code, shown, told = planned(tmp_path, monkeypatch, ["experiment=full_factorial", "tracking=none", "--json"])
    assert code == 0, told
    assert list(json.loads(shown)["variants"]) == [
        f"prompt={prompt}.hooks={hooks}.repair={repair}"
        for prompt in ("base", "careful")
        for hooks in ("none", "require_test_run")
        for repair in (0, 2)
    ]
