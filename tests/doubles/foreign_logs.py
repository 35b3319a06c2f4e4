"""Foreign logs whose values stand in plain sight: folders of MCPMark's shape, and what readers make of a log."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from analysis.foreign import AttemptFacts, ForeignRun, Unit

START = datetime(2030, 1, 1, 10)  # noqa: DTZ001  (MCPMark writes no zone)


def write_mcpmark(
    folder: Path, letters: str, *, runs: int = 1, timeout: int = 600, skip: str = "", categories: int = 1
) -> Path:
    """Write a result directory: one letter a task, P pass, F fail, I ended by infrastructure; tasks in `skip` lack.

    Attempts begin a minute after each other. Task n is of category n modulo `categories`.
    """
    for run in range(1, runs + 1):
        for number, letter in enumerate(letters):
            if str(number) in skip:
                continue
            place = folder / "acme-1__files" / f"run-{run}" / f"attic{number % categories or ''}__task_{number}"
            place.mkdir(parents=True)
            at = START + timedelta(minutes=run * len(letters) + number)
            _write_attempt(place, letter, timeout, at)
    return folder


def _write_attempt(place: Path, letter: str, timeout: int, at: datetime) -> None:
    ended = letter == "I"
    usage = {"model": "acme-1", "input_tokens": 900, "output_tokens": 100, "cache_read_tokens": 0, "cost_usd": 0.25}
    meta = {
        "task_name": place.name,
        "model_name": "acme-1",
        "litellm_run_model_name": "acme/acme-1",
        "reasoning_effort": "high",
        "mcp": "files",
        "timeout": timeout,
        "time": {"start": at.isoformat(), "end": at.isoformat()},
        "agent_execution_time": 40.0,
        "task_execution_time": 50.0,
        "execution_result": {
            "success": letter == "P",
            "error_message": "no network" if ended else None,
            "verification_error": "the file is missing" if letter == "F" else None,
            "verification_output": "checked",
        },
        "token_usage": {} if ended else usage,
        "turn_count": None if ended else 3,
    }
    (place / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    (place / "messages.json").write_text(json.dumps([] if ended else f"I am done, says {letter}."), encoding="utf-8")
    if not ended:
        results = [("list", "a.txt\nb.txt", False), ("read", "Error: no such file", True)]
        calls = [
            {
                "tool": tool,
                "input": {"path": "/attic"},
                "result": {"result": json.dumps({"content": [{"type": "text", "text": text}], "isError": failed})},
                "tool_use_id": tool,
            }
            for tool, text, failed in results
        ]
        (place / "execution.log").write_text(json.dumps(calls), encoding="utf-8")


def make_log(
    name: str,
    scores: Mapping[str, Mapping[str, Sequence[float | None]]],
    *,
    passes: bool = False,
    families: Mapping[str, str] | None = None,
    ruler: Mapping[str, str] | None = None,
    start: datetime | None = START,
    minutes: float = 1.0,
) -> ForeignRun:
    """Make a log: score -> task -> one value an attempt. Attempts at all tasks take turns, `minutes` apart."""
    first = next(iter(scores.values()))
    repeats = max(len(values) for values in first.values())
    places = {
        Unit(task, f"epoch {place + 1}"): place
        for place in range(repeats)
        for task, values in first.items()
        if place < len(values)
    }
    return ForeignRun(
        name=name,
        harness="inspect",
        subject=f"acme/{name}",
        ruler=ruler or {"judge": "acme/arbiter"},
        attempts={
            unit: AttemptFacts(
                identity=f"{name}/{unit.task}/{place}",
                shown_as=f"{name}.eval#{unit.task}/{place + 1}",
                started_at=None if start is None else start + timedelta(minutes=minutes * number),
            )
            for number, (unit, place) in enumerate(places.items())
        },
        values={
            score: {unit: values[unit.task][place] for unit, place in places.items()}
            for score, values in scores.items()
        },
        passes_and_failures=passes,
        families=families or {},
    )
