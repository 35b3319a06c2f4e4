"""Where the children of a session run: in the workspace's own folder, or behind a sandbox command of the user's.

Whatever executes goes through an `Environment`. Tools that only read and write files work on the folder itself, which a
sandbox has to bind. A child announces itself by a mark, which is drawn for it and written by a shell in the sandbox:
without the mark the sandbox has failed, and nothing of the child ran; after it every end is the child's own, whatever
its exit code, because a child could otherwise pass its own failure off as one of the sandbox.
"""

import asyncio
import os
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from geode.tools.output import Capture, without_controls
from geode.tools.process import Finished, Opening, child_environment, child_path, private_home, run_at_home, run_child
from geode.tools.spec import ToolFailed
from geode.tools.workspace import MODEL_ROOT

STOP_LIMIT_S = 5.0
_PROBE_LIMIT_S = 10.0
_STARTS_MAX = 3  # one, a second one if that failed, and a probe in between
_SHOWN_CHARS_MAX = 300
_PLACEHOLDERS: Final = ("workspace", "task", "home", "name", "user")
# `${X}` is a shell's own.
_PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")
# $1 workspace, $2 the private HOME on the host, which a sandbox need not have, $3 the mark.
_BEGIN = (
    '[ -w "$2" ] && HOME=$2 TMPDIR=$2; [ -w "${TMPDIR:-/none}" ] || TMPDIR=/tmp;'
    ' [ -w "${HOME:-/none}" ] || HOME=$TMPDIR;'
    ' export HOME TMPDIR; cd "$1" || exit; printf "%s\\n" "$3"; shift 3; exec "$@"'
)
_PROBE = 'cat from_outside && cat "$1/from_outside" >/dev/null && : >from_inside'


class NotStarted(ToolFailed):
    """Nothing of the child ran, and it is the child or its workspace that cannot be used."""


class EnvironmentBroken(ToolFailed):
    """Nothing of the child ran, because nothing runs in this environment at all."""


class Environment(Protocol):
    """Where children run. Used by tools for a session, and by verifiers that are commands."""

    @property
    def definition(self) -> "CommandEnvironment | None":
        """What it can be made from again; None for the local folder."""
        ...

    @property
    def overhead_s(self) -> float:
        """The longest that starting and stopping can take beyond a child's own time limit."""
        ...

    def workspace_path(self, workspace: Path) -> str:
        """The path as which a child knows the folder `workspace`."""
        ...

    def task_path(self, task: Path) -> str:
        """The path as which a child that is given the folder `task` knows it."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_s: float,
        capture: Capture,
        path: str | None = None,
        task: Path | None = None,
    ) -> Finished:
        """Run `argv` in `workspace` until it ends or its time is up, and leave nothing of it running.

        `path` is the PATH to offer; only the child of a verifier is given the folder `task`.

        Raises:
            NotStarted: if it cannot be started here, and others can.
            EnvironmentBroken: if nothing can be started.
        """
        ...


class LocalEnvironment:
    """Children run on this machine, in the workspace's own folder."""

    definition: None = None
    overhead_s: float = 0.0

    def workspace_path(self, workspace: Path) -> str:
        """See `Environment`."""
        return str(workspace)

    def task_path(self, task: Path) -> str:
        """See `Environment`."""
        return str(task)

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_s: float,
        capture: Capture,
        path: str | None = None,
        task: Path | None = None,
    ) -> Finished:
        """See `Environment`."""
        try:
            return await run_child(
                argv, folder=workspace, path=path or child_path(), timeout_s=timeout_s, capture=capture
            )
        except OSError as error:
            raise NotStarted(f"the command could not be started: {error.strerror}") from error


LOCAL: Final[Environment] = LocalEnvironment()


