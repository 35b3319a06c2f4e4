"""Rubrics: the dimensions that a judge gives values to. A rubric is part of the ruler: its content names it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from geode.canonical import content_hash

_STEPS_MAX: Final = 1_000
"""Every value of a score is named to a model: nobody tells more of them apart."""


class Direction(StrEnum):
    """Which end of a dimension is the good one."""

    LOWER = "lower"
    HIGHER = "higher"


class Tier(StrEnum):
    """How much a dimension counts: `info` dimensions have no weight."""

    CRITICAL = "critical"
    AUXILIARY = "auxiliary"
    INFO = "info"


class Scale(StrEnum):
    """What kind of answer a dimension takes."""

    SCORE = "score"
    """How much: ordered values from `lowest` to `highest`."""
    FLAG = "flag"
    """Whether: 0 is no, 1 is yes."""
    CHOICE = "choice"
    """Which: one of `labels`, each with the value that it stands for; one without a value abstains."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Label(_Part):
    """An answer to a choice: what it means, and its value in the dimension's range; None abstains."""

    text: Annotated[str, Field(min_length=1)]
    value: float | None


class Dimension(_Part):
    """One thing that is judged, in values from `lowest` to `highest`, both included.

    `anchors` say what single values look like; the two ends should have one.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    question: Annotated[str, Field(min_length=1)]
    direction: Direction
    scale: Scale = Scale.SCORE
    lowest: int = 1
    highest: int = 10
    tier: Tier = Tier.AUXILIARY
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    anchors: dict[int, str] = {}
    labels: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")], Label] = {}

    @model_validator(mode="after")
    def _range_holds(self) -> Self:
        if self.lowest >= self.highest:
            raise ValueError(f"{self.name}: the range {self.lowest} to {self.highest} is empty")
        if self.highest - self.lowest > _STEPS_MAX:
            raise ValueError(f"{self.name}: {self.lowest} to {self.highest} is more than {_STEPS_MAX} steps")
        if outside := [value for value in self.anchors if not self.lowest <= value <= self.highest]:
            raise ValueError(f"{self.name}: the anchor {outside[0]} is outside {self.lowest} to {self.highest}")
        if self.tier is Tier.INFO and self.weight:
            raise ValueError(f"{self.name}: an info dimension has no weight, but this one has {self.weight:g}")
        return self

    @model_validator(mode="after")
    def _scale_holds(self) -> Self:
        if self.scale is Scale.FLAG and (self.lowest, self.highest) != (0, 1):
            raise ValueError(f"{self.name}: a flag runs from 0 to 1, not from {self.lowest} to {self.highest}")
        if bool(self.labels) != (self.scale is Scale.CHOICE):
            raise ValueError(f"{self.name}: a choice needs labels, and nothing else has them")
        values = {name: label.value for name, label in self.labels.items() if label.value is not None}
        if outside := [n for n, value in values.items() if not self.lowest <= value <= self.highest]:
            raise ValueError(f"{self.name}: the label {outside[0]!r} is outside {self.lowest} to {self.highest}")
        if self.labels and (len(values) < 2 or len(values) == len(self.labels)):
            raise ValueError(f"{self.name}: a choice needs two labels with a value, and one without for 'cannot tell'")
        return self

    def normalised(self, value: float) -> float:
        """Return `value` as a share of the range, 1 being the good end.

        Raises:
            ValueError: if it lies outside the range: it is refused, never clamped.
        """
        if not self.lowest <= value <= self.highest:
            raise ValueError(f"{self.name}: {value:g} is outside {self.lowest} to {self.highest}")
        share = (value - self.lowest) / (self.highest - self.lowest)
        return share if self.direction is Direction.HIGHER else 1 - share


class Rubric(_Part):
    """Named dimensions, each once."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [dimension.name for dimension in self.dimensions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the rubric names {', '.join(map(repr, twice))} more than once")
        return self

    @property
    def rubric_id(self) -> str:
        """First 12 hex digits of the hash of the rubric's content."""
        return content_hash(self.model_dump(mode="json"))[:12]

    def dimension(self, name: str) -> Dimension:
        """Return the dimension called `name`.

        Raises:
            KeyError: if there is none; it names those that there are.
        """
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(f"rubric {self.name!r} has no dimension {name!r}; it has {[d.name for d in self.dimensions]}")


class RubricError(ValueError):
    """A rubric file cannot be used. The text names the file, the place and the problem."""


def load_rubric(path: Path) -> Rubric:
    """Read a rubric from a YAML file.

    Raises:
        RubricError: if it cannot be read or is no rubric.
    """
    try:
        return Rubric.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RubricError(f"{path} cannot be read as YAML ({error})") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'rubric'}: {e['msg']}" for e in error.errors())
        raise RubricError(f"{path} is no rubric ({problems})") from error


def find_rubric(folder: Path, wanted: str) -> Rubric:
    """Read the rubric `wanted`: a file of `folder` by its name, or any file by its path.

    Raises:
        RubricError: if there is none, or it is no rubric.
    """
    if (path := folder / f"{wanted}.yaml").is_file():
        return load_rubric(path)
    if (path := Path(wanted).expanduser()).is_file():
        return load_rubric(path)
    names = ", ".join(sorted(path.stem for path in folder.glob("*.yaml")))
    raise RubricError(f"there is no rubric {wanted!r}; there are {names}, or name a file of your own")
