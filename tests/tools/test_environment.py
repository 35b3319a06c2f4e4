"""Children behind a sandbox command: what they can reach, what is left of them, and whose fault it is if they fail."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from geode.tools import process
from geode.tools.environment import LOCAL, CommandEnvironment, Environment, EnvironmentBroken, NotStarted
from geode.tools.output import Capture
from geode.tools.process import Finished, Opening
from geode.tools.shell import MAX_TIMEOUT_S, shell_tool
from geode.tools.workspace import Workspace
from tests.doubles.sandboxes import BWRAP, bwrap, needs_bwrap, plain, saying
from tests.tools.test_process import has_ended, is_running, pid_in

WORKING = [pytest.param(bwrap(), marks=needs_bwrap, id="bwrap"), pytest.param(plain(), id="plain")]


async def shell(environment: Environment, root: Path, command: str, timeout_s: float = 20) -> str:
    """Call the tool as a model does, without the check of the command's text: a command can build any path."""
    tool = shell_tool(Workspace(root), environment)
    return (await tool.handler({"command": command, "timeout_s": timeout_s})).text


async def run(environment: Environment, folder: Path, command: str, timeout_s: float = 20) -> tuple[Finished, str]:
    capture = Capture()
    argv = ("/bin/sh", "-c", command)
    finished = await environment.run(argv, workspace=folder, timeout_s=timeout_s, capture=capture)
    return finished, capture.text()


@needs_bwrap
async def test_in_a_sandbox_nothing_outside_can_be_read_or_written(root: Path) -> None:
    """The same two commands reach outside without it, so it is the sandbox that stops them."""
    beside = root.parent
    read, write = f"cat {beside}/secret.txt", f"echo bad > {beside}/planted || echo bad > /usr/planted"
    assert await shell(LOCAL, root, read) == "exit code: 0\ncanary"
    assert await shell(LOCAL, root, write) == "exit code: 0\n(no output)"
    (beside / "planted").unlink()
    assert "canary" not in await shell(bwrap(), root, read)
    assert (await shell(bwrap(), root, write)).startswith("exit code: 2\n")
    assert not (beside / "planted").exists()
    assert "planted" not in os.listdir("/usr")


@needs_bwrap
async def test_in_a_sandbox_there_is_no_network_and_no_other_process(root: Path) -> None:
    """What the command of the suite asks for is what the child gets: namespaces of its own."""
    text = await shell(bwrap(), root, "ls /sys/class/net 2>/dev/null; cat /proc/net/dev; ls /proc | grep -c '^[0-9]'")
    assert "eth" not in text
    assert int(text.splitlines()[-1]) < 6


@pytest.mark.parametrize("environment", WORKING)
async def test_the_workspace_has_its_name_and_can_be_written(environment: CommandEnvironment, root: Path) -> None:
    """File tools see what a command wrote, and the model knows one name for the folder everywhere."""
    text = await shell(
        environment, root, "pwd; cat /workspace/README.md; echo new > /workspace/new.txt; ls '/workspace/src'"
    )
    assert text == "exit code: 0\n/workspace\n# Demo\napp.py"
    assert (root / "new.txt").read_text() == "new\n"
    assert await environment.problem() == ""


@needs_bwrap
async def test_a_sandbox_may_have_the_workspace_at_another_place(root: Path) -> None:
    """The name that the model knows is made into the sandbox's, and back."""
    elsewhere = CommandEnvironment(command=(*BWRAP[:-1], "/work"), workspace="/work")
    text = await shell(elsewhere, root, "pwd; cat /workspace/README.md; ls /work")
    assert text == "exit code: 0\n/workspace\n# Demo\nREADME.md\nsrc"
    assert await elsewhere.problem() == ""


@needs_bwrap
async def test_a_link_that_a_command_in_a_sandbox_made_can_be_followed(root: Path) -> None:
    """Its target begins with /workspace, which is the workspace for file tools, too, and never the host's folder."""
    await shell(bwrap(), root, "ln -s /workspace/README.md link; ln -s /workspace/../etc/passwd out; ln -s /etc etc")
    assert Workspace(root).resolve("link") == root / "README.md"
    for outside in ("out", "etc/passwd"):
        with pytest.raises(Exception, match="out of the workspace"):
            Workspace(root).resolve(outside)


