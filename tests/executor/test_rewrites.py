"""What hooks and middleware may make of a call: never less than it was, and what runs is what was approved."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from pydantic import JsonValue

from geode.authority import DataClass, SafetyLevel
from geode.events import CallEnd
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.call import ExecutedCall, Place
from geode.executor.policy import Mode
from geode.executor.rules import PolicyFile, Rules
from geode.hooks.points import Ask, HookEvent, HookPoint, Pass, Rewrite, ToolProposed
from geode.llm.messages import ToolUse
from geode.tools.files import read_file_tool
from geode.tools.spec import Arguments, ToolOutput, ToolSpec
from geode.tools.workspace import Workspace
from tests.doubles.hooks import ScriptedHook
from tests.doubles.models import ScriptedModel
from tests.doubles.sessions import Bench, open_bench
from tests.executor.conftest import BenchOpener

PLACE = Place(turn=1, round=1)
RULES = Rules.of(
    Mode.REPL,
    (
        "policy.yaml",
        PolicyFile.model_validate(
            {
                "schema": "geode.policy/1",
                "data_classes": {"personal": ["customers/**"], "secret": [".env*", ".ssh/**"]},
                "rules": [{"deny": "act", "path": "frozen/**"}, {"allow": "act", "path": "docs/**"}],
            }
        ),
    ),
)
# Written by hand: what each form of the call can do, and whether anything of it may run at all.
FORMS: dict[str, tuple[SafetyLevel, DataClass, bool]] = {
    '{"path":"docs/a"}': (SafetyLevel.WRITE, DataClass.NONE, True),
    '{"path":"src/a"}': (SafetyLevel.WRITE, DataClass.NONE, True),
    '{"path":"conftest.py"}': (SafetyLevel.EXECUTE, DataClass.NONE, True),
    '{"path":"customers/a"}': (SafetyLevel.WRITE, DataClass.PERSONAL, True),
    '{"path":".env"}': (SafetyLevel.WRITE, DataClass.SECRET, True),
    '{"path":".ssh/config"}': (SafetyLevel.EXECUTE, DataClass.SECRET, True),
    '{"path":"frozen/a"}': (SafetyLevel.WRITE, DataClass.NONE, False),
    '{"path":".geode/policy.yaml"}': (SafetyLevel.WRITE, DataClass.NONE, False),
    '{"path":"../a"}': (SafetyLevel.WRITE, DataClass.NONE, False),
    '{"path":5}': (SafetyLevel.WRITE, DataClass.NONE, False),
    '{"path":"src/a","more":1}': (SafetyLevel.WRITE, DataClass.NONE, False),
}


def acting_tool(workspace: Path, ran: list[str]) -> ToolSpec:
    """A tool of level write that has the scope and the claims of the file tools, and only notes that it ran."""

    async def run(arguments: Arguments) -> ToolOutput:
        ran.append(json.dumps(dict(arguments), separators=(",", ":")))
        return ToolOutput(text="ran")

    files = read_file_tool(Workspace(workspace))

    def claims(arguments: Arguments) -> tuple[object, ...]:
        return tuple(
            claim if claim.resource == "tree" else type(claim)(resource=claim.resource, exclusive=True)
            for claim in files.claims(arguments)
        )

    return ToolSpec(
        name="act",
        description="Act on a file.",
        input_schema={
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
        level=SafetyLevel.WRITE,
        handler=run,
        check_scope=files.check_scope,
        claims=claims,  # type: ignore[arg-type]
    )


class Script:
    """A PreToolUse hook that answers what is next, and an approver that notes what it was shown."""

    def __init__(self) -> None:
        self.answers: list[object] = []
        self.shown: list[ApprovalRequest] = []
        self.answer = Approval.ONCE

    def decide(self, _: HookEvent) -> object:
        return self.answers.pop(0) if self.answers else Pass()

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.shown.append(request)
        return self.answer


class Rewrites(RuleBasedStateMachine):
    """A call that hooks change one after the other, as often as they like, and then runs or does not."""

    @initialize(form=st.sampled_from(list(FORMS)))
    def propose(self, form: str) -> None:
        self.forms = [form]
        self.answers: list[object] = []

    @precondition(lambda self: len(self.answers) < 6)
    @rule(form=st.sampled_from(list(FORMS)))
    def rewrite(self, form: str) -> None:
        self.forms.append(form)
        self.answers.append(Rewrite(arguments=json.loads(form), reason="r"))

    @precondition(lambda self: len(self.answers) < 6)
    @rule()
    def ask(self) -> None:
        self.answers.append(Ask(reason="look"))

    @rule(answer=st.sampled_from(Approval))
    def execute(self, answer: Approval) -> None:
        script, ran = Script(), list[str]()
        script.answers, script.answer = list(self.answers), answer
        executed = asyncio.run(self._run(script, ran))
        sound = all(FORMS[form][2] for form in self.forms)
        rises = all(
            FORMS[after][0] >= FORMS[before][0] and FORMS[after][1] >= FORMS[before][1]
            for before, after in zip(self.forms, self.forms[1:], strict=False)
        )
        final = self.forms[-1]
        if not sound or not rises:
            assert executed.end is CallEnd.NOT_STARTED
            assert executed.stage in ("scope", "schema", "policy", "rewrite")
            assert (ran, script.shown) == ([], [])
            return
        asked = final != '{"path":"docs/a"}' or any(isinstance(answer, Ask) for answer in self.answers)
        assert [request.arguments for request in script.shown] == ([final] if asked else [])
        for request in script.shown:
            assert (request.level, request.data_class) == FORMS[final][:2]
        assert ran == ([] if asked and answer is Approval.NO else [final])

    async def _run(self, script: Script, ran: list[str]) -> ExecutedCall:
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder) / "workspace"
            workspace.mkdir()
            hooks = [ScriptedHook(HookPoint.PRE_TOOL_USE, decide=script.decide, name=f"h{n}") for n in range(6)]
            bench = open_bench(
                Path(folder) / "session",
                ScriptedModel([]),
                {"act": acting_tool(workspace, ran)},
                mode=Mode.REPL,
                rules=RULES,
                hooks=hooks,
                approver=script,
            )
            try:
                call = ToolUse(call_id="c1", name="act", arguments=self.forms[0])
                return await bench.executor.aexecute(call, PLACE)
            finally:
                bench.close()


Rewrites.TestCase.settings = settings(max_examples=40, stateful_step_count=6, deadline=None)


@pytest.mark.slow
class TestRewrites(Rewrites.TestCase):
    pass


# The same for middleware, and what a hook is told


def opened_with(opened: BenchOpener, tmp_path: Path, ran: list[str], **parts: object) -> Bench:
    (tmp_path / "workspace" / "src").mkdir(parents=True)
    return opened(acting_tool(tmp_path / "workspace", ran), mode=Mode.REPL, rules=RULES, approver=Script(), **parts)


@pytest.mark.parametrize(
    ("before", "after", "stage"),
    [
        ("src/a", "src/b", ""),
        ("src/a", "conftest.py", ""),
        ("src/a", ".env", ""),
        ("conftest.py", "src/a", "rewrite"),
        (".env", "src/a", "rewrite"),
        (".env", "conftest.py", "rewrite"),
        (".env", ".ssh/config", ""),
        ("./src/../conftest.py", "conftest.py", ""),
    ],
)
async def test_middleware_may_raise_a_call_and_never_lower_it(
    opened: BenchOpener, tmp_path: Path, before: str, after: str, stage: str
) -> None:
    """Contract 5.2: what makes a call look harmless is not what it was judged as."""
    ran: list[str] = []

    def change(_: str, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        arguments["path"] = after  # in place, too
        return arguments

    bench = opened_with(opened, tmp_path, ran, middleware=[change])
    call = ToolUse(call_id="c1", name="act", arguments=json.dumps({"path": before}))
    executed = await bench.executor.aexecute(call, PLACE)
    assert executed.stage == stage
    assert ran == ([] if stage else [json.dumps({"path": after}, separators=(",", ":"))])
    if stage:
        assert "lowered the call from level" in executed.result.text


async def test_a_hook_is_never_shown_what_was_not_judged(opened: BenchOpener, tmp_path: Path) -> None:
    """A rewrite that is out of scope ends the call there; the next hook could only be misled by it."""
    ran: list[str] = []
    first = ScriptedHook(
        HookPoint.PRE_TOOL_USE, decide=lambda _: Rewrite(arguments={"path": "../x"}, reason="r"), name="first"
    )
    second = ScriptedHook(HookPoint.PRE_TOOL_USE, name="second")
    bench = opened_with(opened, tmp_path, ran, hooks=[first, second])
    executed = await bench.executor.aexecute(ToolUse(call_id="c1", name="act", arguments='{"path":"a"}'), PLACE)
    assert (executed.stage, second.seen, ran) == ("scope", [], [])
    assert isinstance(first.seen[0], ToolProposed)
