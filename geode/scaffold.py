"""The thing under test: everything that shapes an agent but the model, immutable and named by its content."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from geode.canonical import content_hash

SCAFFOLD_ID_DIGITS = 12

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PromptSource(_Part):
    """One piece of the system prompt. Where it came from is on record; its text is what counts.

    `origin` names the source without a path of any machine: a file name, a section, or `inline`.
    """

    kind: Literal["inline", "file_sections", "rules_folder"] = "inline"
    origin: Annotated[str, Field(pattern=r"^[^/\\].*$", max_length=200)] = "inline"
    text: str


class HookChoice(_Part):
    """A hook by its registered name, with its options. The position in the scaffold is its priority.

    `code` is a digest of the hook's own code if it comes from an installed package. The library's hooks have none, and
    then the key is absent: their code is GEODE's, whose version is on every record.
    """

    name: Name
    options: dict[str, JsonValue] = {}
    code: Annotated[str | None, Field(pattern=r"^[0-9a-f]{12}$", exclude_if=lambda code: code is None)] = None


class ToolChoice(_Part):
    """A tool by its registered name. An own description or a policy hint replaces or extends what the model reads."""

    name: Name
    description: str | None = None
    hint: str | None = None


class ToolPlan(_Part):
    """The tools that a scaffold offers, in the order in which the model sees them."""

    tools: tuple[ToolChoice, ...]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [choice.name for choice in self.tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the tool plan names {', '.join(map(repr, twice))} more than once")
        return self


class RepairBudget(_Part):
    """How often one prompt's answer may be sent back, and the words that open each repair instruction."""

    per_prompt: Annotated[int, Field(ge=0, le=10)] = 2
    preamble: str = "Your answer was checked and is not accepted yet."


class LoopLimits(_Part):
    """What one prompt may use at the most. Units are in the names; a limit that is passed ends the turn."""

    rounds: Annotated[int, Field(ge=1, le=10_000)] = 40
    tokens: Annotated[int, Field(ge=1)] = 400_000
    seconds: Annotated[float, Field(gt=0)] = 900.0
    cost_usd: Annotated[float, Field(ge=0)] = 5.0
    calls_per_round: Annotated[int, Field(ge=1, le=128)] = 16
    empty_answers_in_a_row: Annotated[int, Field(ge=1, le=20)] = 3
    cut_answers_in_a_row: Annotated[int, Field(ge=1, le=20)] = 3
    stop_continuations: Annotated[int, Field(ge=0, le=5)] = 1
    context_tokens: Annotated[int, Field(ge=1_000)] = 150_000


class Skill(_Part):
    """An entry of the skill catalogue: a name and text that the agent may read."""

    name: Name
    text: str


class SubAgentContract(_Part):
    """What a delegated child session may do: its tools and its limits, never more than its parent's."""

    name: Name
    tools: tuple[Name, ...]
    limits: LoopLimits = LoopLimits()


class CompletionCheck(_Part):
    """The judge that an answer has to pass besides the rules, before a turn may end.

    `engine` is configured by `options`; `rubric` is the content of the rubric that it judges by. An answer passes if
    each dimension has at least the share `pass_at` of its range, 1 being the good end. The model is that of the role
    judge, if the engine asks one.
    """

    engine: Name
    options: dict[str, JsonValue] = {}
    rubric: dict[str, JsonValue]
    pass_at: Annotated[float, Field(gt=0, le=1)]


class Scaffold(_Part):
    """A target scaffold. Two scaffolds with the same content have the same `scaffold_id`."""

    prompt: tuple[PromptSource, ...] = ()
    hooks: tuple[HookChoice, ...] = ()
    tools: ToolPlan
    decomposition: str = ""
    repair: RepairBudget = RepairBudget()
    skills: tuple[Skill, ...] = ()
    sub_agents: tuple[SubAgentContract, ...] = ()
    limits: LoopLimits = LoopLimits()
    completion: Annotated[CompletionCheck | None, Field(exclude_if=lambda check: check is None)] = None

    @model_validator(mode="after")
    def _hooks_are_unique(self) -> Self:
        # A hook's memory is kept by its name.
        names = [choice.name for choice in self.hooks]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the scaffold names the hook {', '.join(map(repr, twice))} more than once")
        return self

    @model_validator(mode="after")
    def _nobody_hands_on_what_they_do_not_have(self) -> Self:
        offered = {choice.name for choice in self.tools.tools}
        for agent in self.sub_agents:
            if foreign := sorted(set(agent.tools) - offered):
                raise ValueError(
                    f"the sub-agent {agent.name!r} names {foreign[0]!r}, which the scaffold does not offer"
                )
        names = [agent.name for agent in self.sub_agents]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"the scaffold names the sub-agent {twice[0]!r} more than once")
        return self

    @property
    def scaffold_id(self) -> str:
        """The first 12 hex digits of the SHA-256 of the canonical JSON of this scaffold."""
        return content_hash(self.model_dump(mode="json"))[:SCAFFOLD_ID_DIGITS]
