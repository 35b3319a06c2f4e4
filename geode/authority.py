"""The scales of authority: what a call can do to the world, and how personal the data is that it touches."""

from collections.abc import Mapping
from enum import IntEnum

from pydantic import JsonValue

Arguments = Mapping[str, JsonValue]
"""The arguments of a call, as JSON."""


class SafetyLevel(IntEnum):
    """What a call can do to the world, in rising order. A rewrite may raise it, never lower it."""

    READ = 0
    WRITE = 1
    EXECUTE = 2
    EXTERNAL = 3
    ADMIN = 4


class DataClass(IntEnum):
    """The most personal data that a call can touch, in rising order."""

    NONE = 0
    PERSONAL = 1
    SECRET = 2
