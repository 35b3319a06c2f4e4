"""A call that does not go ahead, and copies of arguments that nobody else holds in their hand."""

import json

from pydantic import JsonValue

from geode.authority import Arguments
from geode.canonical import canonical_json


class Refused(Exception):  # noqa: N818  (a call's fate, not a program's error)
    """The call ends here: at `stage`, for `reason`, by `rule` if a rule said so."""

    def __init__(self, stage: str, reason: str, rule: str = "") -> None:
        super().__init__(reason)
        self.stage, self.reason, self.rule = stage, reason, rule

    @property
    def told(self) -> str:
        """What the model reads."""
        where = "by hook" if self.stage == "hook" else f"at {self.stage}"
        return f"refused {where}: {self.reason}" + (f" [{self.rule}]" if self.rule else "")


def as_json(made: object) -> dict[str, JsonValue]:
    """Return the JSON object that `made` is.

    Raises:
        TypeError: if it is none.
        ValueError: if JSON does not have one of its values.
    """
    arguments = json.loads(canonical_json(made))
    if not isinstance(arguments, dict):
        raise TypeError(f"arguments became {type(made).__name__}")
    return arguments


def own_copy(arguments: Arguments) -> dict[str, JsonValue]:
    """Return a copy that its receiver may change without changing what was judged."""
    return {key: _copied(value) for key, value in arguments.items()}


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return own_copy(value)
    return [_copied(item) for item in value] if isinstance(value, list) else value
