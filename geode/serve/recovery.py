"""What a dead process left: commands that run on, and open effects, settled by looking or by the operator."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from geode.clock import Clock
from geode.events import EffectSettled, Event, Notice
from geode.records.database import RecordError
from geode.records.folder import SessionFolder
from geode.records.receipts import EffectReceipt, EffectReceiptStore, ReceiptState
from geode.records.timeline import SessionTimeline
from geode.tools.orphans import kill_orphans
from geode.tools.plan import BoundToolPlan
from geode.tools.spec import ToolFailed


def clear_up(workspace: Path, plan: BoundToolPlan, receipts: EffectReceiptStore) -> Iterator[Event]:
    """End what commands of a dead process still run in the workspace, then settle what can be; yield what was done."""
    # First: what runs on could change what the probes look at, and what the model is told to look at.
    if ended := kill_orphans(workspace):
        text = f"{ended} processes were ended that commands of a killed session had left in the workspace"
        yield Notice(about="recovery", text=text)
    yield from settle_by_probe(plan, receipts)


def settle_by_probe(plan: BoundToolPlan, receipts: EffectReceiptStore) -> tuple[EffectSettled, ...]:
    """Ask the tool of each uncertain effect whether it happened, and settle those that it can tell.

    Nothing is run again. A receipt whose arguments were too long to keep whole stays uncertain: it is the operator's.
    """
    settled = []
    for receipt in receipts.all(ReceiptState.UNCERTAIN):
        spec = plan.get(receipt.tool)
        if spec is None or spec.settled_by_probe is None or not receipt.intent:
            continue
        try:
            happened = spec.settled_by_probe(json.loads(receipt.arguments), receipt.intent)
        except (ValueError, ToolFailed, OSError):
            continue
        if happened is not None:
            end = ReceiptState.SUCCEEDED if happened else ReceiptState.FAILED
            note = "the workspace holds what it was to write" if happened else "the workspace is as it was before"
            settled.append(_settle(receipts, receipt, end, by="probe", note=note))
    return tuple(settled)


def read_effects(folder: SessionFolder, clock: Clock) -> Sequence[EffectReceipt]:
    """Return all receipts of a session that no process has open. What a dead one left open gets its honest end.

    Raises:
        RecordError: if they are gone, damaged, or in use.
    """
    with _receipts(folder, clock) as store:
        return store.all()


def find_effect(receipts: Sequence[EffectReceipt], name: str) -> EffectReceipt:
    """Return the receipt that is called `name`, or the only one whose call id that is.

    Raises:
        RecordError: with the names that there are.
    """
    found = [r for r in receipts if str(r.key) == name] or [r for r in receipts if r.key.call_id == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(str(receipt.key) for receipt in found or receipts) or "none"
    what = f"{len(found)} effects have the call id {name!r}; name one of" if found else f"no effect {name!r}; there are"
    raise RecordError(f"{what} {names}")


def settle_by_operator(folder: SessionFolder, name: str, end: ReceiptState, note: str, clock: Clock) -> EffectReceipt:
    """Settle one uncertain effect by the operator's word, which the receipt and the timeline keep.

    Raises:
        RecordError: if there is no such effect, it is not uncertain, or the session is in use.
    """
    with _receipts(folder, clock) as store:
        receipt = find_effect(store.all(), name)
        if receipt.state is not ReceiptState.UNCERTAIN:
            by = f", as settled by {receipt.settled_by}" if receipt.settled_by else ""
            raise RecordError(f"effect {receipt.key} is {receipt.state}{by}; only an uncertain one can be settled")
        event = _settle(store, receipt, end, by="operator", note=note)
        # The receipt is the record; the timeline tells it to whoever reads what happened.
        timeline = SessionTimeline(folder.timeline, folder.path.name, clock)
        try:
            timeline(event)
        finally:
            timeline.close()
        return find_effect(store.all(), str(receipt.key))


def _settle(
    store: EffectReceiptStore, receipt: EffectReceipt, end: ReceiptState, *, by: str, note: str
) -> EffectSettled:
    store.settle(receipt.key, end, by=by, note=note)
    return EffectSettled(effect=str(receipt.key), tool=receipt.tool, end=end.value, by=by, note=note)


@contextmanager
def _receipts(folder: SessionFolder, clock: Clock) -> Iterator[EffectReceiptStore]:
    if not folder.receipts.is_file():
        raise RecordError(f"{folder.receipts} is gone, so nobody knows what this session did; restore it from a copy")
    store = EffectReceiptStore.open(folder.receipts, clock)
    try:
        yield store
    finally:
        store.close()
