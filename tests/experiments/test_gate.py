"""The gate decides little, says why, and is never carried by what was not measured."""

import pytest

from benchmarks.error_rates import MIXED, Line
from experiments.gate import (
    Beyond,
    EvidenceRefused,
    GateSpec,
    Generalisation,
    PairedEvidence,
    ReasonCode,
    Verdict,
    VerdictKind,
    differences,
    gate_spec,
    generalises,
    paired_evidence,
    paired_fixed,
    promoted_by_point_estimate,
)
from experiments.records import Caps, Ruler
from experiments.sinks import Cell
from tests.doubles.cells import Letters, make_cells, make_experiment

SPEC = GateSpec()


def evidence(letters: Letters) -> PairedEvidence:
    return paired_evidence(make_cells(letters), next(iter(letters)))


def only_verdict(baseline: dict[str, str], candidate: dict[str, str], spec: GateSpec = SPEC) -> Verdict:
    (verdict,) = paired_fixed(evidence({"baseline": baseline, "hook": candidate}), spec)
    return verdict


def codes(verdict: Verdict) -> list[ReasonCode]:
    return [reason.code for reason in verdict.reasons]


WEAK = {"csv_a": "FFFFPFFFFF" * 2, "fix_b": "FPFFFFFFPF" * 2}
STRONG = {"csv_a": "PPPFPPPPPP" * 2, "fix_b": "PPPPPPFPPP" * 2}


def test_a_clear_gain_is_kept_and_a_clear_loss_rejected() -> None:
    """The two ends of the rule, from the same outcomes."""
    kept, rejected = only_verdict(WEAK, STRONG), only_verdict(STRONG, WEAK)
    assert (kept.kind, codes(kept)) == (VerdictKind.KEEP, [ReasonCode.BETTER])
    assert (rejected.kind, codes(rejected)) == (VerdictKind.REJECT, [ReasonCode.WORSE])
    assert kept.difference is not None
    assert kept.difference.estimate == pytest.approx(0.75)


def test_a_gain_within_noise_is_undecided() -> None:
    """A point estimate above zero is what a naive comparison promotes; the gate says what it knows."""
    found = evidence({"baseline": {"csv_a": "PFPFPFPF"}, "hook": {"csv_a": "PPPFPFPF"}})
    (verdict,) = paired_fixed(found, SPEC)
    assert (verdict.kind, codes(verdict)) == (VerdictKind.UNDECIDED, [ReasonCode.INTERVAL_HOLDS_ZERO])
    assert promoted_by_point_estimate(found) == ("hook",)


def test_the_naive_rule_promotes_everything_above_the_baseline_best_first() -> None:
    """What is shown beside the verdicts must be the rule that people use."""
    found = evidence({"baseline": {"a": "FFPP"}, "x": {"a": "FPPP"}, "y": {"a": "FFPP"}, "z": {"a": "PPPP"}})
    assert promoted_by_point_estimate(found) == ("z", "x")


@pytest.mark.parametrize(
    ("baseline", "candidate", "code"),
    [
        ("PFPF", "PFPF", ReasonCode.ALL_EQUAL),
        ("PPPP", "PPPP", ReasonCode.ALL_EQUAL),
        ("F", "P", ReasonCode.TOO_FEW_PAIRS),
        ("FF", "PP", ReasonCode.INTERVAL_HOLDS_ZERO),
    ],
)
def test_evidence_that_is_too_thin_is_undecided_with_its_reason(
    baseline: str, candidate: str, code: ReasonCode
) -> None:
    """No variance, one repeat, all equal: a formula that divides by zero must not be what decides."""
    verdict = only_verdict({"a": baseline}, {"a": candidate})
    assert (verdict.kind, codes(verdict)) == (VerdictKind.UNDECIDED, [code])


def test_certain_success_against_certain_failure_is_kept() -> None:
    """No variance within the arms is no reason to doubt 60 pairs that all say the same."""
    assert only_verdict({"a": "F" * 30, "b": "F" * 30}, {"a": "P" * 30, "b": "P" * 30}).kind is VerdictKind.KEEP


def test_one_flipped_task_of_six_at_five_repeats_is_not_certain() -> None:
    """Its sample variance is zero, and so is that of the five tasks on which nothing differs."""
    others = dict.fromkeys("bcdef", "PPPPP")
    verdict = only_verdict({"a": "FFFFF", **others}, {"a": "PPPPP", **others})
    assert verdict.difference is not None
    assert verdict.difference.standard_error > 0


def test_too_many_invalid_episodes_in_either_arm_make_it_invalid() -> None:
    """A verdict about what happened to be measurable is not a verdict about the scaffold."""
    broken = {"csv_a": "IIPPPPPPPP" * 2, "fix_b": STRONG["fix_b"]}
    for baseline, candidate in ((WEAK, broken), (broken, WEAK)):
        verdict = only_verdict(baseline, candidate)
        assert (verdict.kind, codes(verdict)) == (VerdictKind.INVALID, [ReasonCode.INVALID_SHARE])
        assert "4 of 40" in verdict.reasons[0].text


