"""What a person at a terminal sees of a turn."""

from dataclasses import asdict

from pydantic import JsonValue

from geode.loop.turn import TurnResult


def result_to_json(result: TurnResult) -> dict[str, JsonValue]:
    """Return a turn's result as JSON values."""
    return {**asdict(result), "stop": result.stop.value}
