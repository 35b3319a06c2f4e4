"""The catalogue as the operator asks of it: what there is, by which routes, and which of these have a key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from geode.llm.admission import check_launchable
from geode.llm.catalog import Entry, catalog, is_moving
from geode.llm.credentials import ACCESS, has_key
from geode.llm.errors import ConfigurationError
from geode.llm.routes import ModelName, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """One model, and which of its routes have a key here."""

    entry: Entry
    keys: frozenset[Route]

    @property
    def name(self) -> ModelName:
        """The model by its maker's own route."""
        return self.entry.names[0]

    def to_json(self, today: date) -> dict[str, JsonValue]:
        """Return the model as JSON values."""
        prices, ends = self.entry.prices, self.entry.ends
        return {
            "id": self.name.model_id,
            "names": [str(name) for name in self.entry.names],
            "routes": [
                {"route": name.route.value, "key": ACCESS[name.route].variable, "key_set": name.route in self.keys}
                for name in self.entry.names
            ],
            "tier": self.entry.tier.value if self.entry.tier else None,
            "context_tokens": self.entry.context_tokens,
            "output_tokens_max": self.entry.output_tokens_max,
            "efforts": [effort.value for effort in self.entry.efforts],
            "sampling": self.entry.sampling.value,
            "prices": prices.model_dump(mode="json") if prices else None,
            "no_prices": self.entry.no_prices,
            "ends": ends.isoformat() if ends else None,
            "ended": ends is not None and today > ends,
            "decision_only": self.entry.decision_only,
            "moving": is_moving(self.name),
        }


def listed(environment: Mapping[str, str], route: Route | None = None) -> Iterator[ListedModel]:
    """Yield the models of the catalogue, those of one route alone if it is named."""
    for entry in catalog().entries:
        if route is None or route in entry.routes:
            yield _with_keys(entry, environment)


def look_up(text: str, environment: Mapping[str, str]) -> ListedModel:
    """Return the model that `text` names, as `route/id` or by its id alone.

    Raises:
        ConfigurationError: if there is none, with the nearest one.
    """
    for entry in catalog().entries:
        if text in [*map(str, entry.names), *(model_id for model_id in entry.routes.values() if "/" not in model_id)]:
            return _with_keys(entry, environment)
    found = catalog().find(check_launchable(text)) if "/" in text else None
    if found is None:
        raise ConfigurationError(f"{text!r} is not in the catalogue; geode models ls names all")
    return _with_keys(found, environment)


def _with_keys(entry: Entry, environment: Mapping[str, str]) -> ListedModel:
    return ListedModel(entry=entry, keys=frozenset(route for route in entry.routes if has_key(route, environment)))