def test_the_allowed_share_of_invalid_episodes_is_a_field() -> None:
    """What is too much is for the ruler to say."""
    broken = {"csv_a": "IIPPPPPPPP" * 2, "fix_b": STRONG["fix_b"]}
    assert only_verdict(WEAK, broken, GateSpec(invalid_share_max=0.2)).kind is VerdictKind.KEEP


def test_invalid_episodes_that_could_turn_the_verdict_leave_it_undecided() -> None:
    """An INVALID episode is no failure, but it must not help by its absence either."""
    baseline = {"a": "FFFFFFFFFFFFFFFPPPPPPPPPPPPPPP"}
    candidate = {"a": "PPPPPPPPFFFFFFFPPPPPPPPPPPPIII"}
    spec = GateSpec(invalid_share_max=0.2)
    assert only_verdict(baseline, {"a": candidate["a"].replace("I", "P")}, spec).kind is VerdictKind.KEEP
    verdict = only_verdict(baseline, candidate, spec)
    assert (verdict.kind, codes(verdict)) == (VerdictKind.UNDECIDED, [ReasonCode.SENSITIVE_TO_INVALID])
    mirrored = only_verdict(candidate, baseline, spec)
    assert (mirrored.kind, codes(mirrored)) == (VerdictKind.UNDECIDED, [ReasonCode.SENSITIVE_TO_INVALID])


def test_an_unfinished_experiment_is_invalid_not_early_news() -> None:
    """A fixed sample that is looked at early is no fixed sample."""
    verdict = only_verdict(WEAK, {**STRONG, "fix_b": STRONG["fix_b"][:-1] + "."})
    assert (verdict.kind, codes(verdict)) == (VerdictKind.INVALID, [ReasonCode.EPISODES_MISSING])
    assert "1 of 40 episodes of 'hook' have not run" in verdict.reasons[0].text


def test_nothing_measured_at_all_is_invalid() -> None:
    """No pairs: no verdict, no NaN, no traceback."""
    for letter, code in ((".", ReasonCode.EPISODES_MISSING), ("I", ReasonCode.INVALID_SHARE)):
        verdict = only_verdict({"a": "PPPP"}, {"a": letter * 4})
        assert (verdict.kind, codes(verdict), verdict.difference) == (VerdictKind.INVALID, [code], None)


def test_pairs_are_matched_by_repetition_and_the_unmatched_stay_out() -> None:
    """An INVALID baseline episode takes its own pair out and no other."""
    found = evidence({"baseline": {"a": "PIFP"}, "hook": {"a": "FPPI"}})
    assert [str(value) for value in differences(found)[0].ravel()] == ["-1.0", "nan", "1.0", "nan"]


def test_a_baseline_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    """A misspelt baseline must not become an empty comparison."""
    with pytest.raises(EvidenceRefused, match="baseline"):
        paired_evidence(make_cells({"baseline": {"a": "P"}, "hook": {"a": "P"}}), "basline")


def test_other_rulers_and_other_experiments_are_refused() -> None:
    """Numbers from two rulers are not on one scale, and a frozen baseline is no pair."""
    letters: Letters = {"baseline": {"a": "PF"}, "hook": {"a": "PF"}}
    first, _ = make_cells(letters)
    _, stricter = make_cells(letters, make_experiment(letters, confidence=0.99))
    _, elsewhere = make_cells(letters, make_experiment(letters, name="another"))
    with pytest.raises(EvidenceRefused, match="different rulers"):
        paired_evidence([first, stricter], "baseline")
    with pytest.raises(EvidenceRefused, match="side by side"):
        paired_evidence([first, elsewhere], "baseline")


def test_an_episode_outside_the_plan_is_refused() -> None:
    """What does not belong to a cell is neither counted nor silently left out."""
    first, second = make_cells({"baseline": {"a": "PF"}, "hook": {"a": "PF"}})
    mixed = Cell(experiment=second.experiment, variant=second.variant, episodes=(*second.episodes, *first.episodes))
    with pytest.raises(EvidenceRefused, match="2 episodes of 'hook' are not in its plan"):
        paired_evidence([first, mixed], "baseline")


def test_a_rule_that_this_version_does_not_know_is_refused() -> None:
    """Judging by another rule than the ruler's would be a silent change of the measurement."""
    ruler = Ruler(suite="s", tasks=(), seeds=(1,), caps=Caps(), rule="sequential")
    with pytest.raises(EvidenceRefused, match="sequential"):
        gate_spec(ruler)


def beyond(baseline: dict[str, str], **candidates: dict[str, str]) -> tuple[Generalisation, ...]:
    return generalises(evidence({"baseline": baseline, **candidates}), SPEC)


