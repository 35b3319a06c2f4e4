"""A verifier that is a Python file, and the other process that it looks from.

It is a suite's own code: it may loop for ever, also inside a regular expression, which lets no thread of its process
run, not even one that would see an interrupt. So the file is executed here once, to see that it can be used, and looks
at workspaces in a process that can be ended. `serve` is all that this process does.
"""

import importlib.abc
import importlib.util
import os
import signal
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from experiments.suite import Outcome, Verifier, VerifierBroke
from geode.redaction import clean_text

READY = b"ready\n"
_SHOWN_CHARS_MAX = 500
_ORPHAN_GRACE_S = 10.0


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Look(_Line):
    """Asks the other process to look: at which workspace, by which file. The file travels as it was hashed."""

    path: str
    source: str
    module_name: str
    time_limit_s: float
    workspace: str


class Seen(_Line):
    """What it answers: an outcome, or why there is none. `cpu_s` is what the process has used since it was started."""

    outcome: Outcome | None = None
    broke: str = ""
    errno: int | None = None
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerifier:
    """The function `verify` of a file. Calling it looks in this process, for as long as that takes."""

    path: Path
    source: bytes = field(repr=False)
    module_name: str
    time_limit_s: float
    function: Verifier = field(repr=False, compare=False)

    def __call__(self, workspace: Path) -> Outcome:
        """Look at `workspace`."""
        return self.function(workspace)

    def look(self, workspace: Path) -> Look:
        """Return the line that asks `serve` to look at `workspace`."""
        return Look(
            path=str(self.path),
            source=self.source.decode("latin-1"),
            module_name=self.module_name,
            time_limit_s=self.time_limit_s,
            workspace=str(workspace),
        )


def load_verifier(path: Path, module_name: str, time_limit_s: float) -> FileVerifier:
    """Execute the file at `path` and return its verifier.

    Raises:
        ValueError: if it cannot be executed, or defines no `verify`. The text names the file and the next step.
    """
    source = path.read_bytes()
    try:
        function = _function_of(path, source, module_name)
    except (Exception, SystemExit) as error:  # whatever a verifier raises on import is that file's fault, and named so
        raise ValueError(f"{path} cannot be loaded ({_told(error)}); run it by itself to see where it fails") from error
    if function is None:
        raise ValueError(f"{path} defines no function verify; add `def verify(workspace: Path) -> Outcome`")
    return FileVerifier(path=path, source=source, module_name=module_name, time_limit_s=time_limit_s, function=function)


def looked(verify: Verifier, workspace: Path) -> Outcome:
    """Return what `verify` says of `workspace`.

    Raises:
        VerifierBroke: if it says nothing, for whatever reason.
    """
    try:
        outcome: object = verify(workspace)
    except (Exception, SystemExit) as error:  # a verifier is a suite's own code, and is named as what broke
        raise VerifierBroke(_told(error), error.errno if isinstance(error, OSError) else None) from error
    if not isinstance(outcome, Outcome):
        raise VerifierBroke(clean_text(f"it returned {outcome!r:.80}, which is no experiments.suite.Outcome"))
    return outcome


def _told(error: BaseException) -> str:
    """Return what a verifier raised, and the last line of its own file on the way there."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    foreign = [place for place in places if place[0] != __file__ and not place[0].startswith("<frozen")]
    own = [line for name, line in foreign if name == foreign[0][0]]
    where = f" ({Path(foreign[0][0]).name}, line {own[-1]})" if own else ""
    return clean_text(f"{type(error).__name__}: {error}")[:_SHOWN_CHARS_MAX] + where


class _HashedSource(importlib.abc.SourceLoader):
    """Runs the very bytes that the task's hash covers: never a cached compilation of what the file once was."""

    def __init__(self, path: Path, source: bytes) -> None:
        self._path, self._source = path, source

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_data(self, path: str | bytes) -> bytes:
        return self._source


def _function_of(path: Path, source: bytes, module_name: str) -> Verifier | None:
    spec = importlib.util.spec_from_file_location(module_name, path, loader=_HashedSource(path, source))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look a module up by its name while it is being executed and later.
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    verify = getattr(module, "verify", None)
    return verify if callable(verify) else None


class _Stopped(BaseException):
    """The near side wants no answer any more. No verifier catches it by accident, and each one cleans up behind it."""


def serve() -> None:
    """Answer one line with one line, until the near side is gone. What verifiers print goes to standard error."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # whoever started us has closed standard error
        os.dup2(nothing, 1)
    signal.signal(signal.SIGTERM, _stop)
    known: dict[str, Verifier] = {}
    try:
        answers.write(READY)
        answers.flush()
        for line in asked:
            answers.write(_seen(Look.model_validate_json(line), known).model_dump_json().encode() + b"\n")
            answers.flush()
    except (_Stopped, BrokenPipeError):
        return


def _stop(*_: object) -> None:
    raise _Stopped


def _seen(look: Look, known: dict[str, Verifier]) -> Seen:
    def verify(workspace: Path) -> Outcome:
        if look.module_name not in known:
            function = _function_of(Path(look.path), look.source.encode("latin-1"), look.module_name)
            assert function is not None, "the near side found one in the same bytes"
            known[look.module_name] = function
        return known[look.module_name](workspace)

    # If the near side was killed, the kernel ends this process.
    signal.setitimer(signal.ITIMER_REAL, look.time_limit_s + _ORPHAN_GRACE_S)
    try:
        outcome = looked(verify, Path(look.workspace))
    except VerifierBroke as broke:
        return Seen(broke=str(broke), errno=broke.errno, cpu_s=_cpu_s())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Seen(outcome=outcome, cpu_s=_cpu_s())


def _cpu_s() -> float:
    return sum(os.times()[:4])
