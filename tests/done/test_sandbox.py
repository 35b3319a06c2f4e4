"""A suite whose tasks run in a sandbox, and one whose verifier never ends, through the installed command."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.done.command import end_when, environment, geode, start
from tests.doubles.sandboxes import BWRAP, PLAIN, needs_bwrap

pytestmark = pytest.mark.slow

IN_BWRAP = f"  command: {' '.join(BWRAP)} --ro-bind {{task}} /task\n"
IN_PLAIN = f"  command: {[*PLAIN]!r}\n  workspace: '{{workspace}}'\n  task: '{{task}}'\n"
SWEEP = ("sweep", "suite=./boxed", "hooks=[],[require_test_run]", "name=boxed", "tracking=none")


def make(home: Path, declared: str) -> Path:
    """A suite of two tasks: one with verify.py, one with a command. Both know whether their check runs in a sandbox."""
    assert geode(home, "dev", "new", "suite", "boxed").code == 0
    suite = home / "boxed"
    with (suite / "suite.yaml").open("a") as file:
        file.write(f"environment:\n{declared}")
    first, second = suite / "first_task", suite / "second_task"
    second.mkdir()
    for path in [path for path in first.rglob("*") if path.is_file() and path.name != "verify.py"]:
        copy = second / path.relative_to(first)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text().replace("id: first_task", "id: second_task"))
    with (second / "task.yaml").open("a") as file:
        file.write('verify_command: sh "$TASK/judge.sh"\n')
    (second / "judge.sh").write_text(
        f'test ! -e {home}/secret -o -n "$SANDBOX" && cmp -s settings.ini $TASK/solution/settings.ini &&'
        " cmp -s check.sh $TASK/fixtures/check.sh\n"
    )
    (home / "secret").write_text("canary")
    return suite


@pytest.mark.parametrize("declared", [pytest.param(IN_BWRAP, marks=needs_bwrap, id="bwrap"), IN_PLAIN])
def test_a_suite_is_checked_and_swept_in_its_sandbox(tmp_path: Path, declared: str) -> None:
    """Tools and verify_command, in both directions; outside the second task cannot pass."""
    suite = make(tmp_path, declared)
    checked = geode(tmp_path, "suite", "check", "boxed")
    assert checked.code == 0, checked.out + checked.err
    swept = geode(tmp_path, *SWEEP, "repeats=4")
    assert swept.code == 0, swept.out + swept.err
    assert "boxed: 16 episodes run, 0 reused, 16 in all." in swept.out
    (suite / "suite.yaml").write_text((suite / "suite.yaml").read_text().partition("environment:")[0])
    outside = geode(tmp_path, "suite", "check", "boxed")
    assert outside.code == 1
    assert "ok    first_task" in outside.out
    assert "MEND  second_task" in outside.out


def test_a_sandbox_that_is_not_there_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """By the file and the key that name it; a night of INVALID episodes says nothing more."""
    suite = make(tmp_path, "  command: no_such_sandbox {workspace} {task}\n")
    swept = geode(tmp_path, *SWEEP, "repeats=4")
    assert swept.code == 2
    assert (
        f"geode: {suite}/suite.yaml: 'environment.command': there is no program 'no_such_sandbox' on the PATH;"
        " install it, or name another in 'command'\n"
    ) in swept.err
    assert "Traceback" not in swept.err
    assert not list((tmp_path / ".geode").rglob("episode.json"))
    assert not list((tmp_path / ".geode").rglob("experiment.yaml"))


def running(mark: str) -> list[str]:
    """The command lines of living processes that hold `mark`; one that nobody has reaped yet has none."""
    found = []
    for pid in Path("/proc").glob("[0-9]*"):
        try:
            command = (pid / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in command and int(pid.name) != os.getpid():
            found.append(command)
    return found


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("declared", [pytest.param(IN_BWRAP, marks=needs_bwrap, id="bwrap"), IN_PLAIN])
def test_a_killed_sweep_leaves_no_process(tmp_path: Path, declared: str, sent: signal.Signals) -> None:
    """In the middle of a command that has left the process group. What a plain command leaves, kill -9 spares."""
    if declared is IN_PLAIN and sent is signal.SIGKILL:
        pytest.skip("nobody is left to end what a command without a sandbox has started")
    suite = make(tmp_path, declared)
    seconds = f"6{time.time_ns() % 10**9}.5"
    for check in suite.glob("*/fixtures/check.sh"):
        check.write_text(f"touch begun; setsid sleep {seconds} & sleep {seconds}\n{check.read_text()}")
    process = start(tmp_path, *SWEEP, "repeats=4", "hooks=[require_test_run]")
    end_when(process, tmp_path / ".geode" / "workspaces", "*/begun", 1, sent)
    process.communicate(timeout=20)
    deadline = time.monotonic() + 10
    while left := running(f"sleep {seconds}"):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Path]:
    """A suite whose verifier never ends, in a call that sees no signal of another thread."""
    make(tmp_path, IN_PLAIN)
    task = tmp_path / "boxed" / "first_task"
    (task / "verify.py").write_text("import re\ndef verify(workspace):\n    re.match(r'(a+)+$', 40 * 'a' + 'b')\n")
    yield tmp_path
    assert not running(str(task)), "nothing of it is left"


def test_an_endless_verifier_costs_its_episodes_and_not_the_sweep(endless: Path) -> None:
    """They are INVALID and told with the reason; the other task is measured."""
    with (endless / "boxed" / "first_task" / "task.yaml").open("a") as file:
        file.write("verify_time_limit_s: 0.3\n")
    checked = geode(endless, "suite", "check", "boxed")
    assert checked.code == 1
    assert "first_task/fixtures: the verifier broke: it did not end within 0.3 s; every such episode" in checked.out
    swept = geode(endless, *SWEEP, "repeats=3")
    assert "boxed: 12 episodes run, 0 reused, 12 in all." in swept.out
    assert "the verifier broke: it did not end within 0.3 s" in swept.out
    told = [path.read_text() for path in (endless / ".geode").rglob("episode.json")]
    assert sum('"INVALID"' in text for text in told) == 6


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_acts_at_once_in_an_endless_verifier(endless: Path, sent: signal.Signals) -> None:
    """The limit is a minute away; nobody waits for it."""
    process = start(endless, *SWEEP, "repeats=4")
    episodes = endless / ".geode" / "episodes"
    # Its session has ended, and so the verifier looks, once a state says so without an episode.json beside it.
    deadline = time.monotonic() + 60
    while not any(
        '"idle"' in state.read_text() and not (state.parent / "episode.json").exists()
        for state in episodes.glob("*/*/state.json")
    ):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.5)
    began = time.monotonic()
    os.killpg(process.pid, sent)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - began < 10


def test_the_sandbox_of_a_user_is_found_on_the_user_s_path(tmp_path: Path) -> None:
    """What the children of a session see as PATH is fixed; the command in front of them is the user's own."""
    make(tmp_path, IN_PLAIN.replace("'env', '-i'", "'my_box'"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my_box").write_text('#!/bin/sh\nexec env -i "$@"\n')
    (tmp_path / "bin" / "my_box").chmod(0o755)
    path = f"{tmp_path}/bin:{environment(tmp_path)['PATH']}"
    checked = geode(tmp_path, "suite", "check", "boxed", more={"PATH": path})
    assert checked.code == 0, checked.out + checked.err
    assert subprocess.run(["which", "my_box"], capture_output=True, check=False).returncode != 0
