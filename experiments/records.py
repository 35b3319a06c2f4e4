"""What an experiment is on record: `experiment.yaml`, written before its first episode and rewritten only to grow."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from geode.canonical import content_hash
from geode.llm.binding import ModelOptions
from geode.scaffold import Scaffold

VariantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+=-]{0,79}$")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Caps(_Record):
    """What the ruler allows one episode at the most, whatever its scaffold's own limits say."""

    rounds: Annotated[int, Field(ge=1)] = 60
    tokens: Annotated[int, Field(ge=1)] = 1_000_000
    seconds: Annotated[float, Field(gt=0)] = 1_800.0
    cost_usd: Annotated[float, Field(ge=0)] = 10.0

    @property
    def caps_hash(self) -> str:
        """First 12 hex digits of the hash of the caps; part of every `episode_key`."""
        return content_hash(self.model_dump(mode="json"))[:12]


class TaskRef(_Record):
    """A task as the experiment knows it."""

    task_id: str
    family: str
    task_hash: str


class Variant(_Record):
    """One scaffold with its roles. `overrides` are the arguments that make it differ from the common configuration.

    `options` say how the models of roles are asked, where that is not left to their providers.
    """

    name: VariantName
    scaffold_id: str
    scaffold: Scaffold
    roles: dict[str, str]
    options: dict[str, ModelOptions] = {}
    overrides: tuple[str, ...] = ()


class Ruler(_Record):
    """What is measured with. Two results may be compared only under one ruler; another ruler is another epoch."""

    suite: str
    tasks: tuple[TaskRef, ...]
    seeds: tuple[int, ...]
    caps: Caps
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    rule: str = "paired_fixed"

    @property
    def ruler_id(self) -> str:
        """First 12 hex digits of the hash of the ruler: the epoch's name."""
        return content_hash(self.model_dump(mode="json"))[:12]


class ExperimentRecord(_Record):
    """The whole plan of an experiment: variants, blocks and a question."""

    schema_: Literal["geode.experiment/1"] = Field(default="geode.experiment/1", alias="schema")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
    question: str
    baseline: VariantName
    variants: Annotated[tuple[Variant, ...], Field(min_length=1)]
    ruler: Ruler
    repeats: Annotated[int, Field(ge=1)]
    created_at: datetime
    geode_version: str

    @model_validator(mode="after")
    def _variants_are_distinct(self) -> Self:
        names = [variant.name for variant in self.variants]
        if len(set(names)) != len(names):
            raise ValueError(f"variant names must differ, but are {names}")
        if self.baseline not in names:
            raise ValueError(f"the baseline {self.baseline!r} is none of the variants {names}")
        return self

    def variant(self, name: str) -> Variant:
        """Return the variant called `name`.

        Raises:
            KeyError: if there is none.
        """
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise KeyError(f"no variant {name!r} in experiment {self.name!r}")

    def episode_keys(self, variant: Variant) -> Iterator[tuple[TaskRef, int, int, str]]:
        """Yield (task, seed, repetition, episode_key) of the cell of `variant`."""
        for task in self.ruler.tasks:
            for seed in self.ruler.seeds:
                for repetition in range(self.repeats):
                    yield task, seed, repetition, episode_key(variant, task, seed, repetition, self.ruler.caps)


def episode_key(variant: Variant, task: TaskRef, seed: int, repetition: int, caps: Caps) -> str:
    """Name an episode by what determines it: SHA-256, 64 hex digits.

    The experiment, the variant's name and the statistics are not part of it, so that an episode is shared by every
    experiment that asks for it.
    """
    options = {
        role: options.model_dump(mode="json", exclude_defaults=True) for role, options in variant.options.items()
    }
    return content_hash(
        {
            "scaffold": variant.scaffold_id,
            "task": task.task_hash,
            "roles": variant.roles,
            "seed": seed,
            "repetition": repetition,
            "caps": caps.caps_hash,
            **({"options": options} if options else {}),  # what is not set has no part in the key
        }
    )
