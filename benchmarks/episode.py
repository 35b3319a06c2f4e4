"""What an episode of the suite `workspace` costs: real loop, tools, records and verifier, without the sinks.

Figures are CPU time as `episode.json` holds it, children included. The limit is 40 ms in the median.

    python benchmarks/episode.py [--repeats 10]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

LIMIT_MS = 40
GEODE = str(Path(sys.executable).with_name("geode"))


def main() -> None:
    """Run one cell and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="geode-bench-") as root:
        command = [GEODE, "run", "--root", root, "name=bench", f"repeats={repeats}", "tracking=none"]
        subprocess.run(command, check=True, capture_output=True)
        records = [json.loads(path.read_text()) for path in Path(root).glob("episodes/*/*/episode.json")]
        stored = [
            sum(f.stat().st_size for f in path.parent.iterdir())
            for path in Path(root).glob("episodes/*/*/episode.json")
        ]
    cpu: dict[str, list[float]] = defaultdict(list)
    for record in records:
        cpu[record["task_id"]].append(record["cpu_s"] * 1000)
    for task, figures in sorted(cpu.items()):
        print(f"  {task:15} median {statistics.median(figures):6.1f} ms")
    every = [figure for figures in cpu.values() for figure in figures]
    median = statistics.median(every)
    print(f"{len(every)} episodes: median {median:.1f} ms, {median / LIMIT_MS:.2f} of the limit of {LIMIT_MS} ms")
    print(f"mean {statistics.mean(every):.1f} ms, folder {statistics.median(stored) / 1024:.0f} KiB in the median")


if __name__ == "__main__":
    main()
