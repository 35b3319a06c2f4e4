"""Worker processes, through the installed command: what they run is what the local loop runs, and none is missed."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from pydantic import JsonValue

from experiments.episode import VOLATILE_FIELDS
from experiments.manifest import read_manifest
from geode.tools.sandbox import why_no_sandbox
from tests.done.command import geode, start
from tests.doubles.hook_package import install_hooks
from tests.doubles.processes import left_behind, wait_until, workers_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self").exists(), reason="it looks at /proc")]

TASKS = "suite.tasks=[config_port,csv_totals]"
WORKERS = ("executor=workers", "executor.workers=2")
RECORDS = "episodes/*/*/episode.json"
NAP = "sleep 61.5"  # no other test runs just this


@pytest.fixture
def home(tmp_path: Path) -> Path:
    install_hooks(tmp_path / "site")
    return tmp_path


def sweep(home: Path, *arguments: str) -> "subprocess.Popen[str]":
    more = {"PYTHONPATH": str(home / "site"), "SOME_API_KEY": "hunter2hunter2"}
    return start(home, "sweep", "--root", str(home / "root"), "name=mine", "tracking=none", *arguments, more=more)


def result(process: "subprocess.Popen[str]", code: int = 0) -> dict[str, JsonValue]:
    out, err = process.communicate()
    assert process.returncode == code, (out, err)
    body = json.loads(out)
    assert isinstance(body, dict)
    return body


def records(root: Path) -> dict[str, dict[str, JsonValue]]:
    found = (json.loads(path.read_text(encoding="utf-8")) for path in root.glob(RECORDS))
    return {record["episode_key"]: {k: v for k, v in record.items() if k not in VOLATILE_FIELDS} for record in found}


def sleepy_suite(home: Path) -> str:
    """A suite with one task, whose one step is a command of a minute; now and then the agent leaves it out."""
    task = home / "sleepy" / "nap"
    (task / "fixtures").mkdir(parents=True)
    (task / "fixtures" / "bed.txt").write_text("made", encoding="utf-8")
    (home / "sleepy" / "suite.yaml").write_text("schema: geode.suite/1\ndescription: Sleep.\n", encoding="utf-8")
    (task / "task.yaml").write_text(
        "schema: geode.task/1\nid: nap\nfamily: sleep\nprompt: Sleep for a minute.\nverify_command: 'true'\n",
        encoding="utf-8",
    )
    step = f"{{id: nap, kind: change, call: {{tool: shell, arguments: {{command: {NAP}}}}}}}"
    (task / "outline.yaml").write_text(f"steps:\n  - {step}\nanswer: Slept.\n", encoding="utf-8")
    return f"suite={home / 'sleepy'}"


def sleepers(home: Path) -> int:
    return sum(command.startswith(NAP) for command in left_behind(home, home / "root"))


@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_workers_give_what_the_local_loop_gives(home: Path, sandbox: str) -> None:
    """Where an episode runs is no part of it. And what the workers were told of the environment is on no disk."""
    if sandbox == "require" and why_no_sandbox():
        pytest.skip(why_no_sandbox())
    asked = (TASKS, f"suite.sandbox={sandbox}", "hooks=[],[stop_repeats]", "repeats=2", "tracking=none", "--json")
    assert result(sweep(home, *asked, *WORKERS))["ran"] == 8
    assert set(read_manifest(home / "root" / "experiments" / "mine").values()) == {"done"}
    local = geode(home, "sweep", "--root", str(home / "local"), *asked)
    assert local.code == 0, local.err
    assert records(home / "root") == records(home / "local")
    files = [path for path in home.rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_a_killed_worker_costs_one_attempt_and_no_episode(home: Path) -> None:
    """The other slot goes on, and the episode that was lost begins again."""
    process = sweep(home, TASKS, "hooks=[slow]", "repeats=6", *WORKERS, "--json")
    for done in (1, 4, 8):
        wait_until(lambda done=done: len(list((home / "root").glob(RECORDS))) >= done)  # type: ignore[misc]
        wait_until(lambda: len(list((home / "root" / "workspaces").iterdir())) == 2)
        os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    report = result(process)
    assert (report["ran"], report["invalid_reasons"]) == (12, {})
    assert len(records(home / "root")) == 12
    lost = {path.name.split(".")[0] for path in (home / "root" / "set_aside").iterdir()}
    assert 1 <= len(lost) <= 3, "both were at work when one was killed"
    assert lost <= set(records(home / "root"))
    assert list((home / "root" / "workspaces").iterdir()) == []


def test_an_episode_that_kills_its_process_is_given_up_as_invalid(home: Path) -> None:
    """It measured nothing and would go on for ever; the variant beside it is as complete as ever. The sinks take it."""
    process = sweep(home, TASKS, "hooks=[],[deadly]", "repeats=1", *WORKERS, "tracking.sinks=[duckdb]", "--json")
    report = result(process, code=1)
    assert report["invalid_reasons"] == {
        "the process that ran it died 3 times (" + ", ".join(["SIGKILL(-9)"] * 3) + ")": 2
    }
    assert report["sink_problems"] == []
    counts = [of_variant["INVALID"] for of_variant in report["variants"].values()]  # type: ignore[union-attr,index,call-overload]
    assert counts == [0, 2]
    given_up = [record for record in records(home / "root").values() if record["stop_reason"] == "not_run"]
    assert len(given_up) == 2
    again = sweep(home, TASKS, "hooks=[],[deadly]", "repeats=1", *WORKERS, "--json")
    assert result(again, code=1)["ran"] == 0, "it is not paid for again unasked"


@pytest.mark.parametrize(
    ("sent", "to", "code"),
    [
        (signal.SIGINT, os.killpg, 130),
        (signal.SIGTERM, os.kill, 130),
        (signal.SIGTERM, os.killpg, 130),
        (signal.SIGKILL, os.kill, -9),
    ],
    ids=["Ctrl-C", "kill", "kill the group", "kill -9"],
)
def test_no_process_outlives_a_sweep_however_it_ends(home: Path, sent: signal.Signals, to: object, code: int) -> None:
    """A worker has its own life, and so has what a tool started: both end with whoever started them, and soon."""
    process = sweep(home, sleepy_suite(home), "hooks=[]", "repeats=9", *WORKERS)
    wait_until(lambda: sleepers(home) == 2)
    assert callable(to)
    to(process.pid, sent)
    out, err = process.communicate()
    assert process.returncode == code, (out, err)
    wait_until(lambda: left_behind(home, home / "root") == [], limit_s=15)
    assert len(list((home / "root" / "set_aside").iterdir())) == 2
    assert list((home / "root" / "workspaces").iterdir()) == []
    assert "Traceback" not in err


def test_an_interrupt_while_workers_start_is_as_quiet_as_any(home: Path) -> None:
    """Ctrl-C goes to them, too, and finds Python in the middle of an import."""
    process = sweep(home, TASKS, "hooks=[]", "repeats=2", *WORKERS)
    wait_until(lambda: len(workers_of(process.pid)) == 2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    wait_until(lambda: left_behind(home, home / "root") == [], limit_s=15)


def test_a_second_interrupt_waits_for_no_worker_that_hangs(home: Path) -> None:
    """The first gives it ten seconds. Whoever asks twice wants his terminal back."""
    process = sweep(home, TASKS, "hooks=[slow]", "repeats=9", *WORKERS)
    wait_until(lambda: len(list((home / "root").glob("workspaces/*"))) == 2)
    for worker in workers_of(process.pid):
        os.kill(worker, signal.SIGSTOP)
    os.killpg(process.pid, signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    os.killpg(process.pid, signal.SIGINT)
    assert wait_until(lambda: process.poll() is not None) < 6
    assert process.returncode == 130
    assert "Traceback" not in process.communicate()[1]
    wait_until(lambda: left_behind(home, home / "root") == [], limit_s=15)


def test_what_a_tool_of_a_killed_worker_started_is_ended(home: Path) -> None:
    """It would go on in a workspace that is nobody's, beside the second attempt."""
    process = sweep(home, sleepy_suite(home), "hooks=[]", "repeats=9", "executor=workers", "executor.workers=1")
    wait_until(lambda: sleepers(home) == 1)
    (first,) = (home / "root" / "workspaces").iterdir()
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    wait_until(lambda: not first.exists() and sleepers(home) == 1)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    assert sleepers(home) == 0


