"""A log of another harness is read for what it tells, and what it does not tell stays unknown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.foreign import LogsRefused, Unit
from analysis.foreign_inspect import NamedAttempt, attempt_name, parse_attempt_name
from analysis.foreign_logs import is_log_path, read_log, read_logs
from analysis.importers.files import ArchiveError, DamagedArchive, UnknownArchive
from tests.doubles.evals import ROLES, Body, judged, sample, write_eval
from tests.doubles.foreign_logs import write_mcpmark

USAGE = {
    "target": {"input_tokens": 700, "output_tokens": 300, "total_cost": 0.5},
    "judge": {"input_tokens": 30, "input_tokens_cache_read": 10, "output_tokens": 2},
}
TALK = [
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": "look", "arguments": {}}]},
    {"role": "tool", "content": "no", "function": "look", "tool_call_id": "c1", "error": {"message": "timeout"}},
    {"role": "assistant", "content": "Done."},
]


@given(st.text(min_size=1), st.integers(0, 10**6))
def test_what_names_a_sample_is_read_back_whatever_its_id_is(sample_id: str, epoch: int) -> None:
    """Ids are free text: a slash, a #, digits at the end or a line break must not name another sample."""
    path = Path("my logs/a.eval")
    named = NamedAttempt(log=path, sample_id=sample_id, epoch=epoch)
    assert parse_attempt_name(attempt_name(path, sample_id, epoch)) == named


def test_a_sample_can_be_named_by_less() -> None:
    """The first epoch, or the only sample. What has no log in it names none."""
    assert parse_attempt_name("a.eval#s1") == NamedAttempt(log=Path("a.eval"), sample_id="s1", epoch=1)
    assert parse_attempt_name("a.eval") == NamedAttempt(log=Path("a.eval"), sample_id=None, epoch=1)
    assert [parse_attempt_name(text) for text in ("3fa2c1d9", "a.evaluation", ".eval", "a.eval#")] == [None] * 4


def test_a_name_with_a_slash_is_a_path_and_no_other() -> None:
    """An experiment must not change its meaning because a folder of its name lies about."""
    texts = ("./run", "a.eval", "/x/y", "..", "ablation", "v1.2")
    assert [is_log_path(text) for text in texts] == [True] * 4 + [False] * 2


def test_an_attempt_of_mcpmark_has_its_price_its_family_and_its_folder(tmp_path: Path) -> None:
    """What an attempt cost is half of a comparison; an aborted one has no usage, which is not zero."""
    log = read_log(write_mcpmark(tmp_path / "a", "PI", categories=2))
    tasks = ("files/attic__task_0", "files/attic1__task_1")
    passed, ended = (log.attempts[Unit(task, "run-1")] for task in tasks)
    assert (passed.tokens, passed.cost_usd, passed.wall_s, passed.turns) == (1_000, 0.25, 50.0, 3)
    assert (passed.tool_calls, passed.tool_errors, passed.other_tokens, passed.repairs) == (2, 1, None, None)
    assert passed.shown_as == str(tmp_path / "a" / "acme-1__files" / "run-1" / "attic__task_0")
    assert (ended.invalid, ended.tokens, ended.cost_usd, ended.tool_calls) == ("no network", None, None, None)
    assert log.families == {"files/attic__task_0": "attic", "files/attic1__task_1": "attic1"}
    assert log.notes == ("1 of 2 attempts are INVALID: infrastructure ended them",)
    assert log.ruler == {"service": "files", "timeout": "600 s"}


def test_a_sample_of_inspect_has_the_targets_price_apart_from_the_others(tmp_path: Path) -> None:
    """A dear judge does not make an agent dear."""
    body = sample("s1", judged({"calm": 1}), messages=TALK, role_usage=USAGE)  # type: ignore[arg-type]
    path = write_eval(tmp_path / "a.eval", [body])
    (facts,) = read_log(path).attempts.values()
    assert (facts.tokens, facts.other_tokens, facts.cost_usd, facts.wall_s) == (1_000, 42, 0.5, 60.5)
    assert (facts.turns, facts.tool_calls, facts.tool_errors) == (2, 1, 1)
    assert (facts.identity, facts.shown_as) == ("uuid-s1-1", f"{path}#s1/1")
    assert facts.started_at is not None


def test_usage_of_an_unknown_role_is_nobodys_where_there_are_roles(tmp_path: Path) -> None:
    """A target's and a judge's tokens must not be taken for each other's; without roles there is one spender."""
    body = {**sample("s1", judged({"calm": 1})), "model_usage": {"acme/worker-1": {"output_tokens": 5}}}
    for roles, tokens in ((ROLES, None), ({}, 5)):
        (facts,) = read_log(write_eval(tmp_path / "a.eval", [body], roles=roles)).attempts.values()
        assert (facts.tokens, facts.other_tokens) == (tokens, None)


