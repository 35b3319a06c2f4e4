"""Done line 5: a sweep whose workers are killed again and again, beside one that nobody disturbs.

`make killed-workers` runs the whole of it, 1,000 episodes with a kill every 5 seconds, and prints the figures.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from experiments.episode import VOLATILE_FIELDS
from experiments.manifest import MANIFEST_FILE
from tests.done.command import start
from tests.doubles.hook_package import install_hooks
from tests.doubles.processes import left_behind, workers_of

NAME = "killed"
TIME_LIMIT_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How large the sweep is, and how often one of its workers is killed. `wait_s` stands for a model's time a call."""

    hooks: tuple[str, ...]
    tasks: tuple[str, ...]
    repeats: int
    wait_s: float
    kill_every_s: float
    workers: int = 2

    @property
    def episodes(self) -> int:
        return len(self.hooks) * len(self.tasks) * self.repeats


WHOLE = Case(
    hooks=("[slow]", "[slow,require_test_run]", "[slow,protect_tests]", "[slow,stop_repeats]", "[slow,require_read]"),
    tasks=("config_port", "csv_totals", "fix_slug", "logs_outage"),
    repeats=50,
    wait_s=0.04,
    kill_every_s=5.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A sweep that has ended."""

    root: Path
    report: dict[str, JsonValue]
    kills: int
    wall_s: float


def sweep(home: Path, case: Case, *, disturbed: bool) -> Swept:
    """Run the sweep to its end: with workers that are killed, or, undisturbed, in one process."""
    root = home / ("disturbed" if disturbed else "undisturbed")
    executor = ("executor=workers", f"executor.workers={case.workers}") if disturbed else ("executor.concurrency=8",)
    began_s, kills, draw = time.monotonic(), 0, random.Random(5)
    process = start(
        home,
        *("sweep", "--root", str(root), "--json", f"name={NAME}", "tracking=none", f"repeats={case.repeats}"),
        *(f"hooks={','.join(case.hooks)}", f"+hooks.slow.seconds={case.wait_s}", *executor),
        f"suite.tasks=[{','.join(case.tasks)}]",
        more={"PYTHONPATH": str(home / "site")},
    )
    while True:
        try:
            out, err = process.communicate(timeout=case.kill_every_s)
            break
        except subprocess.TimeoutExpired:
            assert time.monotonic() - began_s < TIME_LIMIT_S, "it does not come to its end"
            if disturbed and not cut_off_twice(root) and (workers := workers_of(process.pid)):
                os.kill(draw.choice(workers), signal.SIGKILL)
                kills += 1
    assert process.returncode == 0, (out, err)
    return Swept(root=root, report=json.loads(out), kills=kills, wall_s=time.monotonic() - began_s)


def faults(disturbed: Swept, undisturbed: Swept, case: Case) -> Iterator[str]:
    """Say in what the disturbed sweep differs from the undisturbed one, and what it did twice."""
    theirs, ours = records(undisturbed.root), records(disturbed.root)
    if len(theirs) != case.episodes:
        yield f"the undisturbed sweep has {len(theirs)} episodes, not {case.episodes}"
    if ours != theirs:
        different = [key[:12] for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)]
        yield f"{len(different)} records differ, the first of {different[0]}"
    if disturbed.report["ran"] != case.episodes:
        yield f"it says that it ran {disturbed.report['ran']} episodes"
    done = Counter(key for status, key in manifest(disturbed.root) if status in {"done", "failed"})
    if twice := [key for key, times in done.items() if times > 1]:
        yield f"{len(twice)} episodes came to their end twice"
    for key in theirs.keys() & ours.keys():
        effects = receipts(disturbed.root, key)
        if effects != receipts(undisturbed.root, key):
            yield f"the effects of {key[:12]} differ"
        if open_ends := [effect for effect in effects if effect[-1] in {"admitted", "started"}]:
            yield f"{key[:12]} has effects without an end: {open_ends}"
        if len({effect[:4] for effect in effects}) != len(effects):
            yield f"{key[:12]} has an effect twice"
    if left := [*(disturbed.root / "workspaces").iterdir(), *left_behind(disturbed.root.parent, disturbed.root)]:
        yield f"this is left behind: {left}"


def records(root: Path) -> dict[str, dict[str, JsonValue]]:
    """Return every episode's record, without what two runs may differ in."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in root.glob("episodes/*/*/episode.json"))
    return {record["episode_key"]: {k: v for k, v in record.items() if k not in VOLATILE_FIELDS} for record in found}


def receipts(root: Path, key: str) -> list[tuple[object, ...]]:
    """Return the effects of an episode: their keys, what was asked, and how each ended."""
    with closing(sqlite3.connect(f"file:{root}/episodes/{key[:2]}/{key}/effects.db?mode=ro", uri=True)) as database:
        query = "SELECT path, round, call_id, attempt, tool, arguments_hash, state FROM receipts ORDER BY 1, 2, 3, 4"
        return database.execute(query).fetchall()


def manifest(root: Path) -> list[tuple[str, str]]:
    """Return (status, episode) of each line."""
    text = (root / "experiments" / NAME / MANIFEST_FILE).read_text(encoding="utf-8")
    lines = map(json.loads, text.splitlines())
    return [(line["status"], line["episode"]) for line in lines if "episode" in line]


def cut_off_twice(root: Path) -> set[str]:
    """Return the episodes that a third kill would make INVALID, as it should: that is no part of this."""
    cuts = Counter(path.name.partition(".")[0] for path in root.glob("set_aside/*"))
    done = {path.parent.name for path in root.glob("episodes/*/*/episode.json")}
    return {key for key, times in cuts.items() if times > 1} - done


def set_aside(root: Path) -> int:
    """Count the attempts that a kill cut off."""
    return len(list(root.glob("set_aside/*")))


def main(arguments: Sequence[str]) -> int:
    """Run the whole case and print what was seen; with an argument, in that folder, which stays."""
    with tempfile.TemporaryDirectory(prefix="geode-killed-") as folder:
        home = Path(arguments[0]).resolve() if arguments else Path(folder)
        install_hooks(home / "site")
        print(f"{WHOLE.episodes} episodes, {WHOLE.workers} workers, one killed every {WHOLE.kill_every_s:g} s")
        undisturbed = sweep(home, WHOLE, disturbed=False)
        print(f"undisturbed, in one process: {undisturbed.wall_s:.0f} s")
        disturbed = sweep(home, WHOLE, disturbed=True)
        cut = set_aside(disturbed.root)
        print(f"disturbed: {disturbed.wall_s:.0f} s, {disturbed.kills} kills, {cut} attempts cut off and run again")
        found = list(faults(disturbed, undisturbed, WHOLE))
        effects = sum(len(receipts(disturbed.root, key)) for key in records(disturbed.root))
        print(f"{len(records(disturbed.root))} records and {effects} effects compared: {len(found)} faults")
        print("\n".join(found[:20]))
    return 1 if found or disturbed.kills < 5 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
