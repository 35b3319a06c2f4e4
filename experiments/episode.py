"""The record of an episode: what `episode.json` holds. Its presence means that the episode is done."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.suite import Outcome

VOLATILE_FIELDS = frozenset(
    {"session_id", "started_at", "ended_at", "wall_s", "cpu_s", "geode_version", "python_version"}
)
"""What two runs of one episode may differ in. Everything else is a function of the `episode_key`."""


class RoleUsage(BaseModel):
    """Tokens and cost of one role in one episode.

    `reasoning_tokens` are a part of the output; `cost_usd` lacks the cost of `unpriced_calls`, which nobody knows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    uncached_input_tokens: Annotated[int, Field(ge=0)] = 0
    cache_write_tokens: Annotated[int, Field(ge=0)] = 0
    cache_read_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    reasoning_tokens: Annotated[int, Field(ge=0)] = 0
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    unpriced_calls: Annotated[int, Field(ge=0)] = 0
    calls: Annotated[int, Field(ge=0)] = 0
    latency_ms: Annotated[int, Field(ge=0)] = 0


class EpisodeRecord(BaseModel):
    """One task attempted once by one scaffold.

    `roles` and `usage` are keyed by role name (target, auditor, judge, mutator); a role's value is `route/id`.
    `latency_ms` of a usage is the model's own time (simulated time for a simulated model); `wall_s` and `cpu_s` are the
    host's. `verified` says whether the completion check accepted the last answer. `broken_hooks` are hooks that failed
    instead of deciding, each with what went wrong first. `simulated` is true if any role was played by no language
    model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["geode.episode/1"] = Field(default="geode.episode/1", alias="schema")
    episode_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scaffold_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    suite: str
    task_id: str
    family: str
    task_hash: str
    seed: int
    repetition: Annotated[int, Field(ge=0)]
    roles: dict[str, str]
    caps_hash: str
    outcome: Outcome
    stop_reason: str
    verified: bool
    rounds: int
    tool_calls: int
    tool_errors: int
    refused_calls: int
    repairs_used: int
    broken_hooks: dict[str, str] = Field(default_factory=dict)
    usage: dict[str, RoleUsage]
    simulated: bool
    session_id: str
    started_at: datetime
    ended_at: datetime
    wall_s: float
    cpu_s: float
    geode_version: str
    python_version: str

    @property
    def cost_usd(self) -> float:
        """The cost of all roles, as far as it is known."""
        return sum(usage.cost_usd for usage in self.usage.values())

    @property
    def known_cost_usd(self) -> float | None:
        """The cost of all roles; None if that of any call is not known."""
        return None if any(usage.unpriced_calls for usage in self.usage.values()) else self.cost_usd
