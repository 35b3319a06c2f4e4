"""Where the model of a session comes from: whoever asks nobody, whoever was given, or a provider."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from geode.llm.admission import check_launchable
from geode.llm.binding import ModelOptions
from geode.llm.messages import DeltaObserver, LLMAdapter
from geode.llm.opening import open_adapter, room_of
from geode.llm.outline import Outline
from geode.llm.routes import SIMULATED
from geode.llm.simulated import Apprentice
from geode.llm.spending import Purse
from geode.redaction import Redactor
from geode.scaffold import LoopLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """All that an adapter is made of besides the model's name and options. `given` is used in place of what they name.

    The environment holds keys, and is never shown.
    """

    environment: Mapping[str, str]
    redactor: Redactor
    outline: Outline | None = None
    given: LLMAdapter | None = None
    purse: Purse | None = None
    on_delta: DeltaObserver | None = None

    def __repr__(self) -> str:
        return f"ModelSource(given={self.given!r})"

    def of_child(self) -> Self:
        """Return where the model of a sub-agent comes from: the outline is not its own, and nobody watches it write."""
        return replace(self, outline=None, on_delta=None)

    def adapter(self, model: str, simulation_key: str, options: ModelOptions) -> LLMAdapter:
        """Return who answers as `model`.

        Raises:
            ConfigurationError: if it cannot be launched, asked so, or reached.
        """
        if self.given is not None:
            return self.given
        if str(check_launchable(model)) in SIMULATED:
            return Apprentice(outline=self.outline, key=simulation_key)
        return open_adapter(
            model,
            self.environment,
            options=options,
            purse=self.purse,
            on_delta=self.on_delta,
            redactor=self.redactor,
        )


def within_window(limits: LoopLimits, model: str, options: ModelOptions) -> LoopLimits:
    """Return `limits` with a context that leaves room for a reply in the window of `model`."""
    room = room_of(model, options)
    if room.context_tokens is None or room.context_tokens >= limits.context_tokens:
        return limits
    return limits.model_copy(update={"context_tokens": room.context_tokens})
