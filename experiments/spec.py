"""Where Hydra ends: overrides go in, validated `RunSpec`s come out. The only home of Hydra and omegaconf."""

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.conf import HydraConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import (
    CompactHydraException,
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    InterpolationResolutionError,
    OmegaConfBaseException,
)
from pydantic import TypeAdapter, ValidationError

from experiments.catalogue import installed_choices, unknown_names, with_hook_code
from experiments.overrides import (
    EXPERIMENT_KEYS,
    chosen_hooks,
    how_to_quote,
    nearest,
    override_key,
    quoted,
    root_key,
    variant_name,
    without_options,
)
from experiments.records import VariantName
from experiments.run_spec import InvalidSpec, Problem, RunSpec, build_run_spec
from geode.config.config_dir import config_dir
from geode.redaction import clean_text

_VERSION_BASE = "1.3"
_USAGE = 2  # how Hydra's argument parser ends; a sweep never does
_OF_ONES_OWN = {
    "suite": "; a suite of yours is given by its folder, as suite=./my_suite",
    "hooks": "; a hook of yours is a choice once its package is installed: pip install -e ./my_hook",
}
_TEXT_KEYS = frozenset({"name", "baseline", "question"})
_VALUE_FLAGS = re.compile(r"--?(cfg|c|package|p|config-(path|name|dir)|c[pnd]|info|i|experimental-rerun)")
_VARIANTS: TypeAdapter[dict[VariantName, tuple[str, ...]]] = TypeAdapter(dict[VariantName, tuple[str, ...]])


class ConfigError(CompactHydraException):
    """A configuration that is refused before anything ran. The text is for the user; there is no traceback."""


