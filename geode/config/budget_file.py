"""The operator's caps on spending: `budget.yaml` under the state root.

    schema: geode.budget/1
    session_usd: 2.00      # of one conversation, over all its prompts
    day_usd: 20.00         # of a day (UTC), all sessions and experiments together

Both may be left out. An episode has the limits of its scaffold and its ruler in place of `session_usd`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geode.config.plain_yaml import parse_plain_yaml
from geode.config.settings import BadSettings

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BudgetFile(BaseModel):
    """What the file says; without one nothing is capped."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_: Literal["geode.budget/1"] = Field(alias="schema")
    session_usd: Usd | None = None
    day_usd: Usd | None = None


def read_budget(path: Path) -> BudgetFile:
    """Read the caps.

    Raises:
        BadSettings: if the file cannot be used; it names the line. Spending on under a cap that nobody understood
            would be the worst reading of it.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return BudgetFile(schema="geode.budget/1")
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be read ({error.strerror}); repair it, or remove it to lift its caps"
        ) from error
    try:
        return BudgetFile.model_validate(parse_plain_yaml(content))
    except ValidationError as error:
        raise BadSettings(f"{path}{_explained(error, content.decode())}") from error
    except ValueError as error:
        raise BadSettings(f"{path}: {error}") from error


def _explained(error: ValidationError, text: str) -> str:
    detail = error.errors()[0]
    keys = "its keys are schema: geode.budget/1, session_usd and day_usd"
    if not detail["loc"]:
        return f", line 1: it is no mapping; {keys}"
    key = str(detail["loc"][0])
    line = next((at for at, row in enumerate(text.splitlines(), start=1) if row.lstrip("{ '\"").startswith(key)), 1)
    match detail["type"]:
        case "extra_forbidden":
            why = f"there is no key {key!r}; {keys}"
        case "missing":
            why = f"the key {key!r} is missing; write schema: geode.budget/1"
        case _:
            why = f"{key}: {detail['input']!r} is refused: {detail['msg'][0].lower()}{detail['msg'][1:]}"
    return f", line {line}: {why}"
