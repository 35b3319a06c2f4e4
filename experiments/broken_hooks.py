"""Hooks that failed instead of deciding: what is measured of a variant with one is not what its author meant."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.sinks import Cell
from geode.events import HookDecided
from geode.records.timeline import read_timeline


def broken_hooks(folder: Path) -> dict[str, str]:
    """Return the broken hooks of the session in `folder` and its sub-agents, each with what went wrong first."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("timeline.jsonl")):
        if HookDecided.kind.encode() not in path.read_bytes():  # nearly always, and much cheaper than to parse it
            continue
        for event in read_timeline(path):
            if event["kind"] == HookDecided.kind and event["broken"]:
                found.setdefault(str(event["hook"]), f"at {event['point']} {event['reason']}")
    return found


def broken_hooks_warnings(cells: Sequence[Cell]) -> Iterator[str]:
    """Say of each variant which of its hooks were broken, in how many episodes, and why."""
    for cell in cells:
        problems: dict[str, str] = {}
        episodes: Counter[str] = Counter()
        for stored in cell.episodes:
            for hook, problem in stored.record.broken_hooks.items():
                problems.setdefault(hook, problem)
                episodes[hook] += 1
        for hook, problem in problems.items():
            where = f"in {episodes[hook]} of {len(cell.episodes)} episodes of {cell.variant.name}"
            yield f"the hook {hook!r} is broken {where}, which counts as its strictest answer: {problem}"
