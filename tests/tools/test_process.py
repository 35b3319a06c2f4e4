"""A child and all that it starts ends in time, whatever it tries, and inherits nothing of ours."""

import asyncio
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from geode.tools import process
from geode.tools.output import Capture
from geode.tools.process import Finished, run_child

pytestmark = pytest.mark.slow


async def run(command: str, folder: Path, timeout_s: float = 10.0, capture: Capture | None = None) -> Finished:
    return await run_child(
        ("/bin/sh", "-c", command),
        folder=folder,
        path="/usr/bin:/bin",
        timeout_s=timeout_s,
        capture=capture or Capture(),
    )


def is_running(pid: int) -> bool:
    """Whether a process lives; a zombie that nobody reaped yet has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def pid_in(file: Path) -> int:
    for _ in range(500):
        if text := text_of(file).strip():
            return int(text)
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing wrote its pid to {file.name}")


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def has_ended(pid: int) -> bool:
    """SIGKILL is delivered at once and takes effect a moment later."""
    for _ in range(100):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.01)
    return False


LEFT_BEHIND = {
    "in the background": "sleep 60 & echo $! > pid",
    "in a subshell": "(sleep 60 & echo $! > pid)",
    "deaf to SIGTERM": "(trap '' TERM; echo $$ > x; sh -c 'echo $$ > pid; sleep 60; sleep 60') & sleep 0.1",
    "in a session of its own": "setsid sh -c 'echo $$ > pid; exec sleep 60' & sleep 0.1",
    "twice forked, with nothing open": (
        "setsid sh -c '(echo $$ > pid; exec sleep 60) >/dev/null 2>&1 </dev/null &' ; "
        "setsid sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 & sleep 0.1"
    ),
}


@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
async def test_nothing_outlives_a_command_that_ended(tmp_path: Path, command: str) -> None:
    """Contract 5.11: the whole process group is killed; what left the group is found by its HOME."""
    finished = await run(command, tmp_path)
    assert finished.exit_code == 0
    assert await has_ended(await pid_in(tmp_path / "pid"))


@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
async def test_nothing_outlives_a_command_that_ran_out_of_time(tmp_path: Path, command: str) -> None:
    """R22: control is back within the limit and a second."""
    start = time.monotonic()
    finished = await run(command + "; sleep 60", tmp_path, timeout_s=0.5)
    assert time.monotonic() - start < 1.5 + process.TERM_GRACE_S
    assert finished.exit_code is None
    assert await has_ended(await pid_in(tmp_path / "pid"))


async def test_nothing_outlives_a_cancelled_command(tmp_path: Path) -> None:
    """Contract 5.11, and the caller's cancellation is not swallowed."""
    task = asyncio.create_task(run("sleep 60 & echo $! > pid; trap '' TERM; sleep 60; sleep 60", tmp_path))
    pid = await pid_in(tmp_path / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await has_ended(pid)


async def test_a_second_cancellation_cannot_save_the_child(tmp_path: Path) -> None:
    """A user who presses Ctrl-C twice must not leave a process behind."""
    task = asyncio.create_task(run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", tmp_path))
    pid = await pid_in(tmp_path / "pid")
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await has_ended(pid)


async def test_a_child_may_clean_up_at_its_time_limit(tmp_path: Path) -> None:
    """SIGTERM comes first, SIGKILL after a grace."""
    capture = Capture()
    finished = await run("trap 'echo cleaned; exit 3' TERM; while :; do sleep 0.05; done", tmp_path, 0.3, capture)
    assert finished.exit_code is None
    assert capture.text().endswith("cleaned\n")


async def test_output_until_the_time_limit_is_kept(tmp_path: Path) -> None:
    """R22: without it the model repeats the same loop."""
    capture = Capture()
    await run("for n in 1 2 3; do echo $n; done; sleep 60", tmp_path, 0.5, capture)
    assert capture.text() == "1\n2\n3\n"


async def test_a_flood_is_bounded_while_it_is_read(tmp_path: Path) -> None:
    """R18, A30."""
    capture = Capture()
    await run("yes | head -c 20000000", tmp_path, capture=capture)
    assert capture.total_bytes == 20_000_000
    assert "of 20000000 bytes left out" in capture.text()


async def test_a_fork_bomb_is_over_at_the_time_limit(tmp_path: Path) -> None:
    """A30: no new process escapes a signal to the group; the loop stays free to send it.

    The bomb itself stops at some hundred processes, so that a broken run does not take the machine along.
    """
    start = time.monotonic()
    bomb = "f() { [ $1 = 0 ] && exit; sleep 0.05; f $(($1 - 1)) & f $(($1 - 1)) & sleep 20; }; f 7"
    finished = await run(bomb, tmp_path, timeout_s=0.4)
    assert finished.exit_code is None
    assert time.monotonic() - start < 4
    mark = f"HOME={finished.home}".encode()
    await asyncio.sleep(0.2)
    assert not [pid for pid in os.listdir("/proc") if pid.isdecimal() and is_ours(pid, mark)]


def is_ours(pid: str, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


async def test_limits_are_set_on_the_child(tmp_path: Path) -> None:
    """A30: bounds on processes, file size and core dumps."""
    capture = Capture()
    await run("sleep 0.1; cat /proc/self/limits", tmp_path, capture=capture)
    limits = {line[:26].strip(): line[26:].split()[0] for line in capture.text().splitlines()}
    assert limits["Max core file size"] == "0"
    assert limits["Max file size"] == str(process.MAX_FILE_BYTES)
    assert limits["Max processes"].isdecimal()


async def test_a_child_inherits_five_facts_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40, A19: an allow-list, because a scrub list always forgets one."""
    for name in ("ANTHROPIC_API_KEY", "GEODE_HOME", "SLACK_BOT_TOKEN", "MY_RANDOM_TOKEN", "BASH_ENV", "LD_PRELOAD"):
        monkeypatch.setenv(name, "zx-canary")
    capture = Capture()
    finished = await run("env", tmp_path, capture=capture)
    inherited = dict(line.split("=", 1) for line in capture.text().splitlines())
    assert "canary" not in capture.text()
    assert inherited.keys() - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "HOME", "TMPDIR", "LANG", "TERM", "PYTHONDONTWRITEBYTECODE")
    }
    assert inherited["HOME"] == inherited["TMPDIR"] == finished.home
    assert inherited["PATH"] == "/usr/bin:/bin"


async def test_the_private_home_is_fresh_and_gone_afterwards(tmp_path: Path) -> None:
    """A15: nothing that a call puts there acts in a later one."""
    first = await run("echo 'echo planted' > ~/.profile; mkdir -p ~/a/b", tmp_path)
    capture = Capture()
    second = await run("ls -A ~", tmp_path, capture=capture)
    assert capture.text() == ""
    assert first.home != second.home
    assert not {os.path.basename(home) for home in (first.home, second.home)} & set(os.listdir(tempfile.gettempdir()))


async def test_there_is_no_input(tmp_path: Path) -> None:
    """A program that asks gets the end of the file, not the user's terminal."""
    capture = Capture()
    finished = await run("read x; echo $?; cat", tmp_path, capture=capture)
    assert (finished.exit_code, capture.text()) == (0, "1\n")


async def test_children_run_side_by_side(tmp_path: Path) -> None:
    """One waiting child must not hold up the loop."""
    start = time.monotonic()
    await asyncio.gather(*(run("sleep 0.5", tmp_path) for _ in range(4)))
    assert time.monotonic() - start < 1.8


async def test_no_handle_and_no_zombie_is_left(tmp_path: Path) -> None:
    """A daemon makes thousands of calls."""
    await run("true", tmp_path)
    before, zombies = len(os.listdir("/proc/self/fd")), zombies_of_ours()
    for command, limit in (("true", 5.0), ("exit 3", 5.0), ("kill -9 $$", 5.0), ("sleep 9", 0.05)):
        await run(command, tmp_path, timeout_s=limit)
    with pytest.raises(FileNotFoundError):
        await run("true", tmp_path / "missing")
    assert len(os.listdir("/proc/self/fd")) == before
    assert zombies_of_ours() <= zombies


def zombies_of_ours() -> set[str]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.add(stat.parent.name)
    return found


async def test_it_works_where_the_system_has_no_process_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other systems wait in a thread; ends, limits and codes are the same."""
    monkeypatch.setattr(process, "_process_handle", lambda _: None)
    assert (await run("exit 3", tmp_path)).exit_code == 3
    assert (await run("kill -9 $$", tmp_path)).exit_code == -signal.SIGKILL
    assert (await run("sleep 60 & echo $! > pid; sleep 60", tmp_path, timeout_s=0.3)).exit_code is None
    assert await has_ended(await pid_in(tmp_path / "pid"))
