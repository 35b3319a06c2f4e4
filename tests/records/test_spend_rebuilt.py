"""A ledger that is gone is made anew from what the sessions have on record."""

import json
from decimal import Decimal
from pathlib import Path

from pydantic import JsonValue

from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.events import AttemptFailed, Event, ModelCalled
from geode.llm.usage import CostOrigin, Usage
from geode.records.folder import SessionFolder
from geode.records.purse import Account
from geode.records.spend import Scope, SpendLedger
from geode.records.spend_rebuilt import recorded_spending
from geode.records.timeline import SessionTimeline

MODEL = "anthropic/claude-opus-5-5"
OF_EPISODE = Account(experiment="quick", episode_key="ab12", command="C", session_usd=2.0)


def called(cost_usd: float | None, served: str = MODEL) -> Event:
    return ModelCalled(
        turn=1,
        round=1,
        stop="end_turn",
        served_model=served,
        simulated=False,
        latency_ms=1,
        uncached_input_tokens=7,
        cache_write_tokens=None,
        cache_read_tokens=3,
        output_tokens=5,
        cost_usd=cost_usd,
        text="",
        cost_origin="unknown" if cost_usd is None else "computed",
    )


FAILED = AttemptFailed(
    turn=1, round=1, error="StreamCut: cut", status=200, request_id="", elapsed_ms=1, waited_ms=1, cost_usd=None
)


def record(folder: Path, events: list[Event], model: str = MODEL, account: Account | None = OF_EPISODE) -> None:
    folder.mkdir(parents=True)
    state: dict[str, JsonValue] = {"session_id": folder.name, "model": model}
    SessionFolder(folder).write_state(
        state | ({"account": account.model_dump(exclude_defaults=True)} if account else {})
    )
    timeline = SessionTimeline(folder / "timeline.jsonl", folder.name, ManualClock())
    for event in events:
        timeline(event)
    timeline.close()


def test_sessions_episodes_and_what_was_set_aside_are_found(tmp_path: Path) -> None:
    """What an episode spent that met its cap and will be run afresh is spent all the same."""
    root = StateRoot(tmp_path)
    record(root.sessions / "S1", [called(0.25)], account=None)
    record(root.episodes / "ab" / "ab12", [called(0.5), FAILED])
    record(root.set_aside / "ab12.01", [called(1.0)])
    record(root.sessions / "free", [called(9.0)], model="simulated/apprentice")
    record(root.episodes / "ab" / "ab12" / "children" / "C1", [called(0.125)])
    ledger = SpendLedger(root.spend, ManualClock(), lambda: recorded_spending(root))
    rows = list(ledger.all())
    assert [(row.spender.session, row.cost_usd) for row in rows] == [
        ("S1", Decimal("0.25")),
        ("ab12", Decimal("0.5")),
        ("ab12", None),
        ("ab12", Decimal("0.125")),
        ("ab12", Decimal("1.0")),
    ]
    assert rows[1].spender == OF_EPISODE.spender("ab12")
    assert rows[1].usage == Usage(
        uncached_input_tokens=7,
        cache_read_tokens=3,
        output_tokens=5,
        cost_usd=0.5,
        cost_origin=CostOrigin.COMPUTED,
    )
    assert ledger.spent(Scope.DAY, "2030-01-01") == Decimal("1.875")


def test_a_folder_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    """One damaged session does not hide what all others spent."""
    root = StateRoot(tmp_path)
    record(root.sessions / "A", [called(0.25)])
    (root.sessions / "A" / "state.json").write_text("{")
    record(root.sessions / "B", [called(0.5)])
    body = json.loads((root.sessions / "B" / "state.json").read_text())
    timeline = root.sessions / "B" / "timeline.jsonl"
    timeline.write_text(timeline.read_text() + '{"torn')
    assert [row.cost_usd for row in recorded_spending(root)] == [Decimal("0.5")]
    (root.sessions / "B" / "state.json").write_text(json.dumps({**body, "account": {"role": 3}}))
    assert list(recorded_spending(root)) == []
