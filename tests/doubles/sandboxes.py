"""Sandbox commands to test with: a real one where it works, and small ones that need nothing but a shell."""

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from geode.tools.environment import CommandEnvironment

BWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent"),
    *("--ro-bind", "/usr", "/usr", "--ro-bind", "/bin", "/bin", "--ro-bind", "/lib", "/lib"),
    *("--ro-bind-try", "/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
    *("--bind", "{workspace}", "/workspace"),
)
PLAIN = ("env", "-i", "PATH=/usr/bin:/bin", "SANDBOX=1", "sh", "-c", 'exec "$@"', "--")


def bwrap(*more: str) -> CommandEnvironment:
    """A sandbox that shows the workspace and the places of programs, and nothing else."""
    return CommandEnvironment(command=(*BWRAP, *more))


def plain(command: Sequence[str] = PLAIN, stop: Sequence[str] = (), start_limit_s: float = 30) -> CommandEnvironment:
    """A command that is put in front and isolates nothing: the workspace keeps its own path."""
    return CommandEnvironment(
        command=tuple(command),
        workspace="{workspace}",
        task="{task}",
        stop=tuple(stop),
        start_limit_s=start_limit_s,
    )


def saying(script: str) -> CommandEnvironment:
    """A sandbox that is a shell script, and goes on with `exec "$@"` if it is to work."""
    return plain(("sh", "-c", script, "sandbox"))


def _why_no_bwrap() -> str:
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    command = [part.replace("{workspace}", "/usr") for part in BWRAP]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    return f"bwrap does not work here: {tried.stderr.strip()}" if tried.returncode else ""


needs_bwrap = pytest.mark.skipif(bool(WHY_NO_BWRAP := _why_no_bwrap()), reason=WHY_NO_BWRAP)
