"""R40 and A19: no secret in anything that a session writes, however a tool, an error, a hook or a judge echoes it."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from geode.authority import SafetyLevel
from geode.events import Notice
from geode.executor.policy import Mode
from geode.hooks.points import (
    AddContext,
    Block,
    Continue,
    Decision,
    Escalate,
    HookEvent,
    HookPoint,
    Pass,
    Repair,
    ToolEnded,
    Withhold,
)
from geode.llm.errors import LLMError
from geode.loop.turn import TurnStop
from geode.loop.verify import CompletionResult, CompletionView
from geode.redaction import Redactor
from geode.tools.spec import Arguments, ToolFailed, ToolOutput
from tests.doubles.effects import raising, returning, tool
from tests.doubles.hooks import ScriptedHook
from tests.doubles.models import calls, says
from tests.loop.conftest import SessionOpener

ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "zx-anthropic+/canary=0001",
    "GEODE_DAEMON_TOKEN": "zx-geode canary 0002",
    "SLACK_BOT_TOKEN": 'zx-slack-"canary"-0003',
    "MY_RANDOM_TOKEN": "zx-ランダム-canary-0004",
}
HOME = "/home/somebody"


def spellings(value: str) -> list[bytes]:
    """Every way in which this test writes a canary, and would find one."""
    raw = value.encode()
    whole = [base64.b64encode(b"x" * n + raw + b"\n") for n in range(3)]
    return [
        raw,
        quote(value, safe="").encode(),
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        *(encoded[4:-4] for encoded in whole),
    ]


ECHO = "\n".join(
    [
        *(f"{name}={value}" for name, value in ENVIRONMENT.items()),
        *(quote(value, safe="") for value in ENVIRONMENT.values()),
        *(json.dumps(value) for value in ENVIRONMENT.values()),
        *(
            base64.b64encode(b"x" * n + value.encode() + b"\n").decode()
            for value in ENVIRONMENT.values()
            for n in range(3)
        ),
        f"HOME={HOME}",
    ]
)
LEAKY = "read the .env and echo it"


def env_tools() -> list[Any]:
    return [
        tool(returning(ToolOutput(text=ECHO)), name="env", level=SafetyLevel.EXECUTE),
        tool(returning(ToolOutput(text=ECHO, is_error=True)), name="fails_with_output"),
        tool(raising(ToolFailed(ECHO)), name="refuses"),
        tool(raising(ValueError(ECHO)), name="crashes"),
        tool(returning(ToolOutput(text="x" * 14_990 + ECHO * 9)), name="floods"),
        tool(returning(ToolOutput(text="ok")), name="scoped", check_scope=_refuses_with(ECHO)),
    ]


def _refuses_with(text: str) -> Any:
    def check(_: Arguments) -> None:
        raise ToolFailed(text)

    return check


class Quoting:
    """A hook that quotes all that it sees, and keeps it in mind."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.hook = ScriptedHook(*HookPoint, decide=self._decide, name="quoting")
        self.hook.snapshot = lambda: list(self.kept)  # type: ignore[method-assign]
        self.hook.restore = lambda _: None  # type: ignore[method-assign]

    def _decide(self, event: HookEvent) -> object:
        self.kept.append(str(event))
        match event:
            case ToolEnded(tool="env"):
                return AddContext(text=f"it printed {event.text}")
            case ToolEnded(tool="crashes"):
                return Withhold(reason=f"it printed {event.text}")
            case ToolEnded(tool="floods"):
                raise ValueError(event.text)
        return None if isinstance(event, ToolEnded) and event.tool == "refuses" else Pass()


def found_in(folder: Path) -> list[str]:
    """Where, in every byte below `folder`, a canary stands."""
    return [
        f"{path.name}: {name} as {spelling[:30]!r}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for name, value in ENVIRONMENT.items()
        for spelling in spellings(value)
        if spelling in path.read_bytes()
    ]


async def test_nothing_that_a_session_writes_holds_a_canary(opened: SessionOpener, tmp_path: Path) -> None:
    tools = env_tools()
    everything = calls(*[(f"c{n}", spec.name, "{}") for n, spec in enumerate(tools)])
    bench, model = opened(
        [everything, LLMError(f"401 with headers {ECHO}"), says("done")],
        *tools,
        hooks=[Quoting().hook],
        redactor=Redactor.of_environment(ENVIRONMENT),
        mode=Mode.EXPERIMENT,
    )
    result = await bench.loop.arun(LEAKY)
    assert result.stop is TurnStop.MODEL_FAILED
    assert found_in(tmp_path) == []
    assert not [
        spelling
        for value in ENVIRONMENT.values()
        for spelling in spellings(value)
        if spelling in result.detail.encode()
    ]
    await bench.loop.arun("and now?")
    bench.close()
    assert found_in(tmp_path) == []
    sent = "".join(str(message) for asked in model.asked for message in asked.messages)
    assert "[redacted]" in sent, "the model sees that something was there"
    assert HOME in sent, "and everything else"


async def test_what_hooks_and_judges_say_is_redacted_too(opened: SessionOpener, tmp_path: Path) -> None:
    """They are foreign code, may read the environment, and speak into history and timeline."""

    class Chatty:
        name = "chatty"

        async def judge_completion(self, view: CompletionView) -> CompletionResult:
            del view
            raise ValueError(ECHO)

    said: dict[HookPoint, Decision] = {
        HookPoint.USER_PROMPT_SUBMIT: AddContext(text=ECHO),
        HookPoint.PRE_TOOL_USE: Block(reason=ECHO),
        HookPoint.POST_VERIFY: Repair(instruction=ECHO),
        HookPoint.STOP: Continue(instruction=ECHO),
    }
    for n, (point, decision) in enumerate([*said.items(), (HookPoint.POST_VERIFY, Escalate(reason=ECHO))]):
        hook = ScriptedHook(point, decide=lambda _, decision=decision: decision)
        bench, _ = opened(
            [calls(("c1", "env", "{}")), says("done")],
            *env_tools(),
            hooks=[hook],
            redactor=Redactor.of_environment(ENVIRONMENT),
            folder=tmp_path / f"{n}",
        )
        await bench.loop.arun("go")
        bench.close()
    bench, _ = opened([says("done")], judges=[Chatty()], redactor=Redactor.of_environment(ENVIRONMENT))
    await bench.loop.arun("go")
    bench.close()
    assert found_in(tmp_path) == []


async def test_diagnostics_are_redacted(opened: SessionOpener, tmp_path: Path) -> None:
    bench, _ = opened(
        [calls(("c1", "crashes", "{}")), says("x")], *env_tools(), redactor=Redactor.of_environment(ENVIRONMENT)
    )
    await bench.loop.arun("go")
    bench.close()
    assert "[redacted]" in bench.folder.evidence.read_text(encoding="utf-8")
    assert found_in(tmp_path) == []


@pytest.mark.parametrize("value", ENVIRONMENT.values())
async def test_the_search_finds_every_spelling(opened: SessionOpener, tmp_path: Path, value: str) -> None:
    """Its control: without a redactor the same session is full of them."""
    bench, _ = opened([calls(("c1", "env", "{}")), says("x")], *env_tools())
    await bench.loop.arun("go")
    bench.loop._parts.observers.emit(Notice(about="control", text=value))
    bench.close()
    name = next(name for name, known in ENVIRONMENT.items() if known == value)
    hits = [hit for hit in found_in(tmp_path) if name in hit]
    assert {hit.split(":")[0] for hit in hits} == {"session.db", "timeline.jsonl"}
    assert len([hit for hit in hits if "session.db" in hit]) >= 5
