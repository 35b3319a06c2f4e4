"""Done line 5, at a tenth of its size: workers are killed again and again, and nobody can tell from the results."""

from pathlib import Path

import pytest

from tests.done.killed_workers import Case, faults, set_aside, sweep
from tests.doubles.hook_package import install_hooks

CASE = Case(
    hooks=("[slow]", "[slow,stop_repeats]"),
    tasks=("config_port", "csv_totals", "fix_slug", "logs_outage"),
    repeats=8,
    wait_s=0.05,
    kill_every_s=1.5,
)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="it finds the workers in /proc")
def test_killed_workers_change_no_result_and_repeat_no_effect(tmp_path: Path) -> None:
    """Same outcomes as undisturbed, no episode twice, and of each finished episode no effect twice and none open."""
    install_hooks(tmp_path / "site")
    undisturbed = sweep(tmp_path, CASE, disturbed=False)
    disturbed = sweep(tmp_path, CASE, disturbed=True)
    assert list(faults(disturbed, undisturbed, CASE)) == []
    assert disturbed.kills >= 5
    assert set_aside(disturbed.root) >= 3, "most kills fall into an episode"
