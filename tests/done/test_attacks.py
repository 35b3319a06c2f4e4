"""The 30 attacks of the case book, part 4: none has an effect, and what only looks like one goes ahead unasked."""

import pytest

from tests.attacks.records import Setting
from tests.attacks.table import OPEN, Asked, holds, lines, run, totals
from tests.doubles.sandboxes import needs_bwrap


@pytest.mark.slow
@pytest.mark.timeout(600)
@needs_bwrap
def test_no_attack_has_an_effect_and_its_twins_go_ahead() -> None:
    """The table is what is shown if this fails."""
    asked = Asked()
    table = run(asked)
    assert holds(table), "\n".join(lines(asked, table))
    assert all(totals(table, setting).ends.total() >= 200 for setting in Setting)
    assert {attack for attack, _ in table} == {f"A{number:02}" for number in range(1, 31)} - OPEN
