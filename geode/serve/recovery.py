"""What is found out about effects that a dead process left open, before its session goes on."""

import json

from geode.records.receipts import EffectReceiptStore, ReceiptState
from geode.tools.plan import BoundToolPlan
from geode.tools.spec import ToolFailed


def settle_by_probe(plan: BoundToolPlan, receipts: EffectReceiptStore) -> int:
    """Ask the tool of each uncertain effect whether it happened, and settle those that it can tell. Return how many.

    Nothing is run again. A receipt whose arguments were too long to keep whole stays uncertain: it is the operator's.
    """
    settled = 0
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
            receipts.settle(receipt.key, end, by="probe", note=note)
            settled += 1
    return settled
