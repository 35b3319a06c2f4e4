"""Facts of `geode.tools.sandbox`: what a child finds, and what it does not."""

import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from geode.tools.environment import LOCAL, Environment
from geode.tools.output import Capture
from geode.tools.sandbox import bubblewrap, why_no_sandbox
from tests.doubles.sandboxes import needs_bwrap


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    why_no_sandbox.cache_clear()
    yield
    why_no_sandbox.cache_clear()


async def output(environment: Environment, workspace: Path, command: str) -> str:
    capture = Capture()
    await environment.run(("/bin/sh", "-c", command), workspace=workspace, timeout_s=20, capture=capture)
    return capture.text().strip()


@needs_bwrap
async def test_a_child_works_in_its_workspace_with_the_programs_of_the_system(tmp_path: Path) -> None:
    """What it writes there is there for everybody; python, git and awk, which is a link through /etc, run."""
    commands = (
        "pwd; echo made > a.txt; python3 -c 'import ssl; print(42)'; awk 'BEGIN {print 7}'; git init -q; ls .git/HEAD",
        "id -un; cd ~ && echo 1 > b && cat b",
    )
    assert (await output(bubblewrap(network=False), tmp_path, commands[0])).split() == [
        "/workspace",
        "42",
        "7",
        ".git/HEAD",
    ]
    assert (tmp_path / "a.txt").read_text() == "made\n"
    assert (await output(bubblewrap(network=False), tmp_path, commands[1])).endswith("1")


@needs_bwrap
async def test_a_child_finds_nothing_else_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it builds a path: no home, no neighbour of its workspace, no variable of ours, no process of ours."""
    canary = f"zx-{secrets.token_hex(8)}"
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (tmp_path / "key").write_text(canary)
    monkeypatch.setenv("CANARY", canary)
    looks = f"cat {tmp_path}/key ../key /proc/*/environ /proc/*/root/{tmp_path}/key; grep -rs {canary} /etc /tmp /run"
    assert canary in await output(LOCAL, workspace, looks), "outside it is found, so this looks where it lies"
    assert canary not in await output(bubblewrap(network=True), workspace, looks)
    listed = await output(bubblewrap(network=True), workspace, "ls / /var /run /home /root 2>/dev/null")
    assert not {"home", "root", "boot", "srv", "mnt"} & set(listed.split())


@needs_bwrap
@pytest.mark.parametrize("place", ["/usr/x", "/bin/x", "/etc/ssl/x", "/proc/sys/kernel/core_pattern"])
async def test_a_child_cannot_write_what_is_the_systems(tmp_path: Path, place: str) -> None:
    """Nor, where GEODE runs as root, the kernel's settings: root may, without any capability."""
    folder = os.path.dirname(place) if place.endswith("/x") else place
    said = await output(bubblewrap(network=False), tmp_path, f"test -e {folder} && test ! -w {folder} && echo held")
    assert said == "held"


@needs_bwrap
async def test_a_child_has_no_capability(tmp_path: Path) -> None:
    """With those of root it could undo its own walls."""
    said = await output(bubblewrap(network=False), tmp_path, "grep Cap /proc/self/status")
    assert len(said.splitlines()) == 5
    assert {int(line.split()[1], 16) for line in said.splitlines()} == {0}


@needs_bwrap
async def test_only_with_a_network_does_a_child_reach_anybody(tmp_path: Path) -> None:
    """Not even a server of this machine on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        knock = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5); print('in')"
        assert "refused" in await output(bubblewrap(network=False), tmp_path, f'python3 -c "{knock}"')
        assert await output(bubblewrap(network=True), tmp_path, f'python3 -c "{knock}"') == "in"


@needs_bwrap
async def test_only_a_verifier_s_child_finds_its_task(tmp_path: Path) -> None:
    """The solution lies in it."""
    workspace, task = tmp_path / "ws", tmp_path / "task"
    workspace.mkdir()
    task.mkdir()
    (task / "solution").write_text("42")
    for environment, found in ((bubblewrap(network=False, task=True), "42"), (bubblewrap(network=False), "No such")):
        capture = Capture()
        await environment.run(
            ("/bin/cat", f"{environment.task_path(task)}/solution"),
            workspace=workspace,
            timeout_s=20,
            capture=capture,
            task=task,
        )
        assert found in capture.text()


@needs_bwrap
def test_it_works_where_bwrap_does() -> None:
    """As the other tests here find it."""
    assert why_no_sandbox() == ""


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "there is no program 'bwrap' on the PATH; install bubblewrap"),
        ("echo no namespaces >&2; exit 1", "bwrap does not work here: no namespaces"),
        ("exit 0", "bwrap does not work here: "),
    ],
)
def test_why_there_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, told: str
) -> None:
    """One that says that all is well and runs nothing is none either."""
    if script is not None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_no_sandbox() == told
