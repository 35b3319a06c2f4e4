"""What verifiers share: the agent's leftovers are judged, never trusted and never run in this process."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.suite import OutcomeKind
from experiments.suites.verifying import (
    Fault,
    answer_csv,
    answer_ini,
    answer_json,
    answer_text,
    answer_yaml,
    other_than,
    outcome_of,
    run_program,
)

SH = "/bin/sh"


def run(tmp_path: Path, script: str, *, stdin: str = "", time_limit_s: float = 10.0) -> str:
    return run_program((SH, "-c", script), tmp_path, stdin=stdin, subject="it", time_limit_s=time_limit_s)


def test_no_reason_is_a_pass_and_any_reason_a_failure() -> None:
    """The two scores are the ends of the scale; what lies between is for verifiers that can count."""
    assert outcome_of(iter(())).kind is OutcomeKind.PASS
    assert outcome_of(iter(("a", "b"))).reasons == ("a", "b")


def test_a_fault_ends_the_look_and_is_a_reason(tmp_path: Path) -> None:
    """What cannot be read cannot be looked at further."""

    def look() -> Iterator[str]:
        yield "first"
        yield answer_text(tmp_path, "nothing.txt")

    assert outcome_of(look()).reasons == ("first", "nothing.txt is missing")


def test_what_keeps_the_verifier_from_running_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    """The caller makes INVALID of it: a host without an interpreter would otherwise fail every episode."""

    def look() -> Iterator[str]:
        yield run_program(("/no/interpreter",), tmp_path, subject="it")

    with pytest.raises(FileNotFoundError, match=r"'/no/interpreter'.*install it"):
        outcome_of(look())


def test_a_program_is_given_its_input_and_a_clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in our environment is none of the agent's business."""
    monkeypatch.setenv("A_KEY", "secret")
    assert run(tmp_path, 'cat; pwd; echo "key=$A_KEY"; echo noise >&2', stdin="é\n") == f"é\n{tmp_path}\nkey=\n"


def test_a_program_that_fails_or_never_ends_is_a_fault(tmp_path: Path) -> None:
    """An endless loop is what the agent wrote, and the next episode waits."""
    with pytest.raises(Fault, match="it ended with exit code 3"):
        run(tmp_path, "exit 3")
    began = time.monotonic()
    with pytest.raises(Fault, match=r"it did not end within 0\.2 s"):
        run(tmp_path, "sleep 30; echo late", time_limit_s=0.2)
    assert time.monotonic() - began < 5


def test_what_a_program_leaves_in_the_background_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    """A process that holds the output open, and goes on after the episode, would meet the next one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    began = time.monotonic()
    assert run(tmp_path, "exec 3> pipe; sleep 30 & echo started") == "started\n"
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # comes when nobody holds the other end
    os.close(reader)
    assert time.monotonic() - began < 15


def test_a_flood_is_cut(tmp_path: Path) -> None:
    """Neither disk nor memory is the agent's to fill."""
    with pytest.raises(Fault):
        run(tmp_path, "yes")
    (tmp_path / "a.txt").write_bytes(b"x" * 1_000_001)
    with pytest.raises(Fault, match=r"a\.txt is larger than 1000000 bytes"):
        answer_text(tmp_path, "a.txt")


def test_python_of_the_agent_does_not_run_here(tmp_path: Path) -> None:
    """The probe's interpreter is ours, isolated and without site packages; the module is the agent's."""
    (tmp_path / "module.py").write_text("import os\nprint(os.getpid())\n")
    code = "import sys; sys.path.insert(0, ''); import module"
    printed = run_program((sys.executable, "-I", "-S", "-B", "-c", code), tmp_path, subject="module.py")
    assert int(printed) > 0
    assert "module" not in sys.modules


@pytest.mark.parametrize("wanted", [True, 1, "1", [1], {"a": 1}, None])
def test_equal_means_equal_in_kind(wanted: object) -> None:
    """To Python true and 1 are equal; to the program that reads the file they are not."""
    values = [True, 1, 1.5, "1", [1], [True], {"a": 1}, {"a": True}, None, {1: 1}, {"a": object()}]
    equal = [value for value in values if not list(other_than(wanted, value, "f"))]
    assert [(type(value), value) for value in equal] == [(type(wanted), wanted)]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (answer_ini, "[a]\nx = 1\nx = 2\n"),
        (answer_ini, "[a]\nx = 1\n[a]\ny = 2\n"),
        (answer_json, '{"x": 1, "x": 2}'),
        (answer_yaml, "x: 1\nx: 2\n"),
    ],
)
def test_what_stands_twice_is_a_fault(read: Callable[[Path, str], object], text: str, tmp_path: Path) -> None:
    """One program takes the first, another the last: a file that says both says neither."""
    (tmp_path / "f").write_text(text)
    with pytest.raises(Fault, match="f is no"):
        read(tmp_path, "f")


@given(content=st.binary(max_size=200) | st.text(alphabet="[]{}:,#&*!|>\"' \n\t=-a1;%.e", max_size=80).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_file_holds_it_is_read_or_a_fault(tmp_path: Path, content: bytes) -> None:
    """Any other exception would turn the agent's rubbish into an INVALID episode."""
    (tmp_path / "f").write_bytes(content)
    for read in (answer_csv, answer_ini, answer_json, answer_yaml):
        with contextlib.suppress(Fault):
            read(tmp_path, "f")
