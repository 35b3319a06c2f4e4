"""What a durable tool round costs: the whole chain of authority, both checkpoint writes, receipts and the timeline.

The tools are trivial and the model answers at once, so what is measured is the host; figures are CPU time.
The floor of the same run is two SQLite commits a round by hand; the best durable peer was measured at 5.6 ms a round
(LangGraph with its SQLite saver, 100 rounds; pydantic-ai with DBOS 11.6, OpenHands with files 6.3, Inspect 26).

Two sessions are measured: that of an experiment, whose calls no rule speaks of, and an attended one with all that can
stand before a call: two policy files with denies, an ask that a stored approval answers and an allow, a middleware that
rewrites each path, a secret to look for, and six hooks of the library.

    python benchmarks/loop.py [--rounds 1000]
"""

import argparse
import asyncio
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from statistics import median

from pydantic import JsonValue

from geode.authority import SafetyLevel
from geode.clock import SystemClock
from geode.config.paths import StateRoot
from geode.config.settings import Settings
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.policy import Mode
from geode.hooks.library import ABLATED
from geode.llm.messages import ModelResponse, StepSnapshot, StopReason, TextBlock, ToolUse
from geode.llm.usage import Usage
from geode.records.database import Durability
from geode.scaffold import HookChoice, LoopLimits, Scaffold, ToolPlan
from geode.serve.services import SharedServices
from geode.tools.environment import LOCAL
from geode.tools.plan import ExtraTools
from geode.tools.spec import Arguments, ResourceClaim, ToolOutput, ToolSpec
from tests.doubles.sessions import open_bench

PEER_MS = 5.6
LIMIT_MS = 1.0
GROWTH_MAX = 1.2
RUNS = 5
FIRST = 9
WINDOW = 20
NUMBERS: Mapping[str, JsonValue] = {"a": {"type": "integer"}, "b": {"type": "integer"}}


HOOKS = (*ABLATED, "refuse_dangerous", "remind_of_errors", "trim_results")
OWN_POLICY = """
schema: geode.policy/1
data_classes:
  secret: ["*.pem", "keys/**"]
rules:
  - deny: "*"
    path: "vault/**"
  - allow: add
    path: "sums/**"
  - ask: book
    path: "ledger/**"
"""
PROJECT_POLICY = """
schema: geode.policy/1
rules:
  - deny: "*"
    host: "*.example.org"
  - ask: "*"
    path: "shared/**"
"""

NextCall = Callable[[int], ToolUse]


def cpu_ms() -> float:
    """CPU time of this process so far."""
    return time.process_time() * 1000


class Counting:
    """Asks for one call a round, for ever, and notes when it is asked."""

    model = "simulated/script"

    def __init__(self, rounds: int, next_call: NextCall, mark: Callable[[], float] = cpu_ms) -> None:
        self.rounds, self.marks = rounds, list[float]()
        self._next_call, self._mark = next_call, mark

    async def acomplete(self, snapshot: StepSnapshot) -> ModelResponse:
        """Answer with the next call."""
        self.marks.append(self._mark())
        n = snapshot.round
        return ModelResponse(
            blocks=(TextBlock(text="done") if n > self.rounds else self._next_call(n),),
            stop=StopReason.END_TURN if n > self.rounds else StopReason.TOOL_USE,
            usage=Usage(uncached_input_tokens=10, output_tokens=5),
            served_model=self.model,
            latency_ms=1,
        )

    @property
    def spent(self) -> list[float]:
        """What each round took, as `mark` counts it."""
        return [after - before for before, after in pairwise(self.marks)]


async def add(arguments: Arguments) -> ToolOutput:
    """Add, and answer in 20 bytes."""
    return ToolOutput(text=f"{int(str(arguments['a'])) + int(str(arguments['b'])):020d}")


def durable_rounds(folder: Path, rounds: int, mark: Callable[[], float] = cpu_ms) -> tuple[list[float], int]:
    """Run one session; return what each round took and the bytes that its folder holds."""
    tool = ToolSpec(
        name="add", description="Add two integers.", input_schema=_schema(NUMBERS), level=SafetyLevel.WRITE, handler=add
    )
    hooks = [factory({}) for factory in ABLATED.values()]
    model = Counting(rounds, lambda n: ToolUse(call_id=f"call_{n}", name="add", arguments=f'{{"a":{n},"b":1}}'), mark)
    bench = open_bench(folder, model, {"add": tool}, hooks=hooks, limits=_limits(rounds), clock=SystemClock())
    asyncio.run(bench.loop.arun("Add for ever."))
    bench.close()
    stored = sum(file.stat().st_size for file in folder.iterdir())
    return model.spent, stored


