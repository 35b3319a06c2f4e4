"""The crash matrix: every point x every fault x seeds, each run judged by what must always be true.

    python -m tests.crash.matrix --seeds 20 --jobs 2        as `make crash SEEDS=20` does

A run is a first life that is broken, and two that go on: the first may be killed once more on its way, the last must
find nothing left to do. Each life is a process of its own, forked from one that has everything imported.
"""

import argparse
import ctypes
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.crash.controls import CONTROLS
from tests.crash.judged import judge, stored_state
from tests.crash.lived import REPORT, Home, fault_act, first_life, next_life, write_report
from tests.crash.points import At, Fault, Point, kill
from tests.crash.script import NOTES
from tests.crash.served import install

LIFE_LIMIT_S = 10.0
_LEFT_BEHIND_S = 2.0
_PR_SET_CHILD_SUBREAPER = 36
# Every point x fault has the server at one seed of five, since a run with it costs twice as much.
SERVED_EVERY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of the matrix. `again` is how many points the going-on passes before it is killed, too; 0 is never.

    `served` says whether the script has the tool of an MCP server.
    """

    point: Point
    fault: Fault
    seed: int
    passing: int
    again: int = 0
    served: bool = False

    @property
    def repairs(self) -> int:
        """How many repairs the judge asks for."""
        return _repairs(self.seed)


@dataclass(slots=True)
class Tally:
    """What was seen of one point and fault."""

    runs: int = 0
    broken_runs: int = 0
    effects: int = 0
    uncertain: int = 0
    broken: list[str] = field(default_factory=list)


Table = dict[tuple[Point, Fault], Tally]


def forked(life: Callable[[], None], limit_s: float = LIFE_LIMIT_S) -> int | None:
    """Run `life` in a fork; return its exit code (negative for a signal), or None if it took too long."""
    child = os.fork()
    if not child:
        code = 70
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            life()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 71
        finally:
            os._exit(code)
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def passings(seed: int, *, served: bool) -> Counter[Point]:
    """Return how often an undisturbed session passes each point."""
    with tempfile.TemporaryDirectory(prefix="geode-crash-") as name:
        home = _new_home(Path(name), served=served)

        def life() -> None:
            at = At()
            first_life(home, seed, _repairs(seed), at)
            (home.path / "passed.json").write_text(json.dumps(at.passed))

        if forked(life) != 0:
            raise AssertionError(f"the undisturbed session of seed {seed} does not come to its end")
        passed = json.loads((home.path / "passed.json").read_text())
        return Counter({Point(point): times for point, times in passed.items()})


def _repairs(seed: int) -> int:
    """How many repairs the judge asks for: one, or without end."""
    return 1 if seed % 2 else 9


def is_served(point: Point, fault: Fault, seed: int) -> bool:
    """Whether the script of this run has the tool of an MCP server: at its own point always, else at some seeds."""
    cell = list(Point).index(point) + list(Fault).index(fault)
    return point is Point.SERVER_CALLED or (seed + cell) % SERVED_EVERY == 0


def cases(seeds: Sequence[int], points: Sequence[Point], faults: Sequence[Fault]) -> Iterator[Case]:
    """Yield every point x fault x seed. Which passing of the point, and whether it dies twice, is the seed's draw."""
    for seed in seeds:
        passed = {served: passings(seed, served=served) for served in (False, True)}
        for point, fault in itertools.product(points, faults):
            served = is_served(point, fault, seed)
            times = passed[served][point]
            if not times:
                raise AssertionError(f"the session of seed {seed} does not come by {point}, so nothing would break it")
            draw = random.Random(f"{seed}/{point}/{fault}")
            again = draw.randint(1, 60) if draw.random() < 0.5 else 0
            yield Case(point=point, fault=fault, seed=seed, passing=draw.randint(1, times), again=again, served=served)


def play(case: Case, sabotage: Callable[[], None] = lambda: None) -> tuple[list[str], int, int]:
    """Play one case; return what of the invariants is broken, and how many effects there were and are uncertain."""
    with tempfile.TemporaryDirectory(prefix="geode-crash-") as name:
        home = _new_home(Path(name), served=case.served)

        def broken() -> None:
            sabotage()
            first_life(home, case.seed, case.repairs, At(case.point, case.passing, fault_act(case.fault, home)))

        def goes_on() -> None:
            sabotage()
            write_report(home, next_life(home, case.seed, case.repairs, At()))

        def dies_again() -> None:
            sabotage()
            left = [case.again]

            class Once(At):
                def __call__(self, point: Point) -> None:
                    super().__call__(point)
                    left[0] -= 1
                    if not left[0]:
                        kill()

            next_life(home, case.seed, case.repairs, Once())

        found = ["the broken life does not end"] if forked(broken) is None else []
        if case.again and forked(dies_again) is None:
            found.append("8: the second life does not end")
        first = _report(home, forked(goes_on))
        before = stored_state(home)
        found += [f"going on: {problem}" for problem in first]
        again = _report(home, forked(goes_on))
        found += [f"8: going on twice: {problem}" for problem in again]
        if stored_state(home) != before:
            found.append("8: going on a second time changes the records")
        invariants, effects, uncertain = judge(home)
        if case.point is Point.SERVER_CALLED and case.fault in (Fault.SIGKILL, Fault.SIGTERM) and not uncertain:
            found.append("3: the server's call that was under way is not listed as uncertain")
        return found + invariants + _left_behind(), effects, uncertain


