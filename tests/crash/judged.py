"""What must always be true of a session's records, held against what happened outside of them."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from geode.clock import SystemClock
from geode.llm.messages import encode_message
from geode.records.checkpoint import SessionCheckpoint, StoredSession
from geode.records.folder import SessionFolder
from geode.records.receipts import EffectReceipt, EffectReceiptStore, ReceiptState
from geode.records.timeline import read_timeline
from tests.crash import server
from tests.crash.lived import ACKNOWLEDGED, Home
from tests.crash.script import EFFECTS, SERVED_TOOL, instructions
from tests.doubles.wire import problems

REPAIRS_ALLOWED = 2


def stored_state(home: Home) -> object:
    """Return what going on once more must not change."""
    stored, receipts = _read(home)
    return stored.messages, stored.guards, stored.cognitive, [(r.key, r.state, r.note) for r in receipts]


def _read(home: Home) -> tuple[StoredSession, Sequence[EffectReceipt]]:
    folder = SessionFolder(home.session)
    session_id = folder.read_state()["session_id"]
    checkpoint = SessionCheckpoint.open(folder.checkpoint, str(session_id))
    try:
        stored = checkpoint.load()
    finally:
        checkpoint.close()
    store = EffectReceiptStore.open(folder.receipts, SystemClock())
    try:
        return stored, store.all()
    finally:
        store.close()


def judge(home: Home) -> tuple[list[str], int, int]:
    """Return what is broken, and how many effects there were and are listed as uncertain."""
    found: list[str] = []
    stored, receipts = _read(home)
    messages = stored.messages
    bodies = [encode_message(message) for message in messages]
    acknowledged = [json.loads(line) for line in _lines(home.path / ACKNOWLEDGED)]
    for body in acknowledged:
        if bodies.count(body) != acknowledged.count(body):
            found.append(f"1: acknowledged {acknowledged.count(body)} times, stored {bodies.count(body)}: {body[:80]}")
            break
    effects = _effects(home)
    twice = [effect for effect, times in effects.items() if times > 1]
    if twice:
        found.append(f"2: executed twice: {', '.join(twice)}")
    by_effect = {name: receipt for receipt in receipts if (name := _effect_of(receipt))}
    known = {ReceiptState.SUCCEEDED, ReceiptState.UNCERTAIN}
    for effect in effects:
        receipt = by_effect.get(effect)
        if receipt is None or receipt.state not in known:
            found.append(f"3: {effect} happened, and its receipt says {receipt.state if receipt else 'nothing'}")
    for effect, receipt in by_effect.items():
        if receipt.state is ReceiptState.SUCCEEDED and effect not in effects:
            found.append(f"3: the receipt of {effect} says succeeded, and it did not happen")
        if receipt.state in (ReceiptState.ADMITTED, ReceiptState.STARTED):
            found.append(f"3: the receipt of {effect} is left {receipt.state}")
    found += [f"4: the stored history: {problem}" for problem in problems(messages, is_request=False)]
    lines = list(read_timeline(SessionFolder(home.session).timeline))
    numbers = [line["seq"] for line in lines if line["seq"] is not None]
    if numbers != list(range(1, len(numbers) + 1)) or len(lines) - len(numbers) > 1:
        found.append(f"5: the timeline's numbers are {numbers[:3]}...{numbers[-3:]}, {len(lines) - len(numbers)} torn")
    if instructions(messages) > REPAIRS_ALLOWED:
        found.append(f"6: {instructions(messages)} repairs of {REPAIRS_ALLOWED}")
    if (home.path / "second_owner").exists():
        found.append("7: " + (home.path / "second_owner").read_text())
    return found, len(effects), sum(receipt.state is ReceiptState.UNCERTAIN for receipt in receipts)


def _effects(home: Home) -> Counter[str]:
    """Return what really happened, by looking at the workspace and at the server's own log alone."""
    seen = Counter(_lines(home.workspace / EFFECTS))
    seen.update(_lines(home.path / server.LOG))
    seen.update(path.read_text() for path in (home.workspace / "made").glob("*.txt"))
    notes = (home.workspace / "notes.txt").read_text()
    seen.update(line.split(" done]")[0].strip("[") for line in notes.splitlines() if line.endswith(" done]"))
    return seen


def _effect_of(receipt: EffectReceipt) -> str:
    arguments = json.loads(receipt.arguments)
    match receipt.tool:
        case "shell":
            return str(arguments["command"]).split(" ")[1]
        case "write_file":
            return str(arguments["content"])
        case "edit_file":
            return str(arguments["old"]).strip("[]")
        case name if name == SERVED_TOOL:
            return str(arguments["mark"])
    return ""


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
