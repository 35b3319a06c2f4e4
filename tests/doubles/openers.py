"""Sessions that do what a script says, without a loop: each prompt is answered by the next step of the script."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from experiments.suite import Outcome, OutcomeKind, Task
from geode.executor.policy import Mode
from geode.llm.binding import ModelOptions
from geode.llm.outline import Outline
from geode.llm.usage import Usage
from geode.loop.turn import TurnResult, TurnStop
from geode.loop.verify import CompletionJudge
from geode.records.purse import Account
from geode.scaffold import LoopLimits, Scaffold
from geode.serve.session_spec import NO_ACCOUNT, NO_OPTIONS
from geode.tools.environment import LOCAL, Environment

Step = TurnStop | BaseException | Callable[[Path], None] | None
"""How a session ends: a stop, something raised, work on the workspace, or None: never, until it is cancelled."""


class ScriptedOpener:
    """Opens sessions whose turns end as scripted; the last step is repeated for ever. Keeps what was asked of it."""

    def __init__(self, *steps: Step) -> None:
        self.opened: list[dict[str, object]] = []
        self.closed = 0
        self.most_open = 0
        self._steps: Iterator[Step] = iter(steps)
        self._last: Step = TurnStop.COMPLETED

    def create_session(
        self,
        *,
        mode: Mode,
        scaffold: Scaffold,
        model: str,
        workspace: Path,
        folder: Path,
        outline: Outline | None = None,
        simulation_key: str = "",
        options: ModelOptions = NO_OPTIONS,
        caps: LoopLimits | None = None,
        environment: Environment = LOCAL,
        account: Account = NO_ACCOUNT,
        judges: Sequence[CompletionJudge] = (),
    ) -> "ScriptedSession":
        self.opened.append(
            {
                "mode": mode,
                "scaffold_id": scaffold.scaffold_id,
                "model": model,
                "workspace": workspace,
                "folder": folder,
                "outline": outline,
                "simulation_key": simulation_key,
                "options": options,
                "caps": caps,
                "environment": environment,
                "account": account,
                "judges": judges,
            }
        )
        self.most_open = max(self.most_open, len(self.opened) - self.closed)
        self._last = next(self._steps, self._last)
        return ScriptedSession(self, f"S{len(self.opened):03}", self._last, workspace)


class ScriptedSession:
    def __init__(self, opener: ScriptedOpener, session_id: str, step: Step, workspace: Path) -> None:
        self.session_id = session_id
        self._opener, self._step, self._workspace = opener, step, workspace

    async def arun(self, prompt: str) -> TurnResult:
        await asyncio.sleep(0)
        match self._step:
            case BaseException():
                raise self._step
            case TurnStop():
                return turn(self._step)
            case None:
                await asyncio.Event().wait()
                raise AssertionError("nobody sets the event")
            case work:
                work(self._workspace)
                return turn(TurnStop.COMPLETED)

    def close(self) -> None:
        self._opener.closed += 1


def turn(stop: TurnStop) -> TurnResult:
    return TurnResult(
        text="done",
        stop=stop,
        detail=f"why it is {stop}",
        verified=stop is TurnStop.COMPLETED,
        rounds=3,
        repairs_used=1,
        model_calls=3,
        tool_calls=2,
        tool_errors=1,
        refused_calls=0,
        usage=Usage(uncached_input_tokens=70, output_tokens=7, cost_usd=0.5),
        cost_usd_known=0.5,
        unpriced_calls=0,
        latency_ms=900,
        simulated=True,
    )


def passes_if_done(workspace: Path) -> Outcome:
    """The verifier of `make_task`: the file `done` exists."""
    if (workspace / "done").exists():
        return Outcome(kind=OutcomeKind.PASS, score=1.0)
    return Outcome(kind=OutcomeKind.FAIL, score=0.0, reasons=(f"there is no {workspace / 'done'}",))


def make_task(folder: Path, task_id: str, task_hash: str, verify: Callable[[Path], Outcome] = passes_if_done) -> Task:
    """A task with one fixture, `start`."""
    fixtures = folder / task_id
    fixtures.mkdir(parents=True, exist_ok=True)
    (fixtures / "start").write_text("begin", encoding="utf-8")
    return Task(
        task_id=task_id,
        family=task_id.split("_", maxsplit=1)[0],
        prompt="Make the file done.",
        fixtures=fixtures,
        outline=None,
        task_hash=task_hash,
        verify=verify,
    )


def do_the_task(workspace: Path) -> None:
    """A step that makes `passes_if_done` pass."""
    (workspace / "done").touch()


def steps_of(letters: Sequence[str]) -> list[Step]:
    """P passes, F completes without having done it, M is a model that failed."""
    return [{"P": do_the_task, "F": TurnStop.COMPLETED, "M": TurnStop.MODEL_FAILED}[letter] for letter in letters]
