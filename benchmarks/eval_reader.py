"""What it costs to read Inspect logs, against Inspect's own reader on the same files.

The limits: the scores of all logs in one second, everything in a quarter of `inspect_ai.log.read_eval_log`. Inspect is
no dependency of ours; give it a place of its own:

    python -m venv INSPECT && INSPECT/bin/pip install inspect-ai
    python benchmarks/eval_reader.py ../shared/archive/sil --inspect-python INSPECT/bin/python

Figures are the best of three, and the readers take turns, so that a busy machine slows both. "Everything" is every
sample parsed whole, with all messages and attachments; both readers let go of a log before they open the next.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from analysis.importers.inspect_archive import find_logs
from analysis.importers.inspect_eval import EvalLog

_T = TypeVar("_T")
RECORDED = Path(__file__).parents[2] / "shared" / "archive" / "sil"
TURNS = 3
SCORES_LIMIT_S = 1.0
SHARE_LIMIT = 0.25

_INSPECT = """
import json, sys, time
import inspect_ai
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
paths = json.load(sys.stdin)
start = time.perf_counter()
summaries = sum(len(read_eval_log_sample_summaries(path)) for path in paths)
scores_s = time.perf_counter() - start
start = time.perf_counter()
samples = messages = 0
for path in paths:
    log = read_eval_log(path, resolve_attachments="full")
    samples += len(log.samples or [])
    messages += sum(len(sample.messages) for sample in log.samples or [])
print(json.dumps([scores_s, time.perf_counter() - start, summaries, samples, messages, inspect_ai.__version__]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=RECORDED, help="a folder of .eval logs")
    parser.add_argument("--inspect-python", type=Path, help="a Python that has inspect-ai; without it, ours alone")
    arguments = parser.parse_args()
    logs = find_logs(arguments.folder.resolve())
    if not logs:
        print(f"skipped: {arguments.folder} has no .eval log; name a folder that has some")
        return
    print(f"{len(logs)} logs, {sum(log.stat().st_size for log in logs) / 1e6:.1f} MB")

    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(TURNS):
        scores_s, scores = timed(lambda: sum(len(EvalLog.open(log).scores()) for log in logs))
        whole_s, (samples, messages) = timed(lambda: read_everything(logs))
        ours.append((scores_s, whole_s))
        if arguments.inspect_python:
            theirs.append(inspect_turn(arguments.inspect_python, logs, (samples, messages)))
    print(f"{scores} scores, {samples} samples, {messages} messages")
    report(ours, theirs)
    if not theirs:
        print("for Inspect's own figures give --inspect-python; see --help for how to install it")


def report(ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> None:
    our_scores, our_whole = (min(turn[part] for turn in ours) for part in (0, 1))
    line = f"scores:      ours {our_scores:6.2f} s"
    verdict = "within" if our_scores <= SCORES_LIMIT_S else "ABOVE"
    rest = f"{verdict} the limit of {SCORES_LIMIT_S:g} s"
    if not theirs:
        print(f"{line}   {rest}\neverything:  ours {our_whole:6.2f} s")
        return
    their_scores, their_whole = (min(turn[part] for turn in theirs) for part in (0, 1))
    print(f"{line}   Inspect's summaries {their_scores:6.2f} s   {rest}")
    share = our_whole / their_whole
    verdict = "within" if share <= SHARE_LIMIT else "ABOVE"
    print(
        f"everything:  ours {our_whole:6.2f} s   Inspect's full read {their_whole:6.2f} s   "
        f"{share:.3f} of it, {verdict} the limit of {SHARE_LIMIT:g}"
    )


def read_everything(logs: tuple[Path, ...]) -> tuple[int, int]:
    """Return how many samples and messages there are, each parsed, with its attachments."""
    samples = messages = 0
    for log in logs:
        for sample in EvalLog.open(log).samples():
            samples += 1
            messages += len(sample.messages())
    return samples, messages


def inspect_turn(python: Path, logs: tuple[Path, ...], ours: tuple[int, int]) -> tuple[float, float]:
    """Return the seconds of Inspect for summaries and for everything, its import not counted."""
    done = subprocess.run(
        [str(python), "-c", _INSPECT],
        input=json.dumps([str(log) for log in logs]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python} could not read the logs with inspect-ai:\n{done.stderr[-2000:]}")
    scores_s, whole_s, summaries, samples, messages, version = json.loads(done.stdout.splitlines()[-1])
    print(f"inspect_ai {version}: {summaries} summaries {scores_s:.2f} s, everything {whole_s:.2f} s")
    if (samples, messages) != ours:
        print(f"THE READERS DIFFER: ours {ours}, Inspect {(samples, messages)} (samples, messages)")
    return scores_s, whole_s


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
