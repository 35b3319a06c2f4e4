"""What an imported archive tells the tracking store: one record a result directory, already summed up."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """One run of somebody else's harness. `name` is unique within `experiment`: importing it again replaces it.

    `params` and `tags` are as recorded; `metrics` has only finite numbers, and none for what was not measured.
    """

    name: str
    experiment: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
