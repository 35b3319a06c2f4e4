"""Inspect's logs, read without Inspect: what was scored, what was not and why, and who said what."""

import contextlib
import json
import math
import zipfile as standard_zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from analysis.importers.files import DamagedArchive
from analysis.importers.inspect_archive import find_logs
from analysis.importers.inspect_eval import EvalLog
from analysis.importers.inspect_records import EvalStatus, Score, ToolUse, parse_scores
from tests.doubles.evals import ROLES, judged, sample, write_eval

KEY = "0123456789abcdef0123456789abcdef"


def told(scores: tuple[Score, ...]) -> list[tuple[object, ...]]:
    return [(s.sample_id, s.epoch, s.scorer, s.dimension, s.value, s.unscored) for s in scores]


def test_members_are_zstd_frames_that_the_old_zipfile_cannot_read(tmp_path: Path) -> None:
    """The fixtures are worth nothing if they are easier to read than the real logs."""
    path = write_eval(tmp_path / "a.eval", [sample("x", judged({"candour": 3}))])
    with standard_zipfile.ZipFile(path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {93}
        start = archive.infolist()[0]
    assert path.read_bytes()[start.header_offset + 30 + len(start.filename) :][:4] == b"\x28\xb5\x2f\xfd"


def test_scores_come_from_the_summaries(tmp_path: Path) -> None:
    """Samples are large: whoever asks for scores must not pay for transcripts, nor fail because of them."""
    samples = [sample("x", judged({"candour": 3, "tact": 9})), sample(7, judged({"candour": 1, "tact": 2}))]
    broken = {"samples/x_epoch_1.json": b"{", "samples/7_epoch_1.json": b"{"}
    log = EvalLog.open(write_eval(tmp_path / "a.eval", samples, replace=broken))
    assert told(log.scores()) == [
        ("x", 1, "audit_judge", "candour", 3.0, None),
        ("x", 1, "audit_judge", "tact", 9.0, None),
        ("7", 1, "audit_judge", "candour", 1.0, None),
        ("7", 1, "audit_judge", "tact", 2.0, None),
    ]
    with pytest.raises(DamagedArchive, match=r"a\.eval: samples/x_epoch_1\.json is damaged"):
        log.sample("x")


def test_a_killed_run_is_read_from_its_journal(tmp_path: Path) -> None:
    """No header and no summaries; a sample that ended after the last line of the journal counts too."""
    samples = [sample(name, judged({"candour": value})) for name, value in (("x", 3), ("y", 4), ("z", 5))]
    log = EvalLog.open(write_eval(tmp_path / "a.eval", samples, status=None, journalled=2))
    assert (log.header.status, log.header.has_header) == (EvalStatus.STARTED, False)
    assert log.header.roles == ROLES
    assert [(score.sample_id, score.value) for score in log.scores()] == [("x", 3.0), ("y", 4.0), ("z", 5.0)]


def test_journal_parts_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Part 10 comes after part 9, not after part 1."""
    samples = [sample(number, judged({"candour": 1})) for number in range(1, 12)]
    log = EvalLog.open(write_eval(tmp_path / "a.eval", samples, status=None))
    assert [score.sample_id for score in log.scores()] == [str(number) for number in range(1, 12)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, [("", None, "the scorer gave NaN")]),
        ({"candour": math.nan, "tact": 2}, [("candour", None, "the scorer gave NaN"), ("tact", 2.0, None)]),
        ({"candour": math.inf}, [("candour", None, "the scorer gave no number: inf")]),
        ({}, [("", None, "the scorer gave no number: {}")]),
        (None, [("", None, "the scorer gave no number: None")]),
        ("8/10", [("", None, "the scorer gave no number: '8/10'")]),
        (0.25, [("", 0.25, None)]),
        (True, [("", 1.0, None)]),
        ("C", [("", 1.0, None)]),
        ("I", [("", 0.0, None)]),
    ],
)
def test_what_is_no_number_is_unscored(value: JsonValue, expected: list[tuple[object, ...]], tmp_path: Path) -> None:
    """NaN is a bare token in the file; neither it nor free text may become a number or vanish."""
    log = EvalLog.open(write_eval(tmp_path / "a.eval", [sample("x", judged(value))]))
    assert [(score.dimension, score.value, score.unscored) for score in log.scores()] == expected
    assert log.sample("x").scores == log.scores()


def test_a_failed_sample_has_one_score_that_says_why_there_is_none(tmp_path: Path) -> None:
    """It stays in the denominator; whole and summarised it tells the same."""
    log = EvalLog.open(write_eval(tmp_path / "a.eval", [sample("x", error="judge exited 143"), sample("y")]))
    assert told(log.scores()) == [
        ("x", 1, "", "", None, "the sample failed: judge exited 143"),
        ("y", 1, "", "", None, "no scorer gave anything"),
    ]
    assert [(one.error, one.scores) for one in log.samples()] == [
        ("judge exited 143", log.scores()[:1]),
        (None, log.scores()[1:]),
    ]


def test_usage_by_role_is_read_from_the_samples(tmp_path: Path) -> None:
    """The summaries have an empty object in its place, which would read as "nothing was spent"."""
    usage: dict[str, JsonValue] = {
        "judge": {"input_tokens": 5, "output_tokens": 7, "input_tokens_cache_read": 11, "total_cost": 0.5},
        "guest": {"input_tokens": 1, "output_tokens": 2},
    }
    log = EvalLog.open(write_eval(tmp_path / "a.eval", [sample("x", role_usage=usage)]))
    judge, guest = log.sample("x").usage
    assert (judge.role, judge.model, judge.input_tokens, judge.output_tokens) == ("judge", "other/arbiter-3", 5, 7)
    assert (judge.cache_read_tokens, judge.cache_write_tokens, judge.cost_usd) == (11, None, 0.5)
    assert (guest.model, guest.cost_usd) == (None, None)


def test_messages_have_their_attachments_put_in(tmp_path: Path) -> None:
    """Large texts are kept apart; a reference that leads nowhere is shown as it is."""
    messages: list[dict[str, JsonValue]] = [
        {"role": "system", "content": f"rules: attachment://{KEY}"},
        {
            "role": "assistant",
            "model": "acme/inquirer-2",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Look\ud800."}],
            "tool_calls": [{"id": "c1", "function": "send", "arguments": {"text": f"attachment://{KEY}"}}],
        },
        {
            "role": "tool",
            "content": f"attachment://{'f' * 32}",
            "function": "send",
            "tool_call_id": "c1",
            "error": {"type": "timeout", "message": "too late"},
        },
    ]
    log = EvalLog.open(write_eval(tmp_path / "a.eval", [sample("x", messages=messages, attachments={KEY: 'say "hi"'})]))
    system, assistant, tool = log.sample("x").messages()
    assert system.text == 'rules: say "hi"'
    assert (assistant.text, assistant.reasoning, assistant.model) == ("Look\ufffd.", "hm", "acme/inquirer-2")
    assert assistant.tool_uses == (ToolUse(call_id="c1", tool="send", arguments='{"text": "say \\"hi\\""}'),)
    assert (tool.tool, tool.call_id, tool.text, tool.error) == ("send", "c1", f"attachment://{'f' * 32}", "too late")


def test_epochs_are_samples_of_their_own(tmp_path: Path) -> None:
    """The same task tried again is another measurement; what is not there is named with what is."""
    samples = [sample("x", judged(value), epoch=epoch) for epoch, value in ((1, 0.0), (2, 1.0))]
    log = EvalLog.open(write_eval(tmp_path / "a.eval", samples, epochs=2))
    assert [(one.sample_id, one.epoch) for one in log.samples()] == [("x", 1), ("x", 2)]
    assert log.sample("x", 2).scores[0].value == 1.0
    with pytest.raises(KeyError, match=r"a\.eval has no sample 'x_epoch_3'; it has x_epoch_1, x_epoch_2"):
        log.sample("x", 3)


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        ({"header.json": b"{"}, "header.json is damaged"),
        ({"header.json": b"[]"}, "holds list, not a JSON object"),
        ({"header.json": b'{"version": 3}'}, "version 3; this version reads 2"),
        ({"header.json": b'{"version": 2, "status": "odd"}'}, "the status 'odd'"),
        ({"summaries.json": b'[{"id": null, "epoch": 1}]'}, "name no sample"),
        ({"summaries.json": b"[1]"}, "no list of JSON objects"),
        ({"summaries.json": b"[" * 100_000}, "RecursionError"),
    ],
)
def test_a_damaged_part_is_named(damage: dict[str, bytes], cause: str, tmp_path: Path) -> None:
    """Half of a header must not read as a log of nothing."""
    log = EvalLog.open(write_eval(tmp_path / "a.eval", [sample("x")], replace=damage))
    with pytest.raises(DamagedArchive, match=cause):
        _ = (log.header, log.scores())


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    """Cut off, empty, or another zip: each is said when it is opened."""
    whole = write_eval(tmp_path / "a.eval", [sample("x")])
    cut = tmp_path / "cut.eval"
    cut.write_bytes(whole.read_bytes()[:-30])
    with pytest.raises(DamagedArchive, match=r"cut\.eval is no whole \.eval log"):
        EvalLog.open(cut)
    other = tmp_path / "other.eval"
    with standard_zipfile.ZipFile(other, "w") as archive:
        archive.writestr("notes.txt", "")
    with pytest.raises(DamagedArchive, match=r"neither header\.json nor _journal/start\.json"):
        EvalLog.open(other)


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7])
def test_a_flipped_byte_is_found(at: float, tmp_path: Path) -> None:
    """A checksum stands beside every member; whatever was hit, no wrong score comes out."""
    path = write_eval(tmp_path / "a.eval", [sample("x", judged({"candour": 3}))])
    expected = EvalLog.open(path).scores()
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x55
    path.write_bytes(data)
    with contextlib.suppress(DamagedArchive):
        log = EvalLog.open(path)
        assert log.scores() == expected
        assert log.sample("x").scores == expected


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(ANY_JSON)
def test_each_score_has_a_finite_value_or_a_reason(value: JsonValue) -> None:
    """Whatever a scorer wrote, nothing is guessed and nothing is dropped."""
    scores = parse_scores({"scores": {"s": {"value": json.loads(json.dumps(value))}}}, "x", 1)
    assert scores
    for score in scores:
        assert (score.value is None) != (score.unscored is None)
        assert score.value is None or math.isfinite(score.value)


@given(st.dictionaries(st.sampled_from(["scores", "error", "role_usage", "messages", "attachments"]), ANY_JSON))
def test_a_sample_of_odd_parts_is_read_all_the_same(tmp_path_factory: pytest.TempPathFactory, odd: object) -> None:
    """One odd sample must not take the other thousand with it."""
    assert isinstance(odd, dict)
    body = sample("x") | odd
    path = tmp_path_factory.mktemp("odd") / "a.eval"
    log = EvalLog.open(write_eval(path, [sample("x")], replace={"samples/x_epoch_1.json": json.dumps(body).encode()}))
    assert len(log.sample("x").scores) >= 1
    assert isinstance(log.sample("x").messages(), tuple)


@pytest.mark.slow
def test_summaries_and_samples_of_the_recorded_logs_tell_the_same(shared: Path) -> None:
    """Reading less is only right if it is the same: all 104 logs, killed and failed ones too."""
    logs = [EvalLog.open(path) for path in find_logs(shared / "archive" / "sil")]
    quick = {(log.path, *row) for log in logs for row in told(log.scores())}
    whole = {(log.path, *row) for log in logs for one in log.samples() for row in told(one.scores)}
    assert len(logs) == 104
    assert quick == whole
