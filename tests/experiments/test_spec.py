"""From overrides to one validated cell, through the real configuration and the real Hydra."""

from pathlib import Path

import hydra
import pytest
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from pydantic import JsonValue

from experiments.catalogue import unknown_names
from experiments.overrides import quoted
from experiments.records import Caps
from experiments.run_spec import InvalidSpec, build_run_spec
from experiments.spec import ConfigError, VariantSpec, compose_spec, compose_variants
from geode.config.config_dir import config_dir
from geode.scaffold import LoopLimits, RepairBudget

MINIMAL: dict[str, JsonValue] = {
    "repeats": 1,
    "tools": {"shell": None, "read_file": {}},
    "role": {"target": "simulated/apprentice"},
    "suite": {"name": "workspace"},
}


def test_the_configuration_without_overrides_is_valid_and_says_the_defaults_of_the_code() -> None:
    """Hydra can override only what a file holds, so the files repeat defaults; they must not drift apart."""
    spec = compose_spec([])
    assert (spec.scaffold.limits, spec.caps, spec.scaffold.repair) == (LoopLimits(), Caps(), RepairBudget())
    assert spec.scaffold.hooks == ()
    assert spec.roles == {"target": "simulated/apprentice"}
    assert spec.name is None
    assert spec.sinks == ("mlflow", "duckdb")


def test_choices_keep_their_order_and_the_command_line_wins_over_a_preset() -> None:
    """A hook's position is its priority, and what a user types is what a user means."""
    spec = compose_spec(["experiment=hook_ablation", "hooks=[stop_repeats,protect_tests]", "repeats=5", "repair=0"])
    assert [hook.name for hook in spec.scaffold.hooks] == ["stop_repeats", "protect_tests"]
    assert (spec.name, spec.repeats, spec.scaffold.repair.per_prompt) == ("hook_ablation", 5, 0)
    assert spec.variants["all_three"] == ("hooks=[require_test_run,protect_tests,stop_repeats]",)


def test_the_names_of_choices_are_no_part_of_the_scaffold() -> None:
    """What is hashed is content: the same budget by another route is the same scaffold, another text is another one."""
    chosen, set_by_hand = compose_spec(["repair=3"]), compose_spec(["repair.per_prompt=3"])
    assert chosen.scaffold.scaffold_id == set_by_hand.scaffold.scaffold_id


def test_the_placebo_says_nothing_that_could_help_and_is_as_long_as_the_harm() -> None:
    """A control that hints at testing, or is shorter than what it stands beside, controls nothing."""
    harmful, placebo = compose_spec(["prompt=harmful"]).scaffold, compose_spec(["prompt=placebo"]).scaffold
    (base, tone), (same_base, hurry) = placebo.prompt, harmful.prompt
    assert base == same_base
    assert not [word for word in ("test", "check", "verif", "file", "repeat") if word in tone.text.lower()]
    assert abs(len(tone.text) - len(hurry.text)) <= 10


def test_identifiers_stay_text() -> None:
    """A name that looks like a number must not become one: 12345e6 would come back as 12345000000.0."""
    assert compose_spec(["name=12345e6"]).name == "12345e6"