def test_a_failed_sample_is_invalid_and_one_without_a_grade_is_unscored(tmp_path: Path) -> None:
    """Infrastructure and a judge that says nothing are two failures, of which only one was the agent's run."""
    samples = [
        sample("s1", judged({"calm": 2})),
        sample("s2", judged({"calm": float("nan")})),
        sample("s3", error="out of memory"),
        sample("s4", judged({"calm": 3}), error="late, but scored"),
    ]
    log = read_log(write_eval(tmp_path / "a.eval", samples))
    invalid = {unit.task: facts.invalid for unit, facts in log.attempts.items()}
    assert invalid == {"s1": None, "s2": None, "s3": "out of memory", "s4": None}
    assert [log.values["calm"][unit] for unit in sorted(log.attempts)] == [2, None, None, 3]
    assert log.notes == ("1 of 4 samples are INVALID: an error ended them",)


def test_the_ruler_of_inspect_is_all_that_measures_and_nothing_of_when_and_how_fast(tmp_path: Path) -> None:
    """Another judge, limit or number of epochs is another measurement; another commit may be."""
    config: Body = {"message_limit": 40, "max_connections": 8, "log_samples": True}
    log = read_log(write_eval(tmp_path / "a.eval", [sample("s1", judged({"calm": 1}))], epochs=2, config=config))
    assert log.ruler == {
        "task": "acme/audit", "dataset.name": "seeds",
        "config.limit": "10", "config.epochs": "2", "config.message_limit": "40",
        "auditor": ROLES["auditor"], "judge": ROLES["judge"],
    }  # fmt: skip
    assert log.surroundings == {"revision.commit": "abc123", "packages.inspect_ai": "0.3.220"}
    assert log.subject == ROLES["target"]


def test_a_score_is_named_by_as_much_as_tells_it_apart(tmp_path: Path) -> None:
    """Two judges may both grade calm; the accuracy of a plain scorer has no name of its own."""
    scores = {**judged({"calm": 1, "odd": 2}), **judged({"calm": 3}, "second"), **judged("C", "match")}
    log = read_log(write_eval(tmp_path / "a.eval", [sample("s1", scores)]))
    assert {name: value[Unit("s1", "epoch 1")] for name, value in log.values.items()} == {
        "audit_judge.calm": 1, "odd": 2, "second.calm": 3, "match": 1,
    }  # fmt: skip


def test_a_killed_run_is_read_and_says_so(tmp_path: Path) -> None:
    """What it did is in its journal."""
    log = read_log(write_eval(tmp_path / "a.eval", [sample("s1", judged({"calm": 1}))], status=None))
    assert log.notes == ("the log's status is 'started': what did not end is not in it",)


def test_one_attempt_twice_is_refused(tmp_path: Path) -> None:
    """Nobody knows which one is meant."""
    for name in ("x", "y"):
        write_mcpmark(tmp_path / "twice" / name, "F")
    with pytest.raises(LogsRefused, match="'files/attic__task_0' of run-1 more than once"):
        read_log(tmp_path / "twice")


def test_what_is_no_log_is_refused_with_what_to_give(tmp_path: Path) -> None:
    """Each mistake has its own next step."""
    folder = write_eval(tmp_path / "logs" / "a.eval").parent
    with pytest.raises(LogsRefused, match=r"holds 1 \.eval logs: name them, such as .*a\.eval"):
        read_log(folder)
    with pytest.raises(UnknownArchive, match="looked for MCPMark's"):
        read_log(tmp_path)
    with pytest.raises(UnknownArchive, match="does not exist"):
        read_log(tmp_path / "none")
    whole = (folder / "a.eval").read_bytes()
    (folder / "torn.eval").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedArchive, match=r"torn\.eval is no whole \.eval log"):
        read_log(folder / "torn.eval")


def test_several_logs_are_all_paths_and_all_different(tmp_path: Path) -> None:
    """A log beside itself shows no difference, and a name beside a log means that something was mistyped."""
    path = write_eval(tmp_path / "a.eval", [sample("s1", judged({"calm": 1}))])
    with pytest.raises(LogsRefused, match="are the same log"):
        read_logs([str(path), str(tmp_path / "x" / ".." / "a.eval")])
    with pytest.raises(LogsRefused, match=r"'ablation' is the name of an experiment.*write \./ablation"):
        read_logs([str(path), "ablation"])
    with pytest.raises(ArchiveError, match=r"none\.eval"):
        read_logs([str(path), str(tmp_path / "none.eval")])