class CellFailed(CompactHydraException):
    """A cell that ran as a job of another sweeper, and did not end well."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"the cell ended with exit code {self.exit_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSpec:
    """One variant of a sweep: its name, the overrides that are its own, and what they compose to."""

    name: str
    overrides: tuple[str, ...]
    spec: RunSpec


def compose_spec(overrides: Sequence[str]) -> RunSpec:
    """Compose and validate the configuration of one cell. Nothing is run and nothing is written.

    Raises:
        ConfigError: naming the config path, the value, and what would be right.
    """
    _offer_installed()
    with hydra.initialize_config_dir(str(config_dir()), version_base=_VERSION_BASE):
        loader = GlobalHydra.instance().config_loader()
        with _explained(overrides, loader):
            arguments = [_as_hydra_takes_it(override) for override in overrides]
            config = hydra.compose("config", overrides=arguments, return_hydra_config=True)
            return _read(config, config.hydra)


def compose_variants(
    loader: ConfigLoader, master: DictConfig, arguments: Sequence[str], params: Mapping[str, str]
) -> tuple[VariantSpec, ...]:
    """Compose and validate every variant of a multirun: the named ones of the preset, times what is swept over.

    Args:
        loader: of the running Hydra.
        master: its multirun configuration; `variants` is read from it.
        arguments: the overrides of the command line, sweeps among them.
        params: sweeps that the configuration itself holds, as `hydra.sweeper.params`.

    Raises:
        ConfigError: for the first variant that is not valid, by its name.
    """
    arguments = [*(f"{key}={value}" for key, value in params.items()), *arguments]
    with _explained(arguments, loader):
        named = _named_variants(master)
        variants = []
        overrides = OverridesParser.create(loader).parse_overrides(arguments)
        several = bool(named) or any(override.is_sweep_override() for override in overrides)
        for name, own, composed in _expand(overrides, named):
            config = loader.load_sweep_config(master, [_as_hydra_takes_it(override) for override in composed])
            try:
                variants.append(VariantSpec(name=name, overrides=own, spec=_read(config, config.hydra)))
            except InvalidSpec as error:
                where = f"variant {name}: " if several else ""
                problems = [Problem(path=f"{where}{found.path}", text=found.text) for found in error.problems]
                raise InvalidSpec(problems) from error
        _refuse_two_experiments(variants)
    return tuple(variants)


def job_spec(config: object) -> VariantSpec:
    """Validate the configuration that a task function was given by the running Hydra.

    Raises:
        ConfigError: if it is not valid.
    """
    assert isinstance(config, DictConfig)
    hydra_node = HydraConfig.get()
    overrides = [str(override) for override in hydra_node.overrides.task]
    with _explained(overrides, None):
        spec = _read(config, hydra_node)
    return VariantSpec(name=variant_name(overrides), overrides=tuple(overrides), spec=spec)


def launch(task: Callable[[object], float], arguments: Sequence[str], sweep_dir: Path) -> int:
    """Hand raw arguments to Hydra, which runs its sweeper, or prints what its own flags ask for.

    Returns:
        The exit code that the sweeper or the task left.

    Raises:
        ConfigError: if the arguments do not compose to valid variants.
    """
    for argument in arguments:
        if clean_text(argument) != argument:
            text = "it is no text in UTF-8; set the terminal to UTF-8, for instance LANG=C.UTF-8"
            raise ConfigError(f"invalid configuration:\n  {argument!r}: {text}")
    _offer_installed()
    at = _first_override(arguments)
    own = [_quoted_if_group(argument) for argument in arguments]
    before = sys.argv
    # `hydra.main` reads sys.argv and nothing else, and it prints what it catches unless it is asked for the error.
    sys.argv = ["geode", *own[:at], "hydra.mode=MULTIRUN", f"hydra.sweep.dir={quoted(str(sweep_dir))}", *own[at:]]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        with _explained(arguments[at:], None):
            hydra.main(version_base=_VERSION_BASE, config_path=str(config_dir()), config_name="config")(task)()
    except CellFailed as failure:
        return failure.exit_code
    except SystemExit as stop:
        if stop.code == _USAGE:
            text = "of its own geode has --plan, --root PATH and --json; geode sweep --help shows the rest"
            raise ConfigError(f"these arguments are not understood: {' '.join(arguments)}\n  {text}") from stop
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.argv = before
    return 0


def _offer_installed() -> None:
    """Make hooks and suites of installed packages choices of their groups, unless a file has the name."""
    for group, choices in installed_choices().items():
        for name, node in choices.items():
            if not (config_dir() / group / f"{name}.yaml").is_file():
                ConfigStore.instance().store(group=group, name=name, node=dict(node), provider="geode")


def _read(config: DictConfig, hydra_node: HydraConf) -> RunSpec:
    """Resolve everything, and validate it: structure, values, then names."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    tree = OmegaConf.to_container(own, resolve=True, throw_on_missing=True)
    roots = [Path(source.path) for source in hydra_node.runtime.config_sources if source.schema == "file"]
    assert isinstance(tree, dict)
    preset = hydra_node.runtime.choices.get("experiment")
    spec = build_run_spec({str(key): value for key, value in tree.items()}, [*roots, Path.cwd()], preset)
    if problems := unknown_names(spec):
        raise InvalidSpec(problems)
    return with_hook_code(spec)


def _named_variants(master: DictConfig) -> dict[str, tuple[str, ...]]:
    # `~variants` takes the whole key out; what is left is this one configuration.
    tree = OmegaConf.to_container(master.variants, resolve=True, throw_on_missing=True) if "variants" in master else {}
    try:
        return dict(_VARIANTS.validate_python(tree))
    except ValidationError as error:
        problems = [
            Problem(
                path=".".join(("variants", *map(str, detail["loc"]))),
                text=f"{detail['input']!r} is refused; a variant is written NAME: [OVERRIDES], with the letters A to Z,"
                " digits and _ . + = - in its name",
            )
            for detail in error.errors()
        ]
        raise InvalidSpec(problems) from error


