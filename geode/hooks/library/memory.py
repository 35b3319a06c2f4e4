"""What a hook keeps between two events: one small typed record, which goes through the checkpoint as JSON."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue


class Memory(BaseModel):
    """What one hook remembers. It is saved with every round, so every list in it has a bound."""

    model_config = ConfigDict(extra="forbid")


MemoryT = TypeVar("MemoryT", bound=Memory)


class Remembering(Generic[MemoryT]):
    """The half of a `DecisionHook` that carries its memory.

    A memory of another shape is refused by `restore`: the hook is then broken, and does not start over as if it had
    seen nothing.
    """

    def __init__(self, memory: MemoryT) -> None:
        self.memory = memory

    def snapshot(self) -> JsonValue:
        """See `DecisionHook`."""
        return self.memory.model_dump(mode="json")

    def restore(self, memory: JsonValue) -> None:
        """See `DecisionHook`."""
        self.memory = type(self.memory).model_validate(memory)


def keep_last(known: list[str], item: str, limit: int) -> None:
    """Put `item` at the end of `known`, where it stands once, and drop the oldest past `limit`."""
    if item in known:
        known.remove(item)
    known.append(item)
    del known[:-limit]
