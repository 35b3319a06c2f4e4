"""Who judges whether a turn may end, besides the rules: what a configuration says, and the check that it makes."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from geode.config.config_dir import config_dir
from geode.llm.binding import ModelOptions
from geode.llm.catalog import is_decision_only
from geode.llm.routes import ARCHIVED, parse_model
from geode.llm.spending import is_billed
from geode.scaffold import CompletionCheck
from judges.catalogue import EngineChoice, JudgeConfigError, choice_of
from judges.rubric import RubricError, find_rubric

AUTO: Final = "auto"
NONE: Final = "none"
_ASK_A_MODEL: Final = ("llm", "jev")


class CompletionChoice(BaseModel):
    """Who judges whether a turn may end, besides the rules: a judge engine, `none`, or `auto`.

    `auto` is `llm` if a language model is bound to the role judge, and none otherwise: a decision model judges only
    where it was chosen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: Annotated[str, Field(min_length=1)] = NONE
    options: dict[str, JsonValue] = {}
    rubric: str = "completion"
    pass_at: Annotated[float, Field(gt=0, le=1)] = 1.0


def completion_check(choice: CompletionChoice, judge: str | None) -> CompletionCheck | None:
    """Return the check that a scaffold holds; `judge` is the model of the role judge.

    Raises:
        ValueError: if it cannot be used; the text says what to do.
    """
    engine = choice.engine
    if engine == AUTO:
        engine = "llm" if judge is not None and _holds_a_conversation(judge) else NONE
    if engine == NONE:
        return None
    if engine in _ASK_A_MODEL and judge is None:
        raise ValueError(f"{engine} asks the model of the role judge; bind it: +role.judge=route/id")
    try:
        rubric = find_rubric(config_dir() / "rubric", choice.rubric)
        check = CompletionCheck(
            engine=engine, options=choice.options, rubric=rubric.model_dump(mode="json"), pass_at=choice.pass_at
        )
        engine_choice(check, judge or "", ModelOptions())
    except (RubricError, JudgeConfigError) as error:
        raise ValueError(str(error)) from error
    return check


def _holds_a_conversation(model: str) -> bool:
    return is_billed(model) and model not in ARCHIVED and not is_decision_only(parse_model(model))


def engine_choice(check: CompletionCheck, judge: str, options: ModelOptions) -> EngineChoice:
    """Return the engine of a check, with the model that plays the role judge.

    Raises:
        JudgeConfigError: if there is no such engine, or it cannot be configured so.
    """
    body: dict[str, JsonValue] = {"engine": check.engine, **check.options}
    match check.engine:
        case "llm":
            asked = options.model_dump(mode="json", exclude_defaults=True)
            # Moving ids of roles are refused, or allowed, before an experiment runs.
            body |= {"model": judge, "options": asked, "allow_moving": True}
        case "jev":
            route, _, model_id = judge.partition("/")
            body |= {"route": route, "model_id": model_id, "allow_moving": True}
        case _:
            pass
    return choice_of(check.engine, body)
