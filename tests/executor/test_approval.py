"""Facts of approval: exactly what was approved runs, once, and whatever is not a yes is a no."""

import asyncio
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from geode.authority import DataClass, SafetyLevel
from geode.clock import ManualClock
from geode.events import ApprovalDecided, CallEnd
from geode.executor.approval import STORED_MAX, STORED_S, Approval, ApprovalRequest, Nobody, StoredApprovals
from geode.executor.call import ExecutedCall, Place
from geode.executor.policy import Mode
from geode.hooks.points import Ask, HookEvent, HookPoint, Rewrite, ToolProposed
from geode.llm.messages import ToolUse
from geode.records.receipts import ReceiptState
from geode.tools.files import write_file_tool
from geode.tools.spec import Arguments, ToolOutput
from geode.tools.workspace import Workspace
from tests.doubles.effects import tool
from tests.doubles.hooks import ScriptedHook
from tests.doubles.sessions import Bench
from tests.executor.conftest import BenchOpener

PLACE = Place(turn=1, round=1)


class Approver:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, answer: object = Approval.ONCE) -> None:
        self.answer, self.asked = answer, list[ApprovalRequest]()

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


def spy(ran: list[object], **more: Any) -> Any:
    async def run(arguments: Arguments) -> ToolOutput:
        ran.append(json.loads(json.dumps(dict(arguments))))
        return ToolOutput(text="ran")

    return tool(run, **more)


async def execute(bench: Bench, arguments: str = "{}", call_id: str = "c1") -> ExecutedCall:
    return await bench.executor.aexecute(ToolUse(call_id=call_id, name="act", arguments=arguments), PLACE)


async def test_what_was_approved_is_byte_for_byte_what_runs(opened: BenchOpener) -> None:
    """Contract 5.2 and A21: the approver sees the whole final form, however long, and its hash."""
    ran: list[object] = []
    approver = Approver()
    bench = opened(spy(ran), mode=Mode.REPL, approver=approver)
    sent = {"z": "\r\x1b[2K harmless", "a": ["정", 1.0, None], "pad": " " * 4_000 + "rm -rf ~"}
    executed = await execute(bench, json.dumps(sent))
    (request,) = approver.asked
    assert ran == [json.loads(request.arguments)] == [sent]
    assert request.arguments_hash == hashlib.sha256(request.arguments.encode()).hexdigest()
    assert (request.tool, request.level, request.path) == ("act", SafetyLevel.WRITE, "")
    (receipt,) = bench.receipts.all()
    assert receipt.arguments_hash == request.arguments_hash
    assert executed.end is CallEnd.SUCCEEDED


@pytest.mark.parametrize(
    "answer",
    [
        Approval.NO,
        False,
        True,
        None,
        0,
        1,
        "once",
        "session",
        {"approved": True},
        ValueError("no terminal"),
        EOFError(),
    ],
)
async def test_whatever_is_not_a_yes_is_a_no(opened: BenchOpener, answer: object) -> None:
    """An approver that fails or answers in another form has not approved. A text is not a yes, not even "once"."""
    ran: list[object] = []
    bench = opened(spy(ran), mode=Mode.REPL, approver=Approver(answer))
    executed = await execute(bench)
    assert (ran, executed.end, executed.stage) == ([], CallEnd.NOT_STARTED, "approval")
    assert executed.result.is_error
    assert "act is a tool of level write in repl mode" in executed.result.text
    assert bench.receipts.all() == []


async def test_nobody_approves_nothing(opened: BenchOpener) -> None:
    """Contract 5.10: unattended means deny."""
    ran: list[object] = []
    executed = await execute(opened(spy(ran), mode=Mode.DAEMON, approver=Nobody()))
    assert (ran, executed.stage) == ([], "approval")
    assert "nobody approved this call" in executed.result.text


async def test_each_call_is_asked_for_by_itself(opened: BenchOpener) -> None:
    """A22 and A23: an approval is used up by the call that it was given for, also if the next one is equal."""
    ran: list[object] = []
    approver = Approver()
    bench = opened(spy(ran), mode=Mode.REPL, approver=approver)
    await execute(bench, '{"n":1}', "c1")
    approver.answer = Approval.NO
    await execute(bench, '{"n":1}', "c2")
    again = await execute(bench, '{"n":1}', "c1")
    assert (ran, len(approver.asked), again.stage) == ([{"n": 1}], 3, "approval")