@pytest.mark.parametrize("environment", WORKING)
async def test_scratch_folders_are_there_also_where_the_host_has_other_ones(
    environment: CommandEnvironment, root: Path
) -> None:
    """The tool's description promises $TMPDIR."""
    text = await shell(environment, root, 'mktemp >/dev/null && echo x > "$TMPDIR/a" && echo y > ~/b && cat ~/b')
    assert text == "exit code: 0\ny"


@needs_bwrap
async def test_the_private_home_can_be_bound(root: Path) -> None:
    """For a sandbox without a writable /tmp."""
    text = await shell(bwrap("--bind", "{home}", "{home}"), root, "echo $HOME; touch ~/x && ls ~")
    assert text == "exit code: 0\n~\nx"


@pytest.mark.parametrize("environment", WORKING)
async def test_the_host_s_variables_do_not_arrive(
    environment: CommandEnvironment, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40: a sandbox that hands its environment on must have nothing to hand on."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zx-canary")
    assert "canary" not in await shell(environment, root, "env")


@pytest.mark.parametrize("environment", WORKING)
async def test_limits_hold_in_a_sandbox(environment: CommandEnvironment, root: Path) -> None:
    """A30: it forks at once, and what it forks must have them already."""
    for _ in range(5):
        _, text = await run(environment, root, "cat /proc/self/limits")
        limits = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()}
        assert limits["Max core file size"] == "0"
        assert limits["Max file size"] == str(process.MAX_FILE_BYTES)
        assert int(limits["Max processes"]) < 100_000


@pytest.mark.parametrize("environment", WORKING)
async def test_a_flood_is_bounded_and_the_time_limit_kept(environment: CommandEnvironment, root: Path) -> None:
    """R18, R22: as without a sandbox."""
    began = time.monotonic()
    text = await shell(environment, root, "echo first; yes", timeout_s=0.5)
    assert time.monotonic() - began < 5
    assert text.startswith("exit code: none (stopped at its time limit of 0.5 s")
    assert "bytes left out" in text
    assert "first" in text


LEFT_BEHIND = {
    "in the background": "sleep {s} & sleep 0.1",
    "in a session of its own": "setsid sleep {s} & sleep 0.1",
    "twice forked": "setsid sh -c '(exec sleep {s}) >/dev/null 2>&1 </dev/null &'; sleep 0.1",
    "deaf to SIGTERM": "sh -c 'trap \"\" TERM; exec sleep {s}' & sleep 0.1",
}


