"""The sandbox that sessions have where bubblewrap works: the workspace, programs, and nothing else of the machine.

A child finds its workspace at /workspace, the system's programs read-only, an empty /tmp and its own processes. It
finds no home, no service's socket, no right to change any of this, and without a network nobody to talk to.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from functools import cache
from typing import Annotated, Final

from pydantic import BeforeValidator

from geode.tools.environment import CommandEnvironment
from geode.tools.process import child_environment, child_path
from geode.tools.workspace import MODEL_ROOT

FORM: Final = "bubblewrap/1"
"""Names what a child finds in it, for records of what was measured there. What changes that, changes this."""

_TRIED_FOR_S = 10.0
_START_LIMIT_S = 30.0
_PROGRAM = "bwrap"
_PROGRAMS_LIE_IN = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
# Not all of /etc: the rest of it may hold passwords, and keys of this machine.
_OF_ETC = (
    *("alternatives", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "passwd"),
    *("ca-certificates", "host.conf", "hosts", "nsswitch.conf", "pki", "protocols", "resolv.conf", "services", "ssl"),
)


class SandboxUse(StrEnum):
    """Whether what a session executes runs in the sandbox. `AUTO`: where it works. `REQUIRE`: nowhere else."""

    OFF = "off"
    AUTO = "auto"
    REQUIRE = "require"


SandboxChoice = Annotated[SandboxUse, BeforeValidator(lambda said: SandboxUse.OFF if said is False else said)]
"""A `SandboxUse` in a file: to YAML, a plain `off` is false."""


def bubblewrap(*, network: bool, task: bool = False) -> CommandEnvironment:
    """Return the sandbox. With `network` a child has ours.

    With `task` it is for a verifier's child, which finds its task at /task, and what this Python has installed.
    """
    seen = [*_PROGRAMS_LIE_IN, *(f"/etc/{name}" for name in _OF_ETC)]
    if task or os.path.join(sys.base_prefix, "bin") in child_path().split(":"):
        seen += dict.fromkeys((sys.base_prefix, sys.prefix) if task else (sys.base_prefix,))
    return CommandEnvironment(
        command=(
            # Started by root it would keep every capability, and with it the right to undo all that follows.
            *(_PROGRAM, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"),
            *(("--share-net",) if network else ()),
            *("--tmpfs", "/tmp", "--dir", "/var/tmp", "--dir", "/run"),  # noqa: S108  (the child's own; a Python may be installed below it)
            *(part for place in seen for part in ("--ro-bind-try", place, place)),
            # The kernel's settings are writable for root, capabilities or not, and bwrap does not cover them.
            *("--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys", "--dev", "/dev"),
            *(("--ro-bind", "{task}", "/task") if task else ()),
            *("--bind", "{workspace}", MODEL_ROOT),
        ),
        start_limit_s=_START_LIMIT_S,
    )


@cache
def why_no_sandbox() -> str:
    """Return why the sandbox does not work on this machine, or nothing. It is tried once a process."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return f"there is no program {_PROGRAM!r} on the PATH; install bubblewrap"
    with tempfile.TemporaryDirectory(prefix="geode-probe-") as folder:
        command = [part.replace("{workspace}", folder) for part in bubblewrap(network=False).command[1:]]
        try:
            tried = subprocess.run(  # noqa: S603  (the program that is asked about)
                (program, *command, "/bin/sh", "-c", f": > {MODEL_ROOT}/made"),
                env=child_environment(folder, child_path()),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TRIED_FOR_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{_PROGRAM} does not start: {error}"
        if tried.returncode or not os.path.exists(os.path.join(folder, "made")):
            return f"{_PROGRAM} does not work here: {tried.stderr.decode(errors='replace').strip()[-300:]}"
    return ""