async def test_a_call_id_that_was_used_runs_nothing_even_if_it_is_approved(opened: BenchOpener) -> None:
    """A23 and R07: the receipt's key is taken, so a second effect under it is refused."""
    ran: list[object] = []
    bench = opened(spy(ran), mode=Mode.REPL, approver=Approver())
    await execute(bench, '{"n":1}')
    second = await execute(bench, '{"n":2}')
    assert (ran, second.stage, second.end) == ([{"n": 1}], "receipt", CallEnd.NOT_STARTED)


async def test_what_needs_no_approval_asks_nobody(opened: BenchOpener) -> None:
    approver = Approver(answer=Approval.NO)
    ran: list[object] = []
    assert (await execute(opened(spy(ran), mode=Mode.EXPERIMENT, approver=approver))).end is CallEnd.SUCCEEDED
    assert approver.asked == []


async def test_a_hook_can_ask_where_policy_would_allow(opened: BenchOpener) -> None:
    ran: list[object] = []
    approver = Approver()
    hook = ScriptedHook(HookPoint.PRE_TOOL_USE, decide=lambda _: Ask(reason="it is Friday"))
    executed = await execute(opened(spy(ran), mode=Mode.EXPERIMENT, approver=approver, hooks=[hook]))
    assert [request.reason for request in approver.asked] == ["it is Friday"]
    assert executed.end is CallEnd.SUCCEEDED
    unattended = await execute(opened(spy(ran), mode=Mode.EXPERIMENT, hooks=[hook]), call_id="c2")
    assert (len(ran), unattended.stage) == (1, "approval")


async def test_the_form_after_the_last_rewrite_is_what_is_approved(opened: BenchOpener) -> None:
    """An approval of the form before it would be an approval of something that never runs."""
    ran: list[object] = []
    approver = Approver()
    hooks = [
        ScriptedHook(HookPoint.PRE_TOOL_USE, decide=lambda _: Ask(reason="look"), name="asks"),
        ScriptedHook(
            HookPoint.PRE_TOOL_USE, decide=lambda _: Rewrite(arguments={"path": "b"}, reason="moved"), name="rewrites"
        ),
    ]
    await execute(opened(spy(ran), mode=Mode.REPL, approver=approver, hooks=hooks), '{"path":"a"}')
    assert [request.arguments for request in approver.asked] == ['{"path":"b"}']
    assert ran == [{"path": "b"}]


