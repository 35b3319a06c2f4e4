"""The installed `geode` command, as a user runs it: another process, a root and a home of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

GEODE = Path(sys.executable).with_name("geode")
TIME_LIMIT_S = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, JsonValue]:
        body = json.loads(self.out)
        assert isinstance(body, dict)
        return body


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An empty home, no state root of this machine, and nothing that the tests themselves were started with."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "COLUMNS": "140", **(more or {})}


def geode(home: Path, *arguments: str, stdin: str = "", more: Mapping[str, str] | None = None, before: str = "") -> Ran:
    """Run `geode` to its end. `before` is what the shell does first, such as `ulimit -f 40` or `exec <&-`."""
    shell = ["/bin/sh", "-c", f'{before}; exec "$@"', "sh"] if before else []
    done = subprocess.run(
        [*shell, str(GEODE), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        env=environment(home, more),
        cwd=home,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def start(home: Path, *arguments: str, more: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start `geode` in a process group of its own."""
    return subprocess.Popen(
        [str(GEODE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, more),
        cwd=home,
        start_new_session=True,
    )


def end_when(process: "subprocess.Popen[str]", ready: Path, pattern: str, count: int, sent: signal.Signals) -> None:
    """Wait until `count` files match `pattern` below `ready`, then signal the whole group of `process`."""
    deadline = time.monotonic() + TIME_LIMIT_S
    while len(list(ready.glob(pattern))) < count:
        assert process.poll() is None, f"ended before: {process.communicate()}"
        assert time.monotonic() < deadline, f"never saw {count} of {pattern}"
        time.sleep(0.01)
    os.killpg(process.pid, sent)