FAMILIES = [f"f{number}_{task}" for number in range(10) for task in "ab"]
WEAK_EVERYWHERE = dict.fromkeys(FAMILIES, "FFFP")
STRONG_SOMEHOW = {**dict.fromkeys(FAMILIES, "PPPF"), "f0_a": "FFFF", "f1_a": "FFPF", "f2_b": "PPPP"}


def test_three_families_say_nothing_about_a_fourth() -> None:
    """`Generalises` is a claim about families, and says when it was not put to the test."""
    (found,) = beyond(WEAK, hook=STRONG)
    assert (found.kind, found.reason, found.difference) == (Beyond.NOT_TESTED, "2 families, 10 needed", None)


def test_ten_families_are_tested_by_their_own_spread() -> None:
    """Two tasks of one family count as one observation; the mean is over families."""
    (found,) = beyond(WEAK_EVERYWHERE, hook=STRONG_SOMEHOW)
    assert found.kind is Beyond.GENERALISES
    assert (found.families, found.families_better, found.families_worse) == (10, 10, 0)
    assert found.difference is not None
    assert found.difference.df == 9
    assert found.difference.estimate == pytest.approx((7 * 0.5 + 0.125 + 0.25 + 0.625) / 10)


def test_a_gain_in_a_third_of_the_families_does_not_generalise() -> None:
    """On these tasks it is real, and the gate keeps it; of the next family it says nothing."""
    gain = dict.fromkeys(FAMILIES, "FFFFP" * 6)
    hook = {**gain, **{task: "PPPPP" * 6 for task in FAMILIES if task < "f3"}, "f9_a": "FFFFF" * 6}
    assert only_verdict(gain, hook).kind is VerdictKind.KEEP
    (found,) = beyond(gain, hook=hook)
    assert (found.kind, found.families_better, found.families_worse) == (Beyond.DOES_NOT, 3, 1)


def test_the_family_intervals_hold_for_all_candidates_together() -> None:
    """Whoever looks at six candidates pays for six, at this level too."""
    other = {**dict.fromkeys(FAMILIES, "FFPP"), "f5_a": "FFFF", "f7_b": "PPPP"}
    (alone,), both = beyond(WEAK_EVERYWHERE, hook=STRONG_SOMEHOW), beyond(WEAK_EVERYWHERE, hook=STRONG_SOMEHOW, o=other)
    assert alone.difference is not None
    assert both[0].difference is not None
    assert both[0].difference.critical > 1.05 * alone.difference.critical
    assert [found.candidate for found in both] == ["hook", "o"]


def test_equal_families_have_no_spread_to_judge_by() -> None:
    """Gains that cancel leave rounding behind, and an interval of rounding errors would decide anything."""
    strong = dict.fromkeys(FAMILIES, "PPPF")
    (found,) = beyond(WEAK_EVERYWHERE, hook=strong)
    assert found.kind is Beyond.NOT_TESTED
    assert "no spread" in found.reason


def test_unfit_evidence_generalises_nothing() -> None:
    """The family level is no way around the gate: what is missing or INVALID counts there too."""
    (missing,) = beyond(WEAK_EVERYWHERE, hook={**STRONG_SOMEHOW, "f3_a": "PPP."})
    assert (missing.kind, "have not run" in missing.reason) == (Beyond.NOT_TESTED, True)
    (invalid,) = beyond(WEAK_EVERYWHERE, hook={**STRONG_SOMEHOW, "f3_a": "PPII", "f4_a": "IIIP"})
    assert (invalid.kind, "INVALID" in invalid.reason) == (Beyond.NOT_TESTED, True)


def test_invalid_episodes_that_could_turn_the_family_level_count_against_it() -> None:
    """Below the allowed share they still must not help by their absence."""
    whole = {task: "FFPP" if task < "f5" else "FFFP" for task in FAMILIES}
    holed = {**whole, **dict.fromkeys(("f8_a", "f8_b", "f9_a", "f9_b"), "FFFI")}
    assert beyond(WEAK_EVERYWHERE, hook=whole)[0].kind is Beyond.GENERALISES
    found = beyond(WEAK_EVERYWHERE, hook=holed)[0]
    assert (found.kind, "measured nothing" in found.reason) == (Beyond.DOES_NOT, True)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [30, 5])
def test_a_sweep_in_which_nothing_differs_rarely_decides_anything(repeats: int) -> None:
    """The error of the whole sweep is bounded, with tasks at rate 0 and 1 among them; point estimates promote freely.

    At a true rate of 5 %, more than 10 of 80 sweeps decide with a probability below 0.2 %; uncorrected 95 % intervals
    would decide in some 17. `benchmarks/error_rates.py` measures the rate itself.
    """
    found = Line(rates=[MIXED] * 7, repeats=repeats, sweeps=80, seed=11).tally()
    assert found.decided.count <= 10
    assert found.naive.count >= 60