def runs(seconds: str) -> bool:
    """Whether a `sleep` of so many seconds runs anywhere; a sandbox has process numbers of its own."""
    for pid in Path("/proc").glob("[0-9]*"):
        try:
            if (pid / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode() and is_running(int(pid.name)):
                return True
        except OSError:
            continue
    return False


async def is_over(seconds: str) -> bool:
    for _ in range(100):
        if not runs(seconds):
            return True
        await asyncio.sleep(0.01)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("environment", WORKING)
@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
async def test_nothing_outlives_a_child(environment: CommandEnvironment, root: Path, command: str) -> None:
    """Contract 5.11: however it ended, by itself, by its time limit or by a cancellation."""
    seconds = f"6{time.time_ns() % 10**9}.5"
    command = command.format(s=seconds)
    await run(environment, root, command)
    assert await is_over(seconds)
    await run(environment, root, f"{command}; sleep 60", timeout_s=0.3)
    assert await is_over(seconds)
    task = asyncio.create_task(run(environment, root, f"{command}; echo 1 > ready; sleep 60"))
    await pid_in(root / "ready")
    assert runs(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_over(seconds)


ESCAPES = "setsid env -i sh -c 'echo $$ > pid; exec sleep 60' & sleep 60"


@pytest.mark.slow
async def test_what_escapes_the_process_group_is_ended_by_the_stop_command(root: Path) -> None:
    """A container lives outside of our process group and knows none of our variables; only its engine ends it."""
    await run(plain(), root, ESCAPES, timeout_s=0.5)
    escaped = await pid_in(root / "pid")
    assert is_running(escaped), "without a stop command it runs on"
    os.kill(escaped, 9)
    (root / "pid").unlink()
    stop = ("sh", "-c", 'kill -9 "$(cat "$0/pid")"; echo "$1" >>"$0/stopped"', "{workspace}", "{name}")
    await run(plain(stop=stop), root, ESCAPES, timeout_s=0.5)
    assert await has_ended(await pid_in(root / "pid"))
    (root / "pid").unlink()
    task = asyncio.create_task(run(plain(stop=stop), root, ESCAPES))
    pid = await pid_in(root / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await has_ended(pid)
    names = (root / "stopped").read_text().split()
    assert len(set(names)) == 2
    assert all(name.startswith("geode-") for name in names)


async def test_a_child_that_ended_by_itself_is_not_stopped(root: Path) -> None:
    """Its container is gone already, and each call would cost a second one."""
    await run(plain(stop=("touch", "{workspace}/stopped")), root, "exit 3")
    assert not (root / "stopped").exists()


async def test_a_stop_command_that_hangs_or_is_missing_holds_nobody_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a time limit of its own."""
    monkeypatch.setattr("geode.tools.environment.STOP_LIMIT_S", 0.2)
    for stop in (("sleep", "60"), ("no_such_program",)):
        finished, _ = await run(plain(stop=stop), root, "sleep 60", timeout_s=0.1)
        assert finished.exit_code is None


async def test_the_time_limit_begins_when_the_child_does(root: Path) -> None:
    """A container may take longer to start than the command in it may run."""
    slow = saying('sleep 0.7; exec "$@"')
    finished, text = await run(slow, root, "echo done", timeout_s=0.5)
    assert (finished.exit_code, text) == (0, "done\n")


async def test_what_a_sandbox_says_before_is_not_the_child_s_output(root: Path) -> None:
    """An engine tells that it fetches an image; the model would read it as what its command printed."""
    loud = saying('echo "Pulling from library"; printf "no end of line" >&2; exec "$@"')
    assert await shell(loud, root, "echo out") == "exit code: 0\nout"
    assert await loud.problem() == ""


@pytest.mark.parametrize("code", [1, 125, 126, 127])
@pytest.mark.parametrize("environment", WORKING)
async def test_after_the_mark_every_exit_code_is_the_child_s(
    environment: CommandEnvironment, root: Path, code: int
) -> None:
    """125 to 127 are what engines say of their own failures; an agent must not be able to borrow them."""
    finished, _ = await run(environment, root, f"exit {code}")
    assert finished.exit_code == code


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (plain(("no_such_sandbox",)), "there is no program 'no_such_sandbox' on the PATH; install it, or name another"),
        (saying("echo no space >&2; exit 1"), r"sh ended with exit code 1 before anything began \(no space\)"),
        (saying("exit 0"), r"sh ended with exit code 0 before anything began \(no output\)"),
        (saying("kill -9 $$"), r"sh ended with exit code -9 before anything began"),
        (plain(("/etc/hostname",)), r"there is no program '/etc/hostname'|before anything began"),
        (
            plain(("sh", "-c", "echo waiting; sleep 60", "x"), start_limit_s=0.3),
            r"sh began nothing within 0\.3 s \(waiting\)",
        ),
        pytest.param(
            CommandEnvironment(command=("bwrap", "--ro-bind", "/", "/", "--bind", "{workspace}", "/work_x")),
            r"bwrap ended with exit code 1 before anything began \(bwrap: Can't mkdir /work_x: Read-only file system\)",
            marks=needs_bwrap,
        ),
    ],
)
async def test_a_sandbox_that_starts_nothing_is_broken_and_says_why(
    environment: CommandEnvironment, why: str, root: Path
) -> None:
    """Infrastructure: it says nothing about the agent, and nothing of the command ran."""
    with pytest.raises(EnvironmentBroken, match=why):
        await run(environment, root, "touch ran")
    assert not (root / "ran").exists()


@needs_bwrap
async def test_a_sandbox_without_the_workspace_is_found_before_anything_runs(root: Path) -> None:
    """It starts, and every task would fail in it."""
    empty = CommandEnvironment(command=(*BWRAP[:-3], "--tmpfs", "/workspace", "--ro-bind", "{workspace}", "/other"))
    assert "in it /workspace is not the folder {workspace}, or cannot be written" in await empty.problem()
    read_only = CommandEnvironment(command=(*BWRAP[:-3], "--ro-bind", "{workspace}", "/workspace"))
    assert "cannot be written" in await read_only.problem()
    assert str(root.parent) not in await read_only.problem()


async def test_a_sandbox_that_does_not_end_with_its_command_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call would last until its time limit."""
    monkeypatch.setattr("geode.tools.environment._PROBE_LIMIT_S", 0.5)
    assert "did not end within 0.5 s" in await saying('"$@"; sleep 60').problem()


async def test_a_moment_s_trouble_is_tried_again_and_the_command_runs_once(root: Path) -> None:
    """Nothing of it had begun, so a second try repeats no effect."""
    trouble = saying(f'mkdir "{root}/tried" 2>/dev/null && exit 125; exec "$@"')
    finished, _ = await run(trouble, root, "echo ran >> log")
    assert finished.exit_code == 0
    assert (root / "log").read_text() == "ran\n"


async def test_a_workspace_that_no_sandbox_can_use_is_the_agent_s_doing(root: Path) -> None:
    """If it were infrastructure, an agent could take its failures out of the score by removing its own folder."""
    (root / "README.md").unlink()
    os.rename(root, root.parent / "moved")
    with pytest.raises(NotStarted, match="could not be started: env: No such file or directory"):
        await run(plain(), root, "true")
    refusing = saying(f'[ "$PWD" = "{root.parent}/moved" ] && exit 1; exec "$@"')
    with pytest.raises(NotStarted, match="before anything began"):
        await run(refusing, root.parent / "moved", "true")


GIVEN_THE_TASK = [
    pytest.param(bwrap("--ro-bind", "{task}", "/task"), marks=needs_bwrap, id="bwrap"),
    pytest.param(plain(("env", "TASK_AT={task}", "sh", "-c", 'exec "$@"', "--")), id="plain"),
]


@pytest.mark.parametrize("environment", GIVEN_THE_TASK)
async def test_only_a_verifier_is_given_the_task(environment: CommandEnvironment, root: Path) -> None:
    """The solution lies in it."""
    task = root.parent / "task"
    (task / "solution").mkdir(parents=True)
    _, text = await run(environment, root, 'ls "${TASK_AT:-/task}"')
    assert text == ""
    capture = Capture()
    argv = ("ls", environment.task_path(task))
    await environment.run(argv, workspace=root, timeout_s=20, capture=capture, task=task)
    assert capture.text() == "solution\n"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": ["bwrap", "{worksapce}"]}, r"no placeholder '\{worksapce\}'; did you mean '\{workspace\}'\?"),
        ({"command": ["{x}", "{workspace}"]}, r"no placeholder '\{x\}'; there are \{workspace\}, \{task\}, \{home\}"),
        ({"command": ["bwrap", "{workspace}"], "stop": ["docker", "kill", "{nme}"]}, r"did you mean '\{name\}'\?"),
        ({"command": ["bwrap"]}, r"the command says nowhere what /workspace is: bind '\{workspace\}' there"),
        ({"command": []}, "at least 1 item"),
        ({"command": ["bwrap", "{workspace}"], "workspace": "work"}, r"'work' is no path inside the sandbox"),
        ({"command": ["bwrap", "{workspace}"], "task": "{workspace}"}, r"is no path inside the sandbox"),
        ({"comand": ["bwrap"]}, "comand"),
    ],
)
def test_a_mistake_in_the_definition_is_refused(fields: dict[str, object], message: str) -> None:
    """A placeholder that is passed on as it stands would bind a folder of that name, or fail in the middle of a run."""
    with pytest.raises(ValidationError, match=message):
        CommandEnvironment.model_validate(fields)


async def test_a_shell_s_own_braces_are_left_alone(root: Path) -> None:
    """The command may be a script."""
    own = plain(("sh", "-c", 'X=1; [ "${X}" = 1 ] && exec "$@"', "x", "env", 'SHOWN={"a": {}}'))
    _, text = await run(own, root, 'echo "$SHOWN"')
    assert text == '{"a": {}}\n'


def test_the_tool_has_time_for_a_sandbox_that_starts_slowly(root: Path) -> None:
    """The executor's limit must not be the one that ends a command that is in time."""
    environment = plain(start_limit_s=100)
    assert shell_tool(Workspace(root), environment).timeout_s > MAX_TIMEOUT_S + 3 * 100
    assert shell_tool(Workspace(root)).timeout_s < MAX_TIMEOUT_S + 10


@given(st.binary(max_size=60), st.binary(max_size=60), st.lists(st.integers(1, 20)))
def test_the_mark_is_found_however_the_bytes_arrive(before: bytes, own: bytes, cuts: list[int]) -> None:
    """A pipe cuts where it likes; what comes after the mark is the child's, to the byte."""
    mark = b"geode-0123\n"
    stream, opening, fed = before.replace(mark, b"") + mark + own, Opening(mark=mark, limit_s=1), b""
    for size in cuts:
        fed += opening.split(stream[:size])
        stream = stream[size:]
    fed += opening.split(stream)
    assert (opening.begun, fed) == (True, own)
    assert bytes(opening.said) == before.replace(mark, b"")
