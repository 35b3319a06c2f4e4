"""Verifiers that never end, or end everything: each costs its own look, and neither the loop nor the next one."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.suite import Outcome, OutcomeKind, VerifierBroke
from experiments.suites.loader import load_suite
from experiments.suites.verifier_runner import VerifierRunner
from experiments.suites.verify_file import FileVerifier, load_verifier
from tests.tools.test_process import has_ended, pid_in

PASSED = Outcome(kind=OutcomeKind.PASS, score=1.0)
HEAD = "from experiments.suite import Outcome, OutcomeKind\nimport os, re, signal, sys, time\ndef verify(workspace):\n"
FINE = "return Outcome(kind=OutcomeKind.PASS, score=1.0)"
# It is found only by trying every way to share the letters out, inside one call that lets no other thread run.
HELD = "re.match(r'(a+)+$', 40 * 'a' + 'b')"


@pytest.fixture
def runner() -> Iterator[VerifierRunner]:
    runner = VerifierRunner()
    yield runner
    runner.close()


def verifier(folder: Path, body: str, time_limit_s: float = 30) -> FileVerifier:
    """A verifier whose function does `body`."""
    folder.mkdir(exist_ok=True)
    path = folder / f"verify_{len(list(folder.iterdir()))}.py"
    path.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "))
    return load_verifier(path, f"geode_test_{folder.name}_{path.stem}", time_limit_s)


def process_of(runner: VerifierRunner) -> int:
    assert runner._child is not None
    return runner._child.pid


async def test_it_says_what_the_verifier_says_here(runner: VerifierRunner, tmp_path: Path) -> None:
    """All shipped tasks: the process is another one, the outcome and its reasons are not."""
    for task in load_suite("workspace").tasks:
        assert await runner.outcome(task.verify, task.fixtures) == task.verify(task.fixtures)
    said = "return Outcome(kind=OutcomeKind.FAIL, score=0.25, reasons=('한 🍸', 100_000 * 'x'))"
    outcome = await runner.outcome(verifier(tmp_path, said), tmp_path)
    assert (outcome.kind, outcome.score, outcome.reasons) == (OutcomeKind.FAIL, 0.25, ("한 🍸", 100_000 * "x"))


ENDLESS = {
    "a loop": "while True: pass",
    "a regular expression": HELD,
    "a wait": "time.sleep(600)",
    "a loop that catches everything": "while True:\n    try: time.sleep(600)\n    except BaseException: pass",
    "deaf to SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
}


@pytest.mark.slow
@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS.keys())
async def test_one_that_never_ends_is_ended_and_the_loop_stays_alive(
    runner: VerifierRunner, tmp_path: Path, body: str
) -> None:
    """An interrupt is seen by the loop, so nothing may hold it; and the next episode is judged as if nothing were."""
    await runner.outcome(verifier(tmp_path, FINE), tmp_path)
    stuck, pid, began = verifier(tmp_path, body, 0.4), process_of(runner), time.monotonic()
    look, ticks = asyncio.create_task(runner.outcome(stuck, tmp_path)), 0
    while not look.done():
        await asyncio.sleep(0.02)
        ticks += 1
    with pytest.raises(VerifierBroke, match=r"^it did not end within 0\.4 s$"):
        await look
    assert time.monotonic() - began < 5
    assert ticks > 10
    assert await has_ended(pid)
    assert await runner.outcome(verifier(tmp_path, FINE), tmp_path) == PASSED


@pytest.mark.slow
@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_cancellation_acts_at_once(runner: VerifierRunner, tmp_path: Path, body: str) -> None:
    """Ctrl-C must not wait for the time limit of a verifier."""
    await runner.outcome(verifier(tmp_path, FINE), tmp_path)
    pid, began = process_of(runner), time.monotonic()
    look = asyncio.create_task(runner.outcome(verifier(tmp_path, body), tmp_path))
    await asyncio.sleep(0.1)
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert time.monotonic() - began < 3
    assert await has_ended(pid)
    assert await runner.outcome(verifier(tmp_path, FINE), tmp_path) == PASSED


RUNS = """
    from experiments.suites.verifying import run_program
    run_program(("/bin/sh", "-c", "echo $$ > pid; exec sleep 60"), workspace, subject="it", time_limit_s=50)
    """


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_program_that_a_verifier_runs_ends_with_the_look(
    runner: VerifierRunner, tmp_path: Path, cancelled: bool
) -> None:
    """It is in a process group of its own, which only the verifier knows: it gets a moment to end it."""
    look = asyncio.create_task(runner.outcome(verifier(tmp_path / "task", RUNS, 30 if cancelled else 0.5), tmp_path))
    pid = await pid_in(tmp_path / "pid")
    if cancelled:
        look.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else VerifierBroke):
        await look
    assert await has_ended(pid)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("os._exit(3)", r"^it ended its own process \(exit code 3\)$"),
        ("os.kill(os.getpid(), 11)", r"^it ended its own process \(signal 11\)$"),
        ("sys.exit(4)", r"^SystemExit: 4 \(verify_\d+\.py, line 4\)$"),
        ("raise KeyError('x')", r"^KeyError: 'x' \(verify_\d+\.py, line 4\)$"),
        ("raise ValueError('\\ud83c')", r"^ValueError: \ufffd \(verify_"),
        ("return True", r"^it returned True, which is no experiments\.suite\.Outcome$"),
        ("input()", "^EOFError"),
    ],
)
async def test_one_that_breaks_says_how_and_the_next_is_asked_as_usual(
    runner: VerifierRunner, tmp_path: Path, body: str, why: str
) -> None:
    """A script made into a verifier does such things."""
    with pytest.raises(VerifierBroke, match=why):
        await runner.outcome(verifier(tmp_path, body), tmp_path)
    assert await runner.outcome(verifier(tmp_path, FINE), tmp_path) == PASSED


async def test_the_system_s_own_word_arrives(runner: VerifierRunner, tmp_path: Path) -> None:
    """A full disk is no fault of the verifier, and stops the run."""
    with pytest.raises(VerifierBroke) as broke:
        await runner.outcome(verifier(tmp_path, f"raise OSError({errno.ENOSPC}, 'full')"), tmp_path)
    assert broke.value.errno == errno.ENOSPC


async def test_what_a_verifier_prints_is_no_answer(
    runner: VerifierRunner, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes one prints while looking for a mistake; standard output may be read by a program."""
    printing = verifier(tmp_path, f"print('looking'); os.system('echo too'); {FINE}")
    assert await runner.outcome(printing, tmp_path) == PASSED
    runner.close()
    seen = capfd.readouterr()
    assert (seen.out, sorted(seen.err.split())) == ("", ["looking", "too"])