def _new_home(path: Path, *, served: bool) -> Home:
    home = Home(path=path)
    home.workspace.mkdir()
    home.session.parent.mkdir(parents=True)
    (home.workspace / "notes.txt").write_text(NOTES)
    if served:
        install(home.root, home.path)
    return home


def _report(home: Home, code: int | None) -> list[str]:
    if code is None:
        return [f"8: it takes more than {LIFE_LIMIT_S:g} s"]
    if code != 0:
        return [f"it ends with exit code {code}"]
    report = json.loads((home.path / REPORT).read_text())
    found = [f"4: a request that a provider refuses: {refusal}" for refusal in report["refusals"]]
    if report["problem"]:
        found.append(f"it cannot go on: {report['problem']}")
    return found


def _left_behind() -> list[str]:
    """Wait until every process that the lives started is gone; this one inherits those whose parent died."""
    until = time.monotonic() + _LEFT_BEHIND_S
    while time.monotonic() < until:
        try:
            done, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if not done:
            time.sleep(0.005)
    for child in _children():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return ["7: a process was left behind"]


def _children() -> list[int]:
    own = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in own]


def inherit_orphans() -> None:
    """Let orphans of our children become ours, so that none is missed."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    seeds: Sequence[int], points: Sequence[Point] = tuple(Point), faults: Sequence[Fault] = tuple(Fault)
) -> dict[tuple[Point, Fault], Tally]:
    """Play all cases of these seeds."""
    inherit_orphans()
    tallies: dict[tuple[Point, Fault], Tally] = defaultdict(Tally)
    for case in cases(seeds, points, faults):
        broken, effects, uncertain = play(case)
        tally = tallies[(case.point, case.fault)]
        tally.runs += 1
        tally.broken_runs += bool(broken)
        tally.effects += effects
        tally.uncertain += uncertain
        tally.broken += [f"seed {case.seed}, passing {case.passing}, again {case.again}: {text}" for text in broken]
    return tallies


def caught(name: str, runs_max: int) -> int:
    """Return after how many runs a control was found out by the invariant that it breaks; 0 if it was not."""
    inherit_orphans()
    invariant, sabotage = CONTROLS[name]
    played = itertools.islice(cases(range(1_000), tuple(Point), (Fault.SIGKILL,)), runs_max)
    for times, case in enumerate(played, start=1):
        broken, _, _ = play(case, sabotage)
        if any(f"{invariant}: " in text for text in broken):
            return times
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many; each plays every point with every fault")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the seeds")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    if asked.part:
        json.dump([(*key, asdict(tally)) for key, tally in run(seeds).items()], sys.stdout)
        return 0
    table = _shared(seeds, asked.jobs) if asked.jobs > 1 else run(seeds)
    broken = list(_printed(table))
    blind = [name for name in CONTROLS if not _control(name)]
    return int(bool(broken or blind))


def _shared(seeds: range, jobs: int) -> Table:
    """Share the seeds between processes, each of which minds its own children only."""
    argv = [sys.executable, "-m", "tests.crash.matrix", "--part", "--seeds", "1", "--first-seed"]

    def part(seed: int) -> bytes:
        return subprocess.run([*argv, str(seed)], stdout=subprocess.PIPE, check=True).stdout

    table: Table = defaultdict(Tally)
    with ThreadPoolExecutor(jobs) as pool:
        for output in pool.map(part, seeds):
            for point, fault, body in json.loads(output):
                tally, more = table[(Point(point), Fault(fault))], Tally(**body)
                tally.runs += more.runs
                tally.broken_runs += more.broken_runs
                tally.effects += more.effects
                tally.uncertain += more.uncertain
                tally.broken += more.broken
    return table


def _printed(table: Table) -> Iterator[str]:
    print(f"{'runs that hold / runs, effects listed as uncertain':50}" + "".join(f"{fault:>14}" for fault in Fault))
    for point in Point:
        cells = [table.get((point, fault), Tally()) for fault in Fault]
        shown = (f"{c.runs - c.broken_runs}/{c.runs}, {c.uncertain}" for c in cells)
        print(f"{point:50}" + "".join(f"{cell:>14}" for cell in shown))
    tallies = table.values()
    runs, effects = sum(t.runs for t in tallies), sum(t.effects for t in tallies)
    print(f"{runs} runs, {effects} effects, {sum(t.uncertain for t in tallies)} of them listed as uncertain")
    for (point, fault), tally in table.items():
        for text in tally.broken:
            print(f"BROKEN  {point} x {fault}: {text}")
            yield text


def _control(name: str) -> int:
    times = caught(name, len(Point))
    print(
        f"control of invariant {CONTROLS[name][0]}, {name}: {f'caught after {times} runs' if times else 'NOT CAUGHT'}"
    )
    return times


if __name__ == "__main__":
    sys.exit(main())
