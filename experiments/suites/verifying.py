"""What verifiers share: they look at files, and let nothing that an agent wrote run in this process.

A verifier yields its reasons for a failure, of which `outcome_of` makes the outcome. What the agent left behind may be
missing, huge, a link or a program that never ends: that is a `Fault`, and a failure of the agent. What keeps the
verifier itself from running (no interpreter, no memory) is any other exception, and leaves through `outcome_of`.
"""

import configparser
import contextlib
import csv
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.suite import Outcome, OutcomeKind
from experiments.suites.strict_yaml import parse_yaml
from geode.canonical import canonical_json

ANSWER_BYTES_MAX = 1_000_000
PROGRAM_TIME_LIMIT_S = 10.0
# For the file that takes the program's output, in blocks of 512 bytes; POSIX has this limit in every shell.
_LIMITED = f'ulimit -f {2 * ANSWER_BYTES_MAX // 512}; exec "$@"'
_SHELL = "/bin/sh"


class Fault(Exception):  # noqa: N818  (it is what the verifier found, not what went wrong with it)
    """Something that the agent left behind is not as asked. The text is a reason for a person."""


def outcome_of(reasons: Iterator[str]) -> Outcome:
    """Return PASS if there is no reason against it, else FAIL. A `Fault` ends the look with its text as a reason."""
    found: list[str] = []
    try:
        found.extend(reasons)
    except Fault as fault:
        found.append(str(fault))
    if found:
        return Outcome(kind=OutcomeKind.FAIL, score=0.0, reasons=tuple(found))
    return Outcome(kind=OutcomeKind.PASS, score=1.0)


def altered_files(workspace: Path, fixtures: Path, *, may_change: Iterable[str]) -> Iterator[str]:
    """Yield a reason for each file of `fixtures` that the workspace no longer holds byte for byte.

    Files that the agent added are no damage.
    """
    allowed = {fixtures / name for name in may_change}
    for original in sorted(path for path in fixtures.rglob("*") if path.is_file() and path not in allowed):
        name = original.relative_to(fixtures).as_posix()
        if "__pycache__" in name:
            continue
        if not (workspace / name).exists():
            yield f"{name} is gone"
        elif _bytes_of(workspace, name) != original.read_bytes():
            yield f"{name} was altered"


def answer_text(workspace: Path, name: str) -> str:
    """Return the text of a file that the agent was to write or change.

    Raises:
        Fault: if it is missing, no regular file, larger than `ANSWER_BYTES_MAX`, or not UTF-8.
    """
    try:
        return _bytes_of(workspace, name).decode()
    except UnicodeDecodeError as error:
        raise Fault(f"{name} is not UTF-8: {error}") from error


def answer_csv(workspace: Path, name: str) -> list[list[str]]:
    """Return the rows of a file, empty lines left out; raises like `answer_text`, and for what is no CSV."""
    try:
        return [row for row in csv.reader(answer_text(workspace, name).splitlines(), strict=True) if row]
    except csv.Error as error:
        raise Fault(f"{name} is no CSV: {error}") from error


def answer_ini(workspace: Path, name: str) -> dict[str, dict[str, str]]:
    """Return the sections of a file; raises like `answer_text`, and for what stands twice or is no INI."""
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(answer_text(workspace, name))
    except configparser.Error as error:
        raise Fault(f"{name} is no INI: {error}") from error
    return {section: dict(parser[section]) for section in parser.sections()}


def answer_json(workspace: Path, name: str) -> object:
    """Return the value in a file; raises like `answer_text`, and for what stands twice or is no JSON."""
    try:
        parsed: object = json.loads(answer_text(workspace, name), object_pairs_hook=_without_twins)
    except (ValueError, RecursionError) as error:
        raise Fault(f"{name} is no JSON: {error}") from error
    return parsed


def answer_yaml(workspace: Path, name: str) -> object:
    """Return the value in a file; raises like `answer_text`, and for what stands twice or is no YAML."""
    try:
        return parse_yaml(answer_text(workspace, name))
    except ValueError as error:
        raise Fault(f"{name} is no YAML: {error}") from error


def other_than(wanted: object, found: object, name: str) -> Iterator[str]:
    """Yield a reason if `found` in the file `name` is not `wanted`. True and 1 are two values, as in JSON."""
    try:
        same = canonical_json(found) == canonical_json(wanted)
    except (TypeError, ValueError):
        same = False  # YAML has dates and other values that JSON lacks, and so no wanted value holds one
    if not same:
        yield f"{name} holds {found!r:.300}; asked for is {wanted!r:.300}"


def lost_comments(workspace: Path, fixtures: Path, name: str, *, mark: str) -> Iterator[str]:
    """Yield a reason for each comment of the fixture `name` that no line of the workspace's file ends with.

    A comment begins with `mark`, which must stand nowhere else in the fixture.
    """
    lines = [line.rstrip() for line in answer_text(workspace, name).splitlines()]
    for original in (fixtures / name).read_text(encoding="utf-8").splitlines():
        comment = original[original.index(mark) :].rstrip() if mark in original else ""
        if not any(line.endswith(comment) for line in lines):
            yield f"{name} lost the comment {comment!r}"


def run_program(
    argv: tuple[str, ...], workspace: Path, *, stdin: str = "", subject: str, time_limit_s: float = PROGRAM_TIME_LIMIT_S
) -> str:
    """Return what a program of the agent writes to its standard output, run in the workspace in a process group.

    It has a clean environment, a time limit and a limited output. `argv[0]` is the absolute path of an interpreter of
    ours; `subject` is what the reasons call the program.

    Raises:
        Fault: if it takes too long, writes too much, or ends with an error.
        OSError: if the interpreter cannot be started, which is no failure of the agent.
    """
    if not os.access(argv[0], os.X_OK):
        raise FileNotFoundError(f"the verifier needs {argv[0]!r}, which is not there or cannot be executed; install it")
    # Files, not pipes: a background process that keeps a pipe open would hold us past the time limit.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
        given.write(stdin.encode())
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603  (running what the agent wrote is the point, under limits)
            (_SHELL, "-c", _LIMITED, _SHELL, *argv),
            cwd=workspace,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=given,
            stdout=written,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            exit_code = process.wait(time_limit_s)
        except subprocess.TimeoutExpired as error:
            raise Fault(f"{subject} did not end within {time_limit_s:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        written.seek(0)
        output = written.read(ANSWER_BYTES_MAX + 1)
    if exit_code != 0:
        raise Fault(f"{subject} ended with exit code {exit_code}")
    if len(output) > ANSWER_BYTES_MAX:
        raise Fault(f"{subject} wrote more than {ANSWER_BYTES_MAX} bytes")
    return output.decode(errors="replace")


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError(f"a key stands twice among {[key for key, _ in pairs]!r:.200}")
    return mapping


def _bytes_of(workspace: Path, name: str) -> bytes:
    path = workspace / name
    if path.is_symlink() or not path.is_file():
        raise Fault(f"{name} is not a regular file" if os.path.lexists(path) else f"{name} is missing")
    with path.open("rb") as file:
        content = file.read(ANSWER_BYTES_MAX + 1)
    if len(content) > ANSWER_BYTES_MAX:
        raise Fault(f"{name} is larger than {ANSWER_BYTES_MAX} bytes")
    return content