class Patron:
    """Approves for the session whatever is asked, and counts how often somebody had to be asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def approve(self, request: ApprovalRequest) -> Approval:
        """See `Approver`."""
        del request
        self.asked += 1
        return Approval.SESSION


def guarded_rounds(
    folder: Path, rounds: int, durability: Durability, mark: Callable[[], float] = cpu_ms
) -> tuple[list[float], Patron]:
    """Run an attended session under rules; return what each round took.

    Odd ones are allowed by a rule, even ones are asked about and were approved before.
    """
    workspace, root = folder / "workspace", StateRoot(folder / "root")
    (workspace / ".geode").mkdir(parents=True)
    root.path.mkdir()
    root.policy.write_text(OWN_POLICY)
    (workspace / ".geode" / "policy.yaml").write_text(PROJECT_POLICY)
    settings = Settings(root=root, tracking_uri=None, environment={"SERVICE_TOKEN": "zx-83b1f0c2d94e7a56"})
    model, patron = Counting(rounds, _allowed_or_approved, mark), Patron()
    session = SharedServices(settings).create_session(
        mode=Mode.REPL,
        scaffold=Scaffold(
            tools=ToolPlan(tools=()), hooks=tuple(HookChoice(name=name) for name in HOOKS), limits=_limits(rounds)
        ),
        model=model.model,
        workspace=workspace,
        folder=root.sessions / "bench",
        environment=LOCAL,
        approver=patron,
        adapter=model,
        extra_tools=ExtraTools(specs=_tools()),
        durability=durability,
    )
    try:
        asyncio.run(session.arun("Add for ever."))
    finally:
        session.close()
    return model.spent, patron


def _allowed_or_approved(n: int) -> ToolUse:
    if n % 2:
        arguments = json.dumps({"path": f"/workspace/sums/{n}.txt", "a": n, "b": 1})
        return ToolUse(call_id=f"call_{n}", name="add", arguments=arguments)
    return ToolUse(call_id=f"call_{n}", name="book", arguments='{"path": "/workspace/ledger/book"}')


def _tools() -> tuple[ToolSpec, ...]:
    entries = count()

    async def book(arguments: Arguments) -> ToolOutput:
        del arguments
        return ToolOutput(text=f"entry {next(entries):014d}")

    def claims(arguments: Arguments) -> tuple[ResourceClaim, ...]:
        return (ResourceClaim(resource=f"file:/workspace/{arguments['path']}", exclusive=True),)

    path: Mapping[str, JsonValue] = {"path": {"type": "string", "maxLength": 200}}
    return tuple(
        ToolSpec(
            name=name,
            description=f"Do {name}.",
            input_schema=_schema(properties),
            level=SafetyLevel.WRITE,
            handler=handler,
            claims=claims,
        )
        for name, handler, properties in (("add", add, {**NUMBERS, **path}), ("book", book, path))
    )


def _schema(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


def _limits(rounds: int) -> LoopLimits:
    return LoopLimits(rounds=rounds + 2, tokens=10**9, seconds=10**6, context_tokens=10**8)


def floor(folder: Path, rounds: int) -> float:
    """Return the CPU milliseconds of two SQLite commits (WAL, synchronous=NORMAL), a message each."""
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("DROP TABLE IF EXISTS m")
    connection.execute("CREATE TABLE m (seq INTEGER PRIMARY KEY, body TEXT)")
    began = time.process_time()
    for _ in range(rounds * 2):
        connection.execute("INSERT INTO m (body) VALUES (?)", ("x" * 100,))
    return (time.process_time() - began) * 1000 / rounds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    folder = Path(tempfile.mkdtemp(prefix="geode-bench-"))
    measured: dict[str, list[list[float]]] = {}
    try:
        durable_rounds(folder / "warm", 20)
        for run in range(RUNS):
            figures, stored = durable_rounds(folder / f"plain {run}", rounds)
            measured.setdefault("experiment, no rules, three hooks", []).append(figures)
            for durability in (Durability.PROCESS, Durability.POWER):
                figures, patron = guarded_rounds(folder / f"{durability} {run}", rounds, durability)
                assert patron.asked == 1, "a stored approval did not answer"
                name = f"attended, rules, six hooks, durability {durability}"
                measured.setdefault(name, []).append(figures)
        bare = min(floor(folder, rounds) for _ in range(RUNS))
    finally:
        shutil.rmtree(folder)
    print(f"CPU of a durable tool round, median of {RUNS} sessions; best durable peer {PEER_MS} ms")
    print(
        f"limits: {LIMIT_MS:g} ms, growth {GROWTH_MAX:g}{'round 10':>36}{f'round {rounds}':>13}{'growth':>8}   to floor"
    )
    for name, sessions in measured.items():
        early, late = at_both_ends(sessions)
        print(f"  {name:52}{early:7.3f} ms{late:10.3f} ms{late / early:8.2f}{early / bare:11.0f}")
    print(f"floor: two bare SQLite commits {bare:.3f} ms")
    print(f"stored a round of the experiment {stored / rounds:.0f} B, limit 2,048 B for a 20-byte result")


def at_both_ends(sessions: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the median of what a round takes from the tenth on, and at the end."""
    early = [figure for figures in sessions for figure in figures[FIRST : FIRST + WINDOW]]
    return median(early), median([figure for figures in sessions for figure in figures[-WINDOW:]])


if __name__ == "__main__":
    main()
