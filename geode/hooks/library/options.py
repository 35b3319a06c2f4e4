"""What the options of hooks share: frozen, with no unknown key, and patterns that compile."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

TIME_LIMIT_S = 5.0
"""None of these hooks waits for anything; one that takes so long is broken."""


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression ({error})") from error
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]
"""A regular expression as text."""


class HookOptions(BaseModel):
    """The options of a hook, as the scaffold holds them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