BAD_OVERRIDES = {
    "hook=[require_test_run]": "hook: there is no key 'hook'; did you mean 'hooks'?",
    "hooks=[requier_test_run]": "hooks: there is no choice 'requier_test_run'; did you mean 'require_test_run'?",
    "hooks=[{name: a}]": "hooks: [{name: a}] is refused: a group takes the names of its choices",
    "hooks.require_test_run.x=1": "hooks.require_test_run.x: the hook 'require_test_run' is not chosen",
    "experiment=hook_ablatoin": "experiment: there is no choice 'hook_ablatoin'; did you mean 'hook_ablation'?",
    "experiment=null": "experiment: null is refused",
    "role/targt=apprentice": "role/targt: there is no key 'role/targt'; did you mean 'role/target'?",
    "tools.shel.hint=x": "tools.shel.hint: there is no key 'shel'; did you mean 'shell'?",
    "repair=-1": "repair: there is no choice '-1'",
    "repair.per_prompt=-1": "repair.per_prompt: -1 is refused: input should be greater than or equal to 0",
    "repeats=???": "repeats: Missing mandatory value",
    "name=${oc.env:GEODE_TEST_NO_SUCH_VARIABLE}": "name: ",
    "question=정확도": "\"'정확도'\"",
    "question=a#b": "question=\"'a#b'\"",
    "repeats": "an override is KEY=VALUE",
    "rubric=mine": "rubric: there is no such group",
    "+experiment=quickstart": "experiment: it has a value already; replace it with experiment=..., without +",
    "~variants.mine": "variants.mine: there is nothing of this name to take out",
    "+variants.한=[]": "the key '+variants.한' takes the letters A to Z",
    "name=${nope}": "Interpolation key 'nope' not found; to keep ${...} as text, write \\${...}",
    "seeds=3": "seeds: 3 is refused: write a list: seeds=[...]",
    "+prompt.sources.mine={kind: file_sections, path: nowhere.md}": "prompt.sources.mine: 'nowhere.md' does not exist",
}


@pytest.mark.parametrize("override", BAD_OVERRIDES)
def test_what_is_wrong_is_refused_by_its_path_and_the_nearest_right_name(override: str) -> None:
    """A typo costs a second, not a run: each message names the place, the value and what would be right."""
    with pytest.raises(ConfigError) as refusal:
        compose_spec([override])
    assert BAD_OVERRIDES[override] in str(refusal.value)


BAD_VALUES: list[tuple[dict[str, JsonValue], str]] = [
    ({"limits": {"round": 3}}, "limits.round: there is no such key; did you mean 'rounds'?"),
    ({"caps": {"cost_usd": -1}}, "caps.cost_usd: -1 is refused"),
    ({"caps": {"seconds": float("inf")}}, "caps.seconds: inf is not a finite number"),
    ({"repeats": True}, "repeats: True is refused: input should be a valid integer"),
    ({"repeats": "3"}, "repeats: '3' is refused: input should be a valid integer"),
    ({"seeds": [1, 1]}, "seeds: 1 is named more than once"),
    ({"seeds": [2**63]}, "seeds.0: 9223372036854775808 is refused: input should be less than"),
    ({"suite": {"name": "workspace", "tasks": ["a", "a"]}}, "suite.tasks: 'a' is named more than once"),
    ({"suite": {"name": "workspace", "tasks": []}}, "suite.tasks: [] is refused: name at least one"),
    ({"name": "../mine"}, "name: '../mine' is refused: write letters A to Z"),
    ({"name": "x" * 500}, "... (502 characters) is refused"),
    ({"limits": 3}, "limits: 3 is refused: set its keys one by one: limits.rounds, limits.tokens"),
    ({"prompt": {"sources": {"x": {"path": "a.md"}}}}, "prompt.sources.x: {'path': 'a.md'} is refused: give it a kind"),
    ({"damaged": "set_asid"}, "did you mean 'set_aside'?"),
    ({"question": 7}, "question: 7 is refused: input should be a valid string; quote it"),
    ({"role": {"target": "nonsense"}}, "role.target.model: 'nonsense' is refused"),
    ({"prompt": {"sources": {"x": {"kind": "inline", "txt": "a"}}}}, "prompt.sources.x.text: this key is missing"),
    ({"experiments": {}}, "experiments: there is no such key"),
    ({"executor": {"name": "ray"}}, "executor: {'name': 'ray'} is refused: choose executor=local or executor=workers"),
    ({"executor": {"name": "workers", "workers": 0}}, "executor.workers: 0 is refused: input should be greater"),
    ({"executor": {"name": "workers", "concurrency": 3}}, "executor.concurrency: there is no such key"),
]


@pytest.mark.parametrize(("changes", "told"), BAD_VALUES)
def test_a_value_that_cannot_be_is_refused_with_its_path(changes: dict[str, JsonValue], told: str) -> None:
    """The types are strict: true is no number, "3" is none, and a unit of a misspelt key is not a default."""
    with pytest.raises(InvalidSpec) as refusal:
        build_run_spec({**MINIMAL, **changes}, [Path()])
    assert told in str(refusal.value)


