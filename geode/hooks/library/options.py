"""What the options of hooks share: frozen, with no unknown key, patterns that compile, and how a test is told."""

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


TEST_COMMANDS = r"(?i)(\b|_)(py)?(test|check|verify|validate)s?(_|\b)"
"""Searched in a shell command to tell whether it runs a test or a check."""


class HookOptions(BaseModel):
    """The options of a hook, as the scaffold holds them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