def _expand(
    overrides: Sequence[Override], named: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield (name, own overrides, all overrides) of each variant: the named ones times the product of the sweeps.

    An option of a hook would choose that hook. It counts only for variants that do, if there are any: so it can be set
    in a comparison of with and without, and what is swept over it is one variant without.
    """
    common: list[str] = []
    axes: list[list[str]] = []
    for override in overrides:
        line = override.input_line or ""
        if not override.is_sweep_override():
            common.append(line)
        elif root_key(line) in EXPERIMENT_KEYS:
            text = "all variants of an experiment share this key, so it cannot be swept over; give it one value: a list"
            raise InvalidSpec([Problem(path=override_key(line), text=f"{text} as [a,b], a text with commas in quotes")])
        elif not override.is_discrete_sweep():
            raise InvalidSpec([Problem(path=override_key(line), text=f"{line!r} has no end; name the values")])
        else:
            axes.append([f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()])
    _refuse_double_settings(axes, named)
    variants = list(itertools.product((named or {"": ()}).items(), itertools.product(*axes)))
    chosen = [chosen_hooks((*common, *own, *combination)) for (_, own), combination in variants]
    somewhere = frozenset[str]().union(*filter(None, chosen))
    seen: set[tuple[str, ...]] = set()
    for ((name, own), combination), here in zip(variants, chosen, strict=True):
        idle = frozenset() if here is None else somewhere - here
        swept, mine = (without_options(each, idle) for each in (combination, (*own, *combination)))
        composed = (*without_options(common, idle), *mine)
        if idle and composed in seen and swept != combination:
            continue
        seen.add(composed)
        label = ".".join(filter(None, (name, variant_name(swept) if swept else "")))
        yield (label if name else variant_name([*without_options(common, idle), *swept]), mine, composed)


def _refuse_double_settings(axes: Sequence[Sequence[str]], named: Mapping[str, Sequence[str]]) -> None:
    for axis in axes:
        for name, own in named.items():
            if override_key(axis[0]) in {override_key(override) for override in own}:
                text = (
                    f"it is swept over, but the variant {name!r} sets it too; drop that variant with ~variants.{name}"
                )
                raise InvalidSpec([Problem(path=override_key(axis[0]), text=text)])


def _refuse_two_experiments(variants: Sequence[VariantSpec]) -> None:
    """All variants share what is not the scaffold or its roles: one question, one ruler, one executor."""
    shared = {"scaffold", "roles", "options"}
    first = variants[0]
    for variant in variants[1:]:
        for key in sorted(set(RunSpec.model_fields) - shared):
            mine, theirs = getattr(variant.spec, key), getattr(first.spec, key)
            if mine != theirs:
                text = f"variant {variant.name!r} has {mine}, variant {first.name!r} has {theirs}"
                raise InvalidSpec([Problem(path=key, text=f"{text}; variants of one experiment must agree on it")])


def _first_override(arguments: Sequence[str]) -> int:
    """Return where the overrides begin: Hydra's argument parser wants them all in one place."""
    for at, argument in enumerate(arguments):
        if not argument.startswith("-") and (at == 0 or not _VALUE_FLAGS.fullmatch(arguments[at - 1])):
            return at
    return 0


def _quoted_if_group(argument: str) -> str:
    # Flags of Hydra, their values, and what does not parse are for Hydra itself to judge.
    try:
        return argument if argument.startswith("-") else _as_hydra_takes_it(argument)
    except OverrideParseException:
        return argument


def _as_hydra_takes_it(argument: str) -> str:
    """Quote a number where Hydra takes only text: a choice like `repair=0`, and an identifier like `name=12345e6`.

    `suite=./mine` is the folder's `suite.name=./mine`: a group has only files of the configuration as its choices.
    """
    override = OverridesParser.create().parse_overrides([argument])[0]
    key = override.key_or_group
    raw = argument.split("=", 1)[-1]
    if key == "suite" and os.sep in raw and not override.is_sweep_override():
        return f"suite.name={raw}"
    if key in _TEXT_KEYS and not override.is_sweep_override() and isinstance(override.value(), bool | int | float):
        return f"{key}={quoted(raw)}"
    if not (config_dir() / key).is_dir() or override.is_delete():
        return argument
    values: list[Any] = (
        list(override.sweep_iterator()) if override.is_discrete_sweep() and "glob" not in raw else [override.value()]
    )
    for value in values:
        names = value if isinstance(value, list) else [value]
        if any(isinstance(name, dict | list) or name is None for name in names):
            text = f"{raw} is refused: a group takes the names of its choices; values are set by {key}.NAME.OPTION=..."
            raise ConfigError(f"invalid configuration:\n  {key}: {text}")
    if any(isinstance(value, int | float) for value in values):
        return f"{override.get_key_element()}=" + ",".join(f"'{value}'" for value in values)
    return argument


@contextmanager
def _explained(arguments: Sequence[str], loader: ConfigLoader | None) -> Iterator[None]:
    """Turn every way in which Hydra, omegaconf and our own validation refuse into one compact `ConfigError`."""
    try:
        yield
    except (ConfigError, CellFailed):
        raise
    except InvalidSpec as error:
        raise ConfigError(str(error)) from error
    except (HydraException, OmegaConfBaseException) as error:
        loader = loader or _loader()
        raise ConfigError(f"invalid configuration:\n  {_explain(error, arguments, loader)}") from error


def _loader() -> ConfigLoader:
    if GlobalHydra.instance().is_initialized():
        return GlobalHydra.instance().config_loader()
    with hydra.initialize_config_dir(str(config_dir()), version_base=_VERSION_BASE):
        return GlobalHydra.instance().config_loader()


def _explain(error: Exception, arguments: Sequence[str], loader: ConfigLoader) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    if isinstance(error, OverrideParseException):
        return f"{error.override!r} cannot be parsed: {how_to_quote(error.override)}"
    if isinstance(error, ConfigCompositionException) and "--multirun" in str(error):
        # Hydra takes whatever does not compose for a single run, and then objects to what is swept over in it.
        own = [_quoted_if_group(argument) for argument in arguments if not argument.startswith("-")]
        try:
            loader.load_configuration("config", own, RunMode.MULTIRUN)
        except (HydraException, OmegaConfBaseException) as real:
            return _explain(real, own, loader)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        known = nearest(choice, loader.get_group_options(group))
        return f"{group or 'config'}: there is no choice {choice!r}{known}{_OF_ONES_OWN.get(group, '')}"
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and cause.full_key:
        wrong = str(cause.full_key)
        key = next((key for key in map(override_key, arguments) if key.startswith(wrong)), wrong)
        parent, _, last = wrong.rpartition(".")
        there = list(_known_under(parent, loader))
        if parent == "hooks" and last in there:
            chosen = f"the hook {last!r} is not chosen, or not by every variant; hooks=[{last}] chooses it"
            return f"{key}: {chosen}, and ++{key}=... sets the option where it is chosen"
        text = f"{key}: there is no key {last!r}{nearest(last, there)}"
        if parent.startswith("hooks."):
            return f"{text}; an option that the hook has and its file does not is set with +{key}=..."
        return text
    if isinstance(cause, OmegaConfBaseException) and cause.full_key:
        as_text = "; to keep ${...} as text, write \\${...}" if isinstance(cause, InterpolationResolutionError) else ""
        return f"{cause.full_key}: {str(cause).splitlines()[0]}{as_text}"
    return _explain_words(str(error).strip().split("\nSee https", maxsplit=1)[0], loader)


def _explain_words(text: str, loader: ConfigLoader) -> str:
    """Say what to do next, where Hydra says only what is wrong, or what to do in a file of its own."""
    if named := re.match(r"Could not override '([^']*)'", text):
        return f"{named[1] or '='}: there is no such group{nearest(named[1], _known_under('', loader))}"
    if named := re.match(r"Multiple values for (\S+)\.", text):
        return f"{named[1]}: it has a value already; replace it with {named[1]}=..., without +"
    if named := re.match(r"Could not delete from config\. '([^']*)'", text):
        return f"{named[1]}: there is nothing of this name to take out; --cfg job shows what there is"
    return text.replace("\n", "\n  ")


def _known_under(parent: str, loader: ConfigLoader) -> Iterator[str]:
    """Return the keys under `parent` in the configuration without overrides; for a group its choices, too."""
    config = loader.load_configuration("config", [], RunMode.RUN)
    node = OmegaConf.select(config, parent) if parent else config
    groups = (str(group) for group in config.hydra.runtime.choices if not str(group).startswith("hydra/"))
    yield from loader.get_group_options(parent.replace(".", "/")) if parent else groups
    if isinstance(node, DictConfig):
        yield from (str(key) for key in node if key != "hydra")