class CommandEnvironment(BaseModel):
    """Children run behind a command of the user's, such as bwrap or `docker run`, whose last argument they follow.

    In `command` and `stop` these stand for: `{workspace}` the workspace's folder; `{task}` the task's folder when its
    verifier runs, and an empty one at all other times, since the solution lies in it; `{home}` an empty scratch folder;
    `{name}` a name that is drawn for the child; `{user}` the numbers of user and group, as `1000:1000`.

    Attributes:
        command: what the child's own command is put behind: a list, or one text that is split as a shell would. Found
            on our PATH, run with a clean environment.
        workspace: where a child finds its workspace.
        task: where the child of a verifier finds its task.
        stop: what ends a child that is not ended with its process group, as `docker rm -f {name}`. It is run if the
            child did not end by itself.
        start_limit_s: how long the sandbox may take until the child begins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    workspace: str = MODEL_ROOT
    task: str = "/task"
    stop: tuple[str, ...] = ()
    start_limit_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0

    @field_validator("command", "stop", mode="before")
    @classmethod
    def _splits(cls, argv: object) -> object:
        return tuple(shlex.split(argv)) if isinstance(argv, str) else argv

    @field_validator("command", "stop")
    @classmethod
    def _knows_placeholders(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        for name in (name for part in argv for name in _PLACEHOLDER.findall(part)):
            if name not in _PLACEHOLDERS:
                near = get_close_matches(name, _PLACEHOLDERS, n=1)
                known = ", ".join(f"{{{known}}}" for known in _PLACEHOLDERS)
                hint = f"did you mean '{{{near[0]}}}'?" if near else f"there are {known}"
                raise ValueError(f"there is no placeholder '{{{name}}}'; {hint}")
        return argv

    @field_validator("workspace", "task")
    @classmethod
    def _is_a_path(cls, path: str, info: ValidationInfo) -> str:
        if not path.startswith("/") and path != f"{{{info.field_name}}}":
            raise ValueError(f"{path!r} is no path inside the sandbox; it begins with /, or is '{{{info.field_name}}}'")
        return path

    @model_validator(mode="after")
    def _binds_the_workspace(self) -> Self:
        if not self.names("workspace") and self.workspace != "{workspace}":
            raise ValueError(
                f"the command says nowhere what {self.workspace} is: bind '{{workspace}}' there, or say with"
                " 'workspace: \"{workspace}\"' that the sandbox has the folder at its own path"
            )
        return self

    @property
    def definition(self) -> "CommandEnvironment":
        """See `Environment`."""
        return self

    @property
    def overhead_s(self) -> float:
        """See `Environment`."""
        return _STARTS_MAX * (self.start_limit_s + STOP_LIMIT_S) + _PROBE_LIMIT_S

    def names(self, placeholder: str) -> bool:
        """Whether the command uses the placeholder."""
        return any(f"{{{placeholder}}}" in part for part in self.command)

    def workspace_path(self, workspace: Path) -> str:
        """See `Environment`."""
        return str(workspace) if self.workspace == "{workspace}" else self.workspace

    def task_path(self, task: Path) -> str:
        """See `Environment`."""
        return str(task) if self.task == "{task}" else self.task

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_s: float,
        capture: Capture,
        path: str | None = None,
        task: Path | None = None,
    ) -> Finished:
        """See `Environment`. What did not begin is tried once more if others do: the trouble may have passed."""
        once = partial(
            self._run_once,
            argv,
            workspace=workspace,
            timeout_s=timeout_s,
            capture=capture,
            path=path or child_path(),
            task=task,
        )
        try:
            return await once()
        except _NotBegun as failure:
            if problem := await self.problem():
                raise EnvironmentBroken(problem) from failure
        try:
            return await once()
        except _NotBegun as failure:
            raise NotStarted(f"the command could not be started: {failure}") from failure

    async def problem(self, near: Path | None = None) -> str:
        """Return why nothing runs here, or nothing; tried with a small command in a new folder below `near`."""
        with tempfile.TemporaryDirectory(prefix="geode-probe-", dir=near) as name:
            folder, token, capture = Path(name), secrets.token_hex(8), Capture()
            (folder / "from_outside").write_text(token, encoding="ascii")
            argv = ("/bin/sh", "-c", _PROBE, "sh", self.task_path(folder) if self.names("task") else ".")
            try:
                finished = await self._run_once(
                    argv, workspace=folder, timeout_s=_PROBE_LIMIT_S, capture=capture, path=child_path(), task=folder
                )
            except _NotBegun as failure:
                return str(failure)
            if finished.exit_code == 0 and token in capture.text() and (folder / "from_inside").exists():
                return ""
            if finished.exit_code is None:
                return f"{self.command[0]} starts, but a small command in it did not end within {_PROBE_LIMIT_S:g} s"
            return (
                f"{self.command[0]} starts, but in it {self.workspace} is not the folder {{workspace}}, or cannot be"
                f" written ({_shown(capture.text(), {str(folder): '{workspace}'})}); bind it there, or say with"
                " 'workspace' where it is"
            )

    async def _run_once(
        self,
        argv: Sequence[str],
        *,
        workspace: Path,
        timeout_s: float,
        capture: Capture,
        path: str,
        task: Path | None,
    ) -> Finished:
        """Run it, or raise `_NotBegun`."""
        program = shutil.which(self.command[0])
        if program is None:
            raise _NotBegun(
                f"there is no program {self.command[0]!r} on the PATH; install it, or name another in 'command'"
            )
        with private_home() as home, private_home() as nothing:
            mark = f"geode-{secrets.token_hex(8)}"
            places = {
                "workspace": str(workspace),
                "task": str(task or nothing),
                "home": home,
                "name": mark,
                "user": f"{os.getuid()}:{os.getgid()}",
            }
            begin = ("/bin/sh", "-c", _BEGIN, "sh", self.workspace_path(workspace), home, mark)
            opening = Opening(mark=f"{mark}\n".encode(), limit_s=self.start_limit_s)
            ended_itself = False
            try:
                finished = await run_at_home(
                    (program, *_filled(self.command[1:], places), *begin, *argv),
                    home=home,
                    folder=workspace,
                    path=path,
                    timeout_s=timeout_s,
                    capture=capture,
                    opening=opening,
                )
                ended_itself = finished.exit_code is not None and finished.exit_code >= 0
            except OSError as error:
                raise _NotBegun(f"{self.command[0]}: {error.strerror}") from error
            finally:
                if self.stop and not ended_itself:
                    await _stopped(_filled(self.stop, places), child_environment(home, child_path()))
        if finished.started:
            return finished
        said = _shown(opening.said.decode(errors="replace"), {path: f"{{{name}}}" for name, path in places.items()})
        if finished.exit_code is None:
            raise _NotBegun(f"{self.command[0]} began nothing within {self.start_limit_s:g} s ({said})")
        raise _NotBegun(f"{self.command[0]} ended with exit code {finished.exit_code} before anything began ({said})")


class _NotBegun(Exception):  # noqa: N818  (it is what happened)
    """The mark of a child never came."""


def _shown(text: str, hidden: Mapping[str, str]) -> str:
    for found, shown in hidden.items():
        text = text.replace(found, shown)
    return without_controls(text).strip()[-_SHOWN_CHARS_MAX:] or "no output"


def _filled(argv: Sequence[str], places: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_PLACEHOLDER.sub(lambda found: places[found[1]], part) for part in argv)


async def _stopped(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run the stop command to its end, in a thread that ends it also when this task is cancelled meanwhile."""

    def stop() -> None:
        program = shutil.which(argv[0]) or argv[0]
        # What it says is of no use: the child may have ended in between, and then there is nothing to stop.
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603  (the user's own command)
                (program, *argv[1:]),
                env=environment,
                timeout=STOP_LIMIT_S,
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
            )

    await asyncio.get_running_loop().run_in_executor(None, stop)
