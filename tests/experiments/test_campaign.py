"""Campaigns promote by their arm, and only on evidence of their own epoch."""

import pytest

from experiments.campaign import Arm, Campaign, Epoch, EpochMismatch
from experiments.gate import VerdictKind
from experiments.records import Caps, Ruler, TaskRef

RULER = Ruler(suite="s", tasks=(TaskRef(task_id="t", family="f", task_hash="0" * 64),), seeds=(0,), caps=Caps())
EPOCH = Epoch(ruler=RULER)


def campaign(arm: Arm) -> Campaign:
    return Campaign(name="c", arm=arm, epoch=EPOCH, reset="start")


def test_the_gate_arm_promotes_what_the_verdict_keeps_and_compares_the_next_with_it() -> None:
    """A campaign is a chain: the incumbent is the last one promoted."""
    after = campaign(Arm.GATE).decided("a", VerdictKind.KEEP, EPOCH.epoch_id)
    after = after.decided("b", VerdictKind.UNDECIDED, EPOCH.epoch_id)
    assert after.incumbent == "a"
    assert [decision.incumbent for decision in after.decisions] == ["start", "a"]


def test_the_never_arm_promotes_nothing_whatever_is_shown_to_it() -> None:
    """It is the control for drift."""
    assert campaign(Arm.NEVER).decided("a", VerdictKind.KEEP, EPOCH.epoch_id).incumbent == "start"


def test_the_random_arm_promotes_its_share_and_does_not_look_at_verdicts() -> None:
    """It is the control for luck: the same draws whatever was measured."""
    kept, rejected = campaign(Arm.RANDOM), campaign(Arm.RANDOM)
    for n in range(400):
        kept = kept.decided(f"c{n}", VerdictKind.KEEP, EPOCH.epoch_id)
        rejected = rejected.decided(f"c{n}", VerdictKind.REJECT, EPOCH.epoch_id)
    promoted = [d.promoted for d in kept.decisions]
    assert promoted == [d.promoted for d in rejected.decisions]
    assert 160 < sum(promoted) < 240


def test_evidence_of_another_epoch_decides_nothing() -> None:
    """Figures of two rulers are on two scales."""
    other = Epoch(ruler=RULER.model_copy(update={"seeds": (1,)}))
    with pytest.raises(EpochMismatch, match=other.epoch_id):
        campaign(Arm.GATE).decided("a", VerdictKind.KEEP, other.epoch_id)
