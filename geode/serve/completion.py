"""The judge of a session's completion check, opened by whoever lies above the runtime and can: it is found by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Final, Protocol

from geode.clock import Clock
from geode.llm.errors import ConfigurationError
from geode.llm.spending import Purse
from geode.loop.verify import CompletionJudge
from geode.redaction import Redactor
from geode.scaffold import CompletionCheck

COMPLETION_GROUP: Final = "geode.completion"
_NAME: Final = "judges"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionParts:
    """What the judge of a session is made of. `target` is `route/id` of whom it judges, `purse` pays for the judge.

    `environment` is that of the settings: keys and addresses of models come from it.
    """

    target: str
    environment: Mapping[str, str] = field(repr=False)
    purse: Purse
    clock: Clock
    redactor: Redactor


class CompletionOffer(Protocol):
    """What `judges` in the entry-point group `geode.completion` names. Neither method asks anybody anything.

    Both raise `ValueError` or `ConfigurationError` for what cannot be used, with a text for the user.
    """

    def check(self, wanted: str) -> CompletionCheck:
        """Return the check that a user names: a model as `route/id`, or an engine by its name.

        It holds all that is needed to open its judge, so that a session that keeps it can be opened again.
        """
        ...

    def open(self, check: CompletionCheck, parts: CompletionParts) -> CompletionJudge:
        """Return the judge of a check."""
        ...


def completion_offer() -> CompletionOffer:
    """Return the installed offer.

    Raises:
        ConfigurationError: if there is none.
    """
    for point in entry_points(group=COMPLETION_GROUP, name=_NAME):
        offer: CompletionOffer = point.load()
        return offer
    raise ConfigurationError(
        f"nothing installed offers {_NAME!r} in the group {COMPLETION_GROUP}, so no judge can be bound; install"
        " geode-agent again, or leave the judge out"
    )