BAD_NAMES: list[tuple[dict[str, JsonValue], str]] = [
    ({"hooks": {"my_hook": {}}}, "hooks.my_hook: there is no such hook; there are protect_tests"),
    ({"hooks": {"stop_repeats": {"allowed": 0}}}, "hooks.stop_repeats: "),
    ({"tools": {"shel": {}}}, "tools.shel: there is no such tool; did you mean 'shell'?"),
    ({"suite": {"name": "worspace"}}, "suite.name: there is no suite 'worspace'; did you mean 'workspace'?"),
    ({"role": {"target": "simulated/apprentis"}}, "role.target.model: "),
    ({"tracking": {"sinks": ["mlfow"]}}, "tracking.sinks: there is no sink 'mlfow'; did you mean 'mlflow'?"),
]


@pytest.mark.parametrize(("changes", "told"), BAD_NAMES)
def test_a_name_that_nothing_is_registered_under_is_refused(changes: dict[str, JsonValue], told: str) -> None:
    """Names resolve through the registry, before anything runs; options of hooks are checked there too."""
    (problem,) = unknown_names(build_run_spec({**MINIMAL, **changes}, [Path()]))
    assert told in str(problem)


def test_a_prompt_is_read_from_sections_of_a_file_and_from_a_folder_of_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is what is under test; where it lay on this machine is not on record."""
    (tmp_path / "AGENTS.md").write_text("# Style\nShort.\n# Safety\nAsk first.\n", encoding="utf-8")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "one.md").write_text("Rule one.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spec = compose_spec(
        [
            "prompt.sources.base=null",
            "+prompt.sources.mine={kind: file_sections, path: AGENTS.md, sections: [Safety]}",
            f"+prompt.sources.rules={{kind: rules_folder, path: {quoted(str(tmp_path / 'rules'))}}}",
        ]
    )
    section, rule = spec.scaffold.prompt
    assert "Ask first." in section.text
    assert "Short." not in section.text
    assert rule.text == "Rule one."
    assert str(tmp_path) not in spec.model_dump_json()


def test_a_tool_or_prompt_source_that_is_null_is_left_out() -> None:
    """A preset takes one thing away without repeating the rest."""
    spec = build_run_spec(MINIMAL, [Path()])
    assert [tool.name for tool in spec.scaffold.tools.tools] == ["read_file"]


@pytest.mark.parametrize("key", ["_target_", "_recursive_", "_partial_"])
def test_no_configuration_can_name_code(key: str) -> None:
    """A configuration is data from anywhere; it must not be able to call anything, however deep it hides the call."""
    tree = {**MINIMAL, "hooks": {"stop_repeats": {"x": [{"y": {key: "os.system"}}]}}}
    with pytest.raises(InvalidSpec, match=f"hooks.stop_repeats.x.0.y.{key}"):
        build_run_spec(tree, [Path()])


@pytest.fixture(scope="module")
def running() -> tuple[ConfigLoader, DictConfig]:
    """What a sweeper gets from the running Hydra."""
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
    return loader, loader.load_configuration("config", [], RunMode.MULTIRUN)


def variants_of(
    running: tuple[ConfigLoader, DictConfig], arguments: list[str], named: dict[str, JsonValue] | None = None
) -> tuple[VariantSpec, ...]:
    loader, master = running
    master = master.copy()
    OmegaConf.update(master, "variants", named or {}, force_add=True)
    return compose_variants(loader, master, arguments, {})


def test_named_variants_are_multiplied_by_what_is_swept_over(running: tuple[ConfigLoader, DictConfig]) -> None:
    """A preset names its variants; a sweep on the command line crosses them with one more thing."""
    found = variants_of(running, ["repair=0,3", "repeats=7"], {"plain": [], "hooked": ["hooks=[stop_repeats]"]})
    assert [variant.name for variant in found] == [
        "plain.repair=0",
        "plain.repair=3",
        "hooked.repair=0",
        "hooked.repair=3",
    ]
    assert found[3].overrides == ("hooks=[stop_repeats]", "repair=3")
    assert (found[3].spec.scaffold.repair.per_prompt, found[3].spec.repeats) == (3, 7)
    assert [hook.name for hook in found[3].spec.scaffold.hooks] == ["stop_repeats"]


def test_an_option_of_a_hook_counts_only_for_variants_that_choose_it(
    running: tuple[ConfigLoader, DictConfig],
) -> None:
    """It would choose the hook: the variant without would have it too, and nobody would see that."""
    found = variants_of(running, ["hooks=[],[require_read],[stop_repeats]", "++hooks.stop_repeats.allowed=1,4"])
    assert [(variant.name, [hook.name for hook in variant.spec.scaffold.hooks]) for variant in found] == [
        ("hooks=none", []),
        ("hooks=require_read", ["require_read"]),
        ("hooks=stop_repeats.hooks.stop_repeats.allowed=1", ["stop_repeats"]),
        ("hooks=stop_repeats.hooks.stop_repeats.allowed=4", ["stop_repeats"]),
    ]
    assert [hook.options["allowed"] for variant in found[2:] for hook in variant.spec.scaffold.hooks] == [1, 4]
    assert found[0].overrides == ("hooks=[]",)
    named: dict[str, JsonValue] = {"without": ["hooks=[]"], "with": ["hooks=[stop_repeats]"]}
    without, with_it = variants_of(running, ["++hooks.stop_repeats.allowed=4"], named)
    assert without.spec.scaffold.hooks == ()
    assert [hook.options["allowed"] for hook in with_it.spec.scaffold.hooks] == [4]


def test_an_option_of_a_hook_that_no_variant_chooses_still_adds_the_hook(
    running: tuple[ConfigLoader, DictConfig],
) -> None:
    """Nothing that was typed is dropped in silence everywhere."""
    found = variants_of(running, ["hooks=[],[require_read]", "++hooks.stop_repeats.allowed=4"])
    assert all("stop_repeats" in [hook.name for hook in variant.spec.scaffold.hooks] for variant in found)


BAD_SWEEPS: list[tuple[list[str], dict[str, JsonValue], str]] = [
    (["repeats=1,2"], {}, "repeats: all variants of an experiment share this key"),
    (["limits.rounds=interval(1,5)"], {}, "limits.rounds: 'limits.rounds=interval(1,5)' has no end"),
    (["prompt=base,harmful"], {"a": ["prompt=placebo"]}, "prompt: it is swept over, but the variant 'a' sets it too"),
    ([], {"a": ["hooks=[nope]"]}, "hooks: there is no choice 'nope'"),
    ([], {"a": ["repeats=7"], "b": []}, "repeats: variant 'b' has 5, variant 'a' has 7"),
    ([], {"a": 7}, "variants.a: 7"),
    ([], {"no name": []}, "variants.no name"),
    ([], {"a": ["repair"]}, "'repair' cannot be parsed"),
]


@pytest.mark.parametrize(("arguments", "named", "told"), BAD_SWEEPS)
def test_a_sweep_that_cannot_be_one_experiment_is_refused(
    running: tuple[ConfigLoader, DictConfig], arguments: list[str], named: dict[str, JsonValue], told: str
) -> None:
    """Every variant is composed and validated before one of them runs, and all share one ruler."""
    with pytest.raises(ConfigError) as refusal:
        variants_of(running, arguments, named)
    assert told in str(refusal.value)


def test_every_problem_of_the_configuration_is_named_at_once() -> None:
    """Mending a preset is one pass, not one run for each mistake."""
    with pytest.raises(InvalidSpec) as refusal:
        build_run_spec({**MINIMAL, "repeats": 0, "damaged": "set_asid", "caps": {"rounds": 0}}, [Path()])
    assert {problem.path for problem in refusal.value.problems} == {"repeats", "damaged", "caps.rounds"}