async def test_two_are_asked_one_after_the_other(runner: VerifierRunner, tmp_path: Path) -> None:
    """Verifiers may change folder or keep what they know in their module; each is alone, as it always was."""
    body = f"""
        (workspace / "busy").mkdir()
        time.sleep(0.1)
        (workspace / "busy").rmdir()
        {FINE}
        """
    looks = [runner.outcome(verifier(tmp_path / "task", body), tmp_path) for _ in range(3)]
    assert await asyncio.gather(*looks) == 3 * [PASSED]


async def test_the_very_source_that_was_hashed_is_run(runner: VerifierRunner, tmp_path: Path) -> None:
    """A file that is edited in the middle of a sweep is another task; episodes of this one keep their verifier."""
    fine = verifier(tmp_path, FINE)
    fine.path.write_text("raise RuntimeError\n")
    assert await runner.outcome(fine, tmp_path) == PASSED


async def test_its_cpu_is_told(runner: VerifierRunner, tmp_path: Path) -> None:
    """An episode's record says what it cost, wherever it was spent."""
    busy = verifier(tmp_path, f"began = time.process_time()\nwhile time.process_time() < began + 0.2: pass\n{FINE}")
    await runner.outcome(verifier(tmp_path, FINE), tmp_path)
    before = runner.cpu_s
    await runner.outcome(busy, tmp_path)
    assert runner.cpu_s - before >= 0.19
    runner.close()
    assert runner.cpu_s == 0, "it is counted among the ended children of this process now"


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    """Nobody has to remember to close it."""
    runner = VerifierRunner()
    leaves = verifier(tmp_path, f"import subprocess; subprocess.Popen(['sleep', '60']); {FINE}")
    await runner.outcome(leaves, tmp_path)
    pid = process_of(runner)
    (child,) = children_of(pid)
    del runner
    for left in (pid, child):
        assert await has_ended(left)


def test_it_serves_one_event_loop_after_the_other(runner: VerifierRunner, tmp_path: Path) -> None:
    """`geode suite check` has a short loop for each look."""
    for _ in range(2):
        assert asyncio.run(runner.outcome(verifier(tmp_path, FINE), tmp_path)) == PASSED


async def test_a_process_that_died_meanwhile_is_started_again(runner: VerifierRunner, tmp_path: Path) -> None:
    """Whoever kills it, for its memory for instance, costs no episode."""
    await runner.outcome(verifier(tmp_path, FINE), tmp_path)
    pid = process_of(runner)
    os.kill(pid, signal.SIGKILL)
    assert await has_ended(pid)
    assert await runner.outcome(verifier(tmp_path, FINE), tmp_path) == PASSED


async def test_a_machine_that_starts_no_process_breaks_the_look_only(
    runner: VerifierRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory for another process nothing is known of the agent; the run goes on."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no_python"))
    fine = verifier(tmp_path / "task", FINE)
    runner.start(fine)
    with pytest.raises(VerifierBroke, match=r"its process cannot be started: .*No such file"):
        await runner.outcome(fine, tmp_path)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from experiments.suites.verifier_runner import VerifierRunner
from experiments.suites.verify_file import load_verifier

async def main():
    runner, fine = VerifierRunner(), load_verifier(Path(sys.argv[1]), "geode_test_killed", 30)
    await runner.outcome(fine, Path("."))
    Path("pid").write_text(str(runner._child.pid))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def run_killed(path: Path, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=folder, check=False)


@pytest.mark.slow
async def test_it_does_not_outlive_a_killed_run(tmp_path: Path) -> None:
    """Nobody tells it; it sees its pipe close."""
    run_killed(verifier(tmp_path / "task", FINE).path, tmp_path)
    assert await has_ended(await pid_in(tmp_path / "pid"))


@pytest.mark.slow
def test_an_endless_look_does_not_outlive_a_killed_run_for_long(tmp_path: Path) -> None:
    """It sees no pipe then; its own clock ends it, some time after whoever asked would have."""
    main = "from experiments.suites import verify_file as v; v._ORPHAN_GRACE_S = 0.2; v.serve()"
    asked = verifier(tmp_path / "task", HELD, 0.2).look(tmp_path).model_dump_json()
    done = subprocess.run(
        [sys.executable, "-c", main], input=f"{asked}\n".encode(), capture_output=True, timeout=20, check=False
    )
    assert done.returncode == -signal.SIGALRM
