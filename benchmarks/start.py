"""What it costs to start the command, against an empty Python and the limit of 150 ms.

Figures are CPU time, children included, the median of nine starts after one to warm the caches. Byte code must be
written (PYTHONDONTWRITEBYTECODE unset); without it everything costs two to three times as much.

    python benchmarks/start.py
"""

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

STARTS = 9
LIMIT_MS = 150
GEODE = str(Path(sys.executable).with_name("geode"))
CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "geode --help": [GEODE, "--help"],
    "geode --version": [GEODE, "--version"],
}


def cpu_ms(command: list[str]) -> float:
    """Return the CPU milliseconds of one run of `command`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    """Print the table."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    empty = 0.0
    for name, command in CASES.items():
        cpu_ms(command)
        median = statistics.median(cpu_ms(command) for _ in range(STARTS))
        empty = empty or median
        limit = f"   limit {LIMIT_MS} ms" if name == "geode --help" else ""
        print(f"{name:18} {median:6.0f} ms   {median / empty:5.1f} times an empty Python{limit}")


if __name__ == "__main__":
    main()