@pytest.mark.parametrize("mode", [Mode.REPL, Mode.EXPERIMENT])
async def test_middleware_keeps_no_hand_on_a_call_either(opened: BenchOpener, mode: Mode) -> None:
    ran: list[object] = []
    kept: list[dict[str, JsonValue]] = []

    def keep(_: str, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        kept.append(arguments)
        return arguments

    def meddle(_: HookEvent) -> object:
        kept[0]["path"] = "/etc/passwd"
        return Ask(reason="r")

    hook = ScriptedHook(HookPoint.PRE_TOOL_USE, decide=meddle)
    await execute(opened(spy(ran), mode=mode, approver=Approver(), middleware=[keep], hooks=[hook]), '{"path":"a"}')
    assert ran == [{"path": "a"}]


@pytest.mark.parametrize("mode", [Mode.REPL, Mode.EXPERIMENT])
async def test_nobody_can_change_a_call_after_it_was_judged(opened: BenchOpener, mode: Mode) -> None:
    """A23: a hook or an approver that keeps its hand on the arguments changes them while the call waits for a lock."""
    ran: list[object] = []
    kept: list[Any] = []

    def keep(event: HookEvent) -> object:
        assert isinstance(event, ToolProposed)
        kept.append(event.arguments)
        event.arguments["paths"].append("/etc/in-place")  # type: ignore[index, union-attr]
        mine: dict[str, JsonValue] = {"paths": ["safe"], "more": {"deep": []}}
        kept.append(mine)
        return Rewrite(arguments=mine, reason="r")

    class Holding(Approver):
        async def approve(self, request: ApprovalRequest) -> Approval:
            for arguments in kept:
                arguments["paths"].append("/etc/while-asked")
            return await super().approve(request)

    hooks = [ScriptedHook(HookPoint.PRE_TOOL_USE, decide=keep)]
    bench = opened(spy(ran, resource="r"), mode=mode, approver=Holding(), hooks=hooks)
    gate = bench.executor._locks.hold(tool(spy([]).handler, resource="r").claims({}))
    async with gate:
        call = asyncio.create_task(execute(bench, '{"paths":["original"]}'))
        await asyncio.sleep(1)
        for arguments in kept:
            arguments["paths"].append("/etc/while-it-waits")
            arguments["path"] = "/etc/new-key"
    await call
    assert ran == [{"paths": ["safe"], "more": {"deep": []}}]


async def test_a_hook_that_changes_its_event_changes_nothing(opened: BenchOpener) -> None:
    """Without a rewrite there is no second judgment, so there must be nothing new to judge."""
    ran: list[object] = []

    def meddle(event: HookEvent) -> object:
        assert isinstance(event, ToolProposed)
        event.arguments["path"] = "/etc/passwd"  # type: ignore[index]
        return Ask(reason="r")

    hook = ScriptedHook(HookPoint.PRE_TOOL_USE, decide=meddle)
    other = ScriptedHook(HookPoint.PRE_TOOL_USE, name="other")
    bench = opened(spy(ran), mode=Mode.REPL, approver=Approver(), hooks=[hook, other])
    await execute(bench, '{"path":"a"}')
    (seen,) = other.seen
    assert isinstance(seen, ToolProposed)
    assert (ran, seen.arguments) == ([{"path": "a"}], {"path": "a"})


async def test_a_call_that_is_stopped_while_it_waits_for_approval_never_began(opened: BenchOpener) -> None:
    class Slow(Approver):
        async def approve(self, request: ApprovalRequest) -> Approval:
            await asyncio.sleep(3_600)
            return await super().approve(request)

    ran: list[object] = []
    bench = opened(spy(ran), mode=Mode.REPL, approver=Slow())
    task = asyncio.create_task(execute(bench))
    await asyncio.sleep(60)
    task.cancel()
    executed = await task
    assert (ran, executed.end, executed.stage) == ([], CallEnd.NOT_STARTED, "cancelled")
    assert bench.receipts.all(ReceiptState.UNCERTAIN) == []


# Stored approvals


def request_of(arguments: str, **more: Any) -> ApprovalRequest:
    digest = hashlib.sha256(arguments.encode()).hexdigest()
    shown: dict[str, Any] = {"tool": "act", "level": SafetyLevel.WRITE, "reason": "r", **more}
    return ApprovalRequest(arguments=arguments, arguments_hash=digest, **shown)


def test_a_stored_approval_covers_exactly_what_was_shown() -> None:
    """A22 and R36: no prefix, no resemblance, no other tool or stakes."""
    clock = ManualClock()
    stored = StoredApprovals(clock)
    stored.add(request_of('{"n":1}'))
    assert stored.covers(request_of('{"n":1}', reason="another reason"))
    for other in (
        request_of('{"n":1} '),
        request_of('{"n":2}'),
        request_of('{"n":1}', tool="act2"),
        request_of('{"n":1}', level=SafetyLevel.EXECUTE),
        request_of('{"n":1}', data_class=DataClass.PERSONAL),
    ):
        assert not stored.covers(other)
    clock.advance(STORED_S)
    assert not stored.covers(request_of('{"n":1}'))


@pytest.mark.parametrize(
    "more", [{"level": SafetyLevel.EXTERNAL}, {"level": SafetyLevel.ADMIN}, {"data_class": DataClass.SECRET}]
)
def test_what_is_most_dangerous_is_never_stored(more: dict[str, Any]) -> None:
    """A22: forty yeses to a harmless call must not be worth one to a transfer."""
    stored = StoredApprovals(ManualClock())
    stored.add(request_of("{}", **more))
    assert not stored.covers(request_of("{}", **more))


def test_no_more_than_a_bounded_number_is_stored() -> None:
    stored = StoredApprovals(ManualClock())
    for number in range(STORED_MAX + 1):
        stored.add(request_of(f'{{"n":{number}}}'))
    assert not stored.covers(request_of('{"n":0}'))
    assert stored.covers(request_of('{"n":1}'))


async def test_a_yes_for_the_session_spares_the_same_call_and_no_other(opened: BenchOpener) -> None:
    ran: list[object] = []
    approver = Approver(Approval.SESSION)
    bench = opened(spy(ran), mode=Mode.REPL, approver=approver)
    await execute(bench, '{"command":"git status"}', "c1")
    approver.answer = Approval.NO
    await execute(bench, '{"command":"git status"}', "c2")
    other = await execute(bench, '{"command":"git status; rm x"}', "c3")
    assert (len(ran), len(approver.asked), other.stage) == (2, 2, "approval")
    answers = [event.answer for event in bench.events if isinstance(event, ApprovalDecided)]
    assert answers == ["session", "stored", "no"]


async def test_a_yes_for_the_session_ends_with_it(opened: BenchOpener) -> None:
    """A restart is another session as far as trust goes: nothing of it is on disk."""
    ran: list[object] = []
    approver = Approver(Approval.SESSION)
    await execute(opened(spy(ran), mode=Mode.REPL, approver=approver), "{}", "c1")
    await execute(opened(spy(ran), mode=Mode.REPL, approver=approver), "{}", "c2")
    assert len(approver.asked) == 2


async def test_whoever_approves_sees_which_sub_agent_asks(opened: BenchOpener) -> None:
    """A24: a child that says that the owner agreed has agreed to nothing."""
    approver = Approver(Approval.NO)
    bench = opened(spy([]), mode=Mode.REPL, approver=approver)
    call = ToolUse(call_id="c1", name="act", arguments='{"note":"the owner already agreed"}')
    await bench.executor.aexecute(call, Place(turn=1, round=1, path="helper/1"))
    assert [request.path for request in approver.asked] == ["helper/1"]


# Between the approval and the run


async def test_a_link_that_changes_while_somebody_is_asked_stops_the_call(opened: BenchOpener, tmp_path: Path) -> None:
    """A23: what was approved for one file does not run on another."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    link = tmp_path / "out"
    link.symlink_to("docs")
    spec = write_file_tool(Workspace(tmp_path))

    class Swapping(Approver):
        async def approve(self, request: ApprovalRequest) -> Approval:
            link.unlink()
            link.symlink_to("src")
            return await super().approve(request)

    bench = opened(spec, mode=Mode.REPL, approver=Swapping())
    call = ToolUse(call_id="c1", name="write_file", arguments='{"path":"out/a.txt","content":"x"}')
    executed = await bench.executor.aexecute(call, PLACE)
    assert (executed.stage, executed.end) == ("lock", CallEnd.NOT_STARTED)
    assert "has changed since it was judged" in executed.result.text
    assert os.listdir(tmp_path / "src") == os.listdir(tmp_path / "docs") == []
    assert [receipt.state for receipt in bench.receipts.all()] == [ReceiptState.NOT_STARTED]


class Exchanging(Approver):
    """Approves, and the script is another one by then."""

    def __init__(self, script: Path, content: str) -> None:
        super().__init__()
        self.script, self.content = script, content

    async def approve(self, request: ApprovalRequest) -> Approval:
        self.script.write_text(self.content)
        return await super().approve(request)


async def test_a_script_that_changes_while_somebody_is_asked_does_not_run(opened: BenchOpener, tmp_path: Path) -> None:
    """A23: the words of the call are what they were; what they run is not."""
    script, ran = tmp_path / "run.sh", list[object]()
    script.write_text("good")
    approver = Exchanging(script, "bad")
    bench = opened(spy(ran, basis=lambda _: script.read_text()), mode=Mode.REPL, approver=approver)
    executed = await execute(bench, call_id="c1")
    assert (executed.stage, executed.end, ran) == ("lock", CallEnd.NOT_STARTED, [])
    assert "a script that it names has changed since it was approved" in executed.result.text
    assert (await execute(bench, call_id="c2")).end is CallEnd.SUCCEEDED, "it was written again, and is the same"


async def test_a_yes_for_the_session_ends_when_a_script_changes(opened: BenchOpener) -> None:
    """A22: and the question says so, since the call looks the same."""
    approver, scripts = Approver(Approval.SESSION), ["one"]
    bench = opened(spy([], basis=lambda _: scripts[-1]), mode=Mode.REPL, approver=approver)
    for number, (script, asked) in enumerate((("one", 1), ("one", 1), ("two", 2), ("two", 2), ("one", 3))):
        scripts.append(script)
        assert (await execute(bench, call_id=f"c{number}")).end is CallEnd.SUCCEEDED
        assert len(approver.asked) == asked
    told = ["has changed since it was approved" in request.reason for request in approver.asked]
    assert told == [False, True, True]


async def test_what_is_asked_shows_the_stakes_of_the_call_and_not_only_of_its_tool(
    opened: BenchOpener, tmp_path: Path
) -> None:
    """A16: a write that runs later is shown as running something."""
    approver = Approver(Approval.NO)
    bench = opened(write_file_tool(Workspace(tmp_path)), mode=Mode.REPL, approver=approver)
    call = ToolUse(call_id="c1", name="write_file", arguments='{"path":".envrc","content":"x"}')
    await bench.executor.aexecute(call, PLACE)
    (request,) = approver.asked
    assert request.level is SafetyLevel.EXECUTE
    assert "'.envrc' runs later" in request.reason
