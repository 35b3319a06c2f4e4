"""The report says what the figures show, no more, and the exit code tells it to a program."""

import json
from dataclasses import replace

import pytest

from experiments.calibration.calibrate import Calibration, Measured
from experiments.calibration.report import as_json, as_text, exit_code
from experiments.calibration.study import CalibrationSpec, Study
from experiments.calibration.tally import Count, Tally
from experiments.report import ExitCode

NONE = Count(count=0, of=0)


def measured(study: Study, kept: int, of: int) -> Measured:
    count = Count(count=kept, of=of)
    seen = Tally(
        some_keep=count,
        some_reject=count,
        decided=count,
        some_invalid=count,
        naive=count,
        large_gain=count,
        drift=NONE,
        improvements=dict.fromkeys(study.improvements, count),
    )
    return Measured(study=study, tally=seen, sweeps=of)


@pytest.mark.parametrize(
    ("kept", "code", "told"),
    [
        (2, ExitCode.DONE, "in at most 5% of such sweeps: shown by these"),
        (8, ExitCode.DONE, "in at most 5% of such sweeps: not refuted, and not shown by so few"),
        (24, ExitCode.INVALID, "in more than 5% of such sweeps: the gate errs"),
    ],
)
def test_a_limit_is_shown_refuted_or_neither(
    small: CalibrationSpec, planned: tuple[Study, ...], kept: int, code: ExitCode, told: str
) -> None:
    """By the interval of what was counted, not by the share."""
    found = Calibration(spec=small, measured=(measured(planned[0], kept, 200),), interrupted=False)
    assert exit_code(found) is code
    assert told in as_text(found)


def test_without_pairs_nothing_is_promised(small: CalibrationSpec, planned: tuple[Study, ...]) -> None:
    """There the gate must err, or the weather does not bite; that is no fault of the gate."""
    found = Calibration(spec=small, measured=(measured(planned[2], 200, 200),), interrupted=False)
    assert exit_code(found) is ExitCode.DONE
    assert "of such sweeps" not in as_text(found)


def test_an_interrupted_calibration_says_how_far_it_came(small: CalibrationSpec, planned: tuple[Study, ...]) -> None:
    """And that its figures are of fewer sweeps; of none, nothing is claimed."""
    study = replace(planned[1], sweeps=40)
    found = Calibration(spec=small, measured=(measured(study, 0, 3), measured(planned[0], 0, 0)), interrupted=True)
    text = as_text(found)
    assert exit_code(found) is ExitCode.INTERRUPTED
    assert "(3 of 40 sweeps: partial)" in text
    assert "all pass rates step down by 50 points half-way (1 sd), heavy-tailed bursts" in text
    assert "nan" not in text.lower()


def test_json_has_every_count_with_its_interval(small: CalibrationSpec, planned: tuple[Study, ...]) -> None:
    """A program reads the same figures; a share of nothing is null."""
    body = as_json(Calibration(spec=small, measured=(measured(planned[1], 5, 50),), interrupted=False))
    study = json.loads(json.dumps(body, allow_nan=False))["studies"]["control"]
    assert study["limit"] == 0.05
    assert study["some_placebo"]["keep"]["share"] == 0.1
    assert study["some_placebo"]["keep"]["interval"] == pytest.approx([0.0333, 0.2181], abs=1e-4)
    assert study["improvement_kept"]["all_three"]["count"] == 5
    assert study["drift_reported"]["share"] is None
