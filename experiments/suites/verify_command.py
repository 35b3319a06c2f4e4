"""A verifier that is a command: its exit code is the outcome, so that whoever writes a task needs no Python.

0 is PASS. 126 and 127 are what a shell says when a command cannot be run at all: nothing was measured, so the episode
is INVALID. Every other code is FAIL, and so is a command that does not end in time or writes without an end: most often
it runs what the agent left, and the agent must not be able to escape a FAIL by breaking it.
"""

import sys
from pathlib import Path

from experiments.suite import Outcome, Verifier
from experiments.suites.verifying import Fault, outcome_of, run_program
from geode.tools.process import child_path

_SHELL = "/bin/sh"
# The exit code goes last into the output, because `run_program` keeps no output of a program that fails.
_SCRIPT = (
    "PATH=$1 TASK=$2 PYTHONDONTWRITEBYTECODE=1; export PATH TASK PYTHONDONTWRITEBYTECODE;"
    f' {_SHELL} -c "$3" 2>&1; printf "\\n%s" "$?"'
)
_NOT_RUN = (126, 127)
_SHOWN_CHARS_MAX = 300


def command_verifier(command: str, task_folder: Path, time_limit_s: float) -> Verifier:
    """Return a verifier that runs `command` by the shell in the final workspace; `$TASK` is the task's own folder.

    It sees a clean environment. The end of what it writes is the reason of a FAIL.
    """
    path = f"{Path(sys.executable).parent}:{child_path()}"

    def verify(workspace: Path) -> Outcome:
        argv = (_SHELL, "-c", _SCRIPT, _SHELL, path, str(task_folder), command)
        try:
            written = run_program(argv, workspace, subject="verify_command", time_limit_s=time_limit_s)
        except Fault as fault:
            return outcome_of(iter((str(fault),)))
        output, _, code = written.rpartition("\n")
        said = output.replace(str(task_folder), "$TASK").strip()[-_SHOWN_CHARS_MAX:]
        if int(code) in _NOT_RUN:
            raise OSError(f"verify_command ended with exit code {code}: it cannot be run ({said or command!r})")
        if int(code) == 0:
            return outcome_of(iter(()))
        return outcome_of(iter((f"verify_command ended with exit code {code}" + (f": {said}" if said else ""),)))

    return verify
