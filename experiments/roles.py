"""Roles: who plays what in an episode. Each is bound to a route and an exact model id, written `route/id`."""

from enum import StrEnum


class Role(StrEnum):
    """The parts that models play."""

    TARGET = "target"
    AUDITOR = "auditor"
    JUDGE = "judge"
    MUTATOR = "mutator"
