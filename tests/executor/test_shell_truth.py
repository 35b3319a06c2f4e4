"""What a real shell runs, beside what was read of the same text before: the reader may leave nothing out.

The programs are scripts that only write down how they were called, on a PATH that has nothing else.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geode.executor.shell.command import read_command
from geode.executor.shell.syntax import Word

PROGRAMS = ("aa", "bb", "cc")
SCRIPT = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" "<end>" >> "$LOG"
"""
PLAIN = st.sampled_from(
    [
        "x",
        "-n",
        "a=1",
        "\\;",
        "#z",
        "z#",
        "{}",
        "{a,b}",
        "*",
        "a\\ b",
        "$x",
        '"$x"',
        "'a b'",
        "';'",
        "'$(aa)'",
        '"#"',
        "\\\n",
        "!",
    ]
)
WORDS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        inner.map(lambda word: f"$(aa {word})"),
        inner.filter(lambda word: "`" not in word and "\\" not in word).map(lambda word: f"`bb {word}`"),
        inner.filter(lambda word: '"' not in word).map(lambda word: f'"a {word}"'),
        st.tuples(st.sampled_from([":-", "-", ":+", "#", "%", ":="]), inner).map(
            lambda made: f"${{x{made[0]}{made[1]}}}"
        ),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=4,
)
REDIRECTIONS = st.sampled_from(["", "", " >f", " 2>&1", " </dev/null", " &>f", " <&-", " >|f", "\n", " # cc x"])
SIMPLE = st.tuples(
    st.sampled_from(["", "", "A=1 ", "x=$(cc) "]), st.sampled_from(PROGRAMS), st.lists(WORDS, max_size=2), REDIRECTIONS
).map(lambda made: f"{made[0]}{' '.join([made[1], *made[2]])}{made[3]}")
HERE = st.tuples(
    st.sampled_from(["E", "'E'", '"E"', "\\E", "E'F'"]),
    st.sampled_from(["hi $x", "$(bb)", "`cc`", "it's", "E x", " E"]),
).map(
    lambda made: (
        f"aa <<{made[0]} | bb\n{made[1]}\n" + made[0].replace("'", "").replace('"', "").replace("\\", "") + "\ncc"
    )
)
COMMANDS = st.recursive(
    SIMPLE | HERE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["; ", " && ", " || ", " | ", " & ", "\n", ";", "|&"]), inner).map("".join),
        inner.map(lambda command: f"( {command}\n)"),
        inner.map(lambda command: f"{{ {command}\n}}"),
        inner.map(lambda command: f"if {command}\nthen {command}\nfi"),
        inner.map(lambda command: f"for i in a b; do {command}\ndone"),
        inner.map(lambda command: f"case x in x) {command}\n;; esac"),
        # A function's name is longer than that of any inside it, so that no damage makes one call itself: two of a
        # few thousand commands did, in a pipe, and filled the machine with shells.
        inner.map(lambda command: f"f{len(command)}() {{ {command}\n}}; f{len(command)}"),
        inner.map(lambda command: f"eval '{command}'" if "'" not in command else command),
    ),
    max_leaves=4,
)
PIECES = st.sampled_from(
    ["'", '"', "\\", "`", "$(", ")", "{", "}", ";", "&", "|", "<", ">", "#", "\n", " ", "$'", "\r", "é", "((", "<<E"]
)
DAMAGE = st.lists(st.tuples(st.integers(0, 80), PIECES), max_size=2)


TIME_LIMIT_S = 5
if not hasattr(os, "waitid"):
    pytest.skip("this system cannot wait without reaping", allow_module_level=True)
ENDED_AND_NOT_REAPED = os.WEXITED | os.WNOHANG | os.WNOWAIT


class Recorder:
    """Runs commands and tells which programs they ran, with which arguments."""

    def __init__(self, folder: Path, shell: Sequence[str]) -> None:
        self._folder, self._shell = folder, shell
        self._runs = 0
        (folder / "bin").mkdir()
        (folder / "work").mkdir()
        for name in PROGRAMS:
            (folder / "bin" / name).write_text(SCRIPT)
            (folder / "bin" / name).chmod(0o755)

    def run(self, command: str) -> list[list[str]]:
        # A program in the background may come late, and must not be taken for one of the next command.
        self._runs += 1
        log = self._folder / f"log-{self._runs}"
        log.write_bytes(b"")
        environment = {"PATH": str(self._folder / "bin"), "LOG": str(log)}
        shell = subprocess.Popen(
            [*self._shell, command],
            env=environment,
            cwd=self._folder / "work",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until = time.monotonic() + TIME_LIMIT_S  # what it ran until then counts
            while os.waitid(os.P_PID, shell.pid, ENDED_AND_NOT_REAPED) is None and time.monotonic() < until:
                time.sleep(0.002)
        finally:
            # Before it is reaped, so that its group's number cannot have passed to somebody else.
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        calls: list[list[str]] = []
        current: list[str] = []
        for part in log.read_bytes().decode("utf-8", "surrogateescape").split("\0"):
            if part == "<end>":
                calls.append(current)
                current = []
            else:
                current.append(part)
        return calls


def fits(words: Sequence[Word], call: Sequence[str]) -> bool:
    """Whether the shell can have made `call` of `words`."""
    if not words:
        return not call
    first, rest = words[0], words[1:]
    if first.text is not None:
        return bool(call) and call[0] == first.text and fits(rest, call[1:])
    if first.many:
        return any(fits(rest, call[count:]) for count in range(len(call) + 1))
    return bool(call) and call[0].startswith(first.start) and fits(rest, call[1:])


@pytest.fixture(scope="module", params=["/bin/sh", "bash --posix"])
def recorder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    program, *options = str(request.param).split()
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"there is no {program} here")
    return Recorder(tmp_path_factory.mktemp("recorder"), [found, *options, "-c"])


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(command=COMMANDS, damage=DAMAGE)
def test_every_program_that_a_shell_runs_was_read_before_with_its_arguments(
    recorder: Recorder, command: str, damage: list[tuple[int, str]]
) -> None:
    """Unless a doubt was raised, each call of a program is one of the commands that were read, word by word."""
    for place, text in damage:
        command = command[:place] + text + command[place:]
    reading = read_command(command)
    if any(doubt.hides for doubt in reading.doubts):
        return
    for call in recorder.run(command):
        assert any(fits(simple.words, call) for simple in reading.commands), (command, call, reading)