def test_a_run_goes_on_after_its_parent_was_killed(home: Path) -> None:
    """Nothing is run twice, and nothing is missing."""
    arguments = (TASKS, "hooks=[slow]", "repeats=4", *WORKERS, "--json")
    killed = sweep(home, *arguments)
    wait_until(lambda: len(list((home / "root").glob(RECORDS))) >= 3)
    killed.kill()
    killed.communicate()
    stamps = {path: path.stat().st_mtime_ns for path in (home / "root").glob(RECORDS)}
    report = result(sweep(home, *arguments))
    assert len(records(home / "root")) == 8
    assert int(str(report["ran"])) + int(str(report["found"])) <= 8 - 3
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_a_disk_that_is_full_for_a_worker_stops_the_run(home: Path) -> None:
    """It would fail every other episode, too; what is done is kept, and the same command goes on."""
    command = ("sweep", "--root", str(home / "root"), "name=mine", "tracking=none", TASKS, "hooks=[]", *WORKERS)
    stopped = geode(home, *command, before="ulimit -f 40")  # no file grows beyond 20 KB
    assert stopped.code == 1, stopped.err
    assert f"Stopped: the disk failed at {home}/root/episodes/" in stopped.out
    assert "Traceback" not in stopped.err
    again = geode(home, *command, "--json")
    assert (again.code, len(records(home / "root"))) == (0, 10), again.err


def test_a_task_that_changes_while_its_sweep_runs_stops_it(home: Path) -> None:
    """A worker that starts later would read another task than the one whose hash is on record."""
    suite = sleepy_suite(home)
    outline = home / "sleepy" / "nap" / "outline.yaml"
    outline.write_text(outline.read_text(encoding="utf-8").replace(NAP, "sleep 0.3"), encoding="utf-8")
    process = sweep(home, suite, "hooks=[]", "repeats=200", *WORKERS, "--json")
    wait_until(lambda: len(list((home / "root").glob(RECORDS))) >= 1)
    outline.write_text(outline.read_text(encoding="utf-8").replace("0.3", "0.2"), encoding="utf-8")
    for worker in workers_of(process.pid):
        os.kill(worker, signal.SIGKILL)
    stopped = str(result(process, code=1)["stopped"])
    assert "the task 'nap' was changed while its sweep ran; run the same command again" in stopped
