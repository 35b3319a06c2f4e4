"""Facts of `geode.records.jsonl`: no gap and no repeat in the sequence, whatever happened to the file."""

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geode.records.jsonl import JsonLines, read_lines

HEADER = {"schema": "test/1"}


def sequence(path: Path) -> list[object]:
    return [line.body["seq"] for line in read_lines(path) if line.body and "seq" in line.body]


def problems(path: Path) -> list[str]:
    return [line.problem for line in read_lines(path) if line.body is None]


def append(path: Path, count: int, body: str = "x") -> None:
    lines = JsonLines(path, HEADER)
    for _ in range(count):
        lines.append({"body": body})
    lines.close()


def test_a_file_begins_with_its_header_and_counts_from_one(tmp_path: Path) -> None:
    append(tmp_path / "a.jsonl", 2)
    assert (tmp_path / "a.jsonl").read_text() == '{"schema":"test/1"}\n{"seq":1,"body":"x"}\n{"seq":2,"body":"x"}\n'


def test_the_sequence_goes_on_over_restarts(tmp_path: Path) -> None:
    for _ in range(3):
        append(tmp_path / "a.jsonl", 2)
    append(tmp_path / "a.jsonl", 0)
    assert sequence(tmp_path / "a.jsonl") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("size", [70_000, 2_000_000])
def test_a_line_longer_than_the_tail_that_is_read_keeps_the_sequence(tmp_path: Path, size: int) -> None:
    """Otherwise one large event would let the next process count from 1 again."""
    append(tmp_path / "a.jsonl", 3)
    append(tmp_path / "a.jsonl", 1, "y" * size)
    append(tmp_path / "a.jsonl", 1)
    assert sequence(tmp_path / "a.jsonl") == [1, 2, 3, 4, 5]


@given(cut=st.integers(0, 10_000), body=st.sampled_from(["x", "정확도🍸", '"}\\', "y" * 300]))
def test_a_file_cut_at_any_byte_goes_on_without_gap_or_repeat(
    tmp_path_factory: pytest.TempPathFactory, cut: int, body: str
) -> None:
    """A process that is killed leaves at most one torn line; a reader reports it, and loses nothing else."""
    path = tmp_path_factory.mktemp("cut") / "a.jsonl"
    append(path, 3, body)
    os.truncate(path, cut % (path.stat().st_size + 1))
    before = sequence(path)
    append(path, 2, body)
    assert sequence(path) == [*before, len(before) + 1, len(before) + 2]
    assert len(problems(path)) <= 1


def test_a_torn_line_is_named_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append(path, 1)
    with path.open("ab") as file:
        file.write(b'{"seq":2,"body":"hal')
    assert problems(path) == ["a.jsonl line 3 is cut off and was skipped"]
    append(path, 1)
    assert problems(path) == ["a.jsonl line 3 is not JSON and was skipped"]


@pytest.mark.parametrize(
    "junk", [b"[1]\n", b"12\n", b"\n  \n", b"\xff\xfe\n", b"[" * 200_000 + b"\n", b"9" * 5_000 + b"\n"]
)
def test_junk_between_the_lines_hurts_no_other_line(tmp_path: Path, junk: bytes) -> None:
    """A30: a line nested without end or a number of 5,000 digits makes the JSON reader raise other errors."""
    path = tmp_path / "a.jsonl"
    append(path, 2)
    with path.open("ab") as file:
        file.write(junk)
    append(path, 1)
    assert sequence(path) == [1, 2, 3]
    assert len(problems(path)) == bool(junk.strip())


def test_a_full_disk_is_an_error_and_costs_no_number(tmp_path: Path) -> None:
    """The kernel writes a part of the line and then nothing: the part is ended, and the number is given again."""
    path = tmp_path / "a.jsonl"
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = _appends_on_a_small_disk(path)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sequence(path) == [1, 2, 3]
    assert len(problems(path)) == 1


def _appends_on_a_small_disk(path: Path) -> int:
    lines = JsonLines(path, HEADER)
    lines.append({"body": "x"})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    failed = 0
    for _ in range(3):
        try:
            lines.append({"body": "does not fit"})
        except OSError:
            failed += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lines.append({"body": "fits again"})
    lines.append({"body": "and on"})
    return 0 if failed == 3 else 1


def test_a_disk_that_takes_nothing_is_an_error_at_once(tmp_path: Path) -> None:
    del tmp_path
    with pytest.raises(OSError, match="No space left"):
        JsonLines(Path("/dev/full"), HEADER)


def test_a_closed_record_writes_into_no_other_file(tmp_path: Path) -> None:
    """The system gives the number of a closed file to the next one that is opened, such as a database."""
    lines = JsonLines(tmp_path / "a.jsonl", HEADER)
    number = lines._fd
    lines.close()
    other = os.open(tmp_path / "other.db", os.O_CREAT | os.O_RDWR)
    assert other == number
    with pytest.raises(OSError, match="the record is closed"):
        lines.append({"body": "astray"})
    lines.close()  # nor does it close the other file
    assert os.read(other, 100) == b""
    os.close(other)


def test_a_record_is_for_its_owner_only(tmp_path: Path) -> None:
    append(tmp_path / "a.jsonl", 1)
    assert (tmp_path / "a.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_fork_may_not_write(tmp_path: Path) -> None:
    """It can outlive the owner of the record, and would write beside the next one."""
    lines = JsonLines(tmp_path / "t.jsonl", {"schema": "x/1"})
    before = (tmp_path / "t.jsonl").read_bytes()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            lines.append({"kind": "late"})
        except OSError:
            code = 7
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert (tmp_path / "t.jsonl").read_bytes() == before
    lines.append({"kind": "own"})
    lines.close()
