"""Things to judge: a small root that was swept, and audits whose target was asked."""

from collections.abc import Sequence
from pathlib import Path

from geode.config.paths import StateRoot
from tests.done.command import geode
from tests.doubles.evals import Body

SWEEP = ("run", "name=quick", "suite.tasks=[config_port,csv_totals]", "repeats=2", "tracking=none")


def swept_root(home: Path) -> StateRoot:
    """Run four episodes of two tasks on the simulator, as an experiment named `quick`."""
    ended = geode(home, *SWEEP, "--root", str(home / "root"))
    assert ended.code == 0, ended.err
    return StateRoot(home / "root")


def audited(body: Body, asked: Sequence[Body], answer: str) -> None:
    """Let the target of a sample have been asked `asked`, as Inspect writes it: messages once, calls by range."""
    events, data = body.setdefault("events", []), body.setdefault("events_data", {"messages": [], "calls": []})
    assert isinstance(events, list)
    assert isinstance(data, dict)
    pool = data["messages"]
    assert isinstance(pool, list)
    begin = len(pool)
    pool += asked
    message: Body = {"role": "assistant", "content": answer}
    events.append(
        {
            "event": "model",
            "role": "target",
            "input": [],
            "input_refs": [[begin, len(pool)]],
            "output": {"choices": [{"message": message, "stop_reason": "stop"}]},
        }
    )
