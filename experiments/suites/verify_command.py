"""A verifier that is a command: its exit code is the outcome, so that whoever writes a task needs no Python.

0 is PASS. 126 and 127 are what a shell says when a command cannot be run at all: nothing was measured, so the episode
is INVALID. Every other code is FAIL, and so is a command that does not end in time or writes without an end: most often
it runs what the agent left, and the agent must not be able to escape a FAIL by breaking it.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from experiments.suite import Outcome, OutcomeKind, VerifierBroke
from experiments.suites.verifying import ANSWER_BYTES_MAX
from geode.tools.environment import Environment, NotStarted
from geode.tools.output import Capture
from geode.tools.process import child_path

_SHELL = "/bin/sh"
_SCRIPT = (
    f'TASK=$1 LC_ALL=C PYTHONDONTWRITEBYTECODE=1; export TASK LC_ALL PYTHONDONTWRITEBYTECODE; exec {_SHELL} -c "$2"'
)
_NOT_RUN = (126, 127)
_SIGNAL_CODES_FROM = 128
_SHOWN_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandVerifier:
    """Runs `command` by the shell in the final workspace; `$TASK` is the task's own folder.

    It sees a clean environment. The end of what it writes is the reason of a FAIL.
    """

    command: str
    task_folder: Path
    time_limit_s: float
    environment: Environment

    def __call__(self, workspace: Path) -> Outcome:
        """Look at `workspace`, where no event loop runs."""
        return asyncio.run(self.averify(workspace))

    async def averify(self, workspace: Path) -> Outcome:
        """Look at `workspace`.

        Raises:
            VerifierBroke: if the command cannot be run.
            EnvironmentBroken: if its environment starts nothing.
        """
        capture = Capture()
        try:
            finished = await self.environment.run(
                (_SHELL, "-c", _SCRIPT, _SHELL, self.environment.task_path(self.task_folder), self.command),
                workspace=workspace,
                timeout_s=self.time_limit_s,
                capture=capture,
                path=f"{Path(sys.executable).parent}:{child_path()}",
                task=self.task_folder,
            )
        except NotStarted as failure:
            if self.environment.definition is None and os.path.isdir(workspace):  # noqa: ASYNC240  (one look)
                raise VerifierBroke(f"verify_command: {failure}") from failure
            return _failed(f"verify_command: {failure}")  # others can be started: it is what the agent left
        if capture.total_bytes > ANSWER_BYTES_MAX:
            return _failed(f"verify_command wrote more than {ANSWER_BYTES_MAX} bytes")
        if finished.exit_code is None:
            return _failed(f"verify_command did not end within {self.time_limit_s:g} s")
        code = finished.exit_code if finished.exit_code >= 0 else _SIGNAL_CODES_FROM - finished.exit_code
        said = capture.text().replace(str(self.task_folder), "$TASK").strip()[-_SHOWN_CHARS_MAX:]
        if code in _NOT_RUN:
            raise VerifierBroke(
                f"verify_command ended with exit code {code}: it cannot be run ({said or self.command!r})"
            )
        if code == 0:
            return Outcome(kind=OutcomeKind.PASS, score=1.0)
        return _failed(f"verify_command ended with exit code {code}" + (f": {said}" if said else ""))


def _failed(reason: str) -> Outcome:
    return Outcome(kind=OutcomeKind.FAIL, score=0.0, reasons=(reason,))
