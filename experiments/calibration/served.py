"""Production sessions whose model is exchanged under them, as the weather has it."""

from collections.abc import Iterator
from functools import cache
from typing import Any, assert_never

from experiments.calibration.weather import Sky
from experiments.run_episode import EpisodeSession
from geode.llm.apprentice.faults import FaultTable, StepRates, shipped_table
from geode.llm.errors import Facts, ResponseInvalid
from geode.llm.messages import LLMAdapter, ModelResponse, StepSnapshot
from geode.llm.outline import Outline
from geode.llm.simulated import MODEL, Apprentice
from geode.serve.services import SharedServices


class ServedByWeather:
    """Implements `SessionOpener`: the sessions are the product's own, the next sky says which model serves each."""

    def __init__(self, services: SharedServices, skies: Iterator[Sky]) -> None:
        self._services, self._skies = services, skies

    def create_session(
        self, *, outline: Outline | None = None, simulation_key: str = "", **asked: Any
    ) -> EpisodeSession:
        """See `SessionOpener.create_session`. What else is asked of a session is the product's affair."""
        adapter = _adapter(next(self._skies), outline, simulation_key)
        return self._services.create_session(outline=outline, simulation_key=simulation_key, adapter=adapter, **asked)


def _adapter(sky: Sky, outline: Outline | None, key: str) -> LLMAdapter | None:
    match sky:
        case Sky.CLEAR:
            return None
        case Sky.STRONG:
            return Apprentice(outline=outline, key=key, table=_faultless())
        case Sky.WEAK:
            return Apprentice(outline=None, key=key)  # it looks around, changes nothing and says so
        case Sky.BROKEN:
            return _Broken()
        case _:
            assert_never(sky)


class _Broken:
    """Implements `LLMAdapter`: a provider that answers nonsense."""

    model = MODEL

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        nonsense = f"round {snapshot.round} was answered with nonsense, as the weather has it"
        raise ResponseInvalid(nonsense, Facts(provider="simulated"))


@cache
def _faultless() -> FaultTable:
    table = shipped_table()
    faults = {name: fault.model_copy(update={"rate": StepRates()}) for name, fault in table.faults.items()}
    return FaultTable.model_validate(table.model_dump(by_alias=True) | {"faults": faults})
