"""The apprentice is a pure function of what a model sees, errs as its table says, and is helped only by words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from geode.llm.apprentice.faults import Cue, FaultName, Where
from geode.llm.apprentice.hearing import Hearing
from geode.llm.apprentice.moves import Repertoire
from geode.llm.messages import Message, Origin, Speaker, StopReason, TextBlock, ToolResult, ToolUse
from geode.llm.outline import Outline
from geode.llm.simulated import Apprentice, FaultTable, fault_table_hash, shipped_table
from tests.doubles.outlines import CONFIG, FIX, REPORT, TASKS, ToyTask
from tests.doubles.toy_loop import (
    PREAMBLE,
    PROTECT_TESTS,
    REQUIRE_TEST_RUN,
    SCHEMAS,
    STOP_REPEATS,
    TEST_FAILED,
    TEXTS,
    TOOLS,
    Hook,
    ToyLoop,
    snapshot,
)
from tests.llm.apprentice_montecarlo import CAREFUL, HARMFUL, PLACEBO, PLAIN

F = FaultName
ALL = {"inspect": 1.0, "change": 1.0, "check": 1.0}
ELISION = "[an earlier result of 900 characters was left out to save space; call the tool again if you need it]"


def table(
    rates: Mapping[FaultName, Mapping[str, float]] | None = None, *, fails: float = 0.0, **bounds: int
) -> FaultTable:
    """The shipped table with no other faults than these, and recoveries that fail at one rate."""
    body = shipped_table().model_dump(mode="json", by_alias=True)
    for name, fault in body["faults"].items():
        fault["rate"] = dict((rates or {}).get(FaultName(name), {}))
        for cue in fault["cues"]:
            cue["fails"] = fails if cue["effect"] else 0.0
    body["bounds"] |= bounds
    return FaultTable.model_validate(body)


def loop_of(task: ToyTask, **parts: object) -> ToyLoop:
    def run(files: Mapping[str, str], _: str) -> tuple[int, str]:
        passed, text = task.check(files)
        return (0 if passed else 1), text

    return ToyLoop(files=dict(task.files), run=run, **parts)  # type: ignore[arg-type]


async def play(task: ToyTask, faults: FaultTable, *, key: str = "k/t/0/0", **parts: object) -> ToyLoop:
    return await loop_of(task, **parts).play(Apprentice(outline=task.outline, key=key, table=faults))


def made(loop: ToyLoop) -> list[tuple[str, object]]:
    return [(use.name, json.loads(use.arguments)) for use in loop.calls]


def outlined(task: ToyTask) -> list[tuple[str, object]]:
    return [(step.call.tool, dict(step.call.arguments)) for step in task.outline.steps]


def says(*hooks: Hook) -> dict[Hook, str]:
    return {hook: TEXTS[hook] for hook in hooks}


# --- what it does when it does not err ---


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_without_faults_it_does_the_outline_step_by_step(task: ToyTask) -> None:
    """The outline is the competence; everything that goes wrong comes from the table."""
    loop = await play(task, table())
    assert made(loop) == outlined(task)
    assert loop.answer == task.outline.answer
    assert task.right(loop.files)


async def test_a_step_whose_tool_is_not_offered_is_left_out() -> None:
    """Only what the plan binds can be called; a scaffold without a shell cannot check."""
    loop = await play(FIX, table(), tools=tuple(tool for tool in TOOLS if tool.name != "shell"))
    assert "shell" not in {use.name for use in loop.calls}
    assert loop.answer == FIX.outline.answer


# --- every fault can be forced, and shows as what it is called ---


async def test_omitting_leaves_the_changes_out() -> None:
    """An omitted change is missing in the workspace, although the answer claims it."""
    loop = await play(FIX, table({F.OMIT_STEP: {"change": 1.0}, F.SKIP_CHECK: ALL}))
    assert loop.files == FIX.files
    assert loop.answer == FIX.outline.answer


async def test_editing_elsewhere_makes_a_wrong_change_but_never_in_the_check() -> None:
    """The two kinds of wrong change have rates of their own, because different hooks can stop them."""
    for repetition in range(20):
        faults = table({F.EDIT_ELSEWHERE: ALL, F.SKIP_CHECK: ALL})
        loop = await play(FIX, faults, key=str(repetition))
        assert loop.files["test_total.py"] == FIX.files["test_total.py"]
        assert not FIX.right(loop.files)


async def test_editing_the_check_is_a_success_that_only_the_verifier_sees_through() -> None:
    """The visible check passes, so no amount of checking helps."""
    loop = await play(CONFIG, table({F.EDIT_THE_CHECK: ALL}), texts=says(Hook.REQUIRE_TEST_RUN))
    assert CONFIG.check(loop.files) == (True, "all passed")
    assert not CONFIG.right(loop.files)
    assert loop.answer == CONFIG.outline.answer


async def test_skipping_the_check_runs_none() -> None:
    """The fault that a demand to run the tests is there for."""
    loop = await play(CONFIG, table({F.SKIP_CHECK: ALL}))
    assert "shell" not in {use.name for use in loop.calls}


async def test_misreading_takes_a_failing_check_for_a_success() -> None:
    """The check ran, failed, and the answer is as if it had passed."""
    loop = await play(CONFIG, table({F.OMIT_STEP: {"change": 1.0}, F.MISREAD_CHECK: ALL}))
    assert loop.calls[-1].name == "shell"
    assert loop.answer == CONFIG.outline.answer


async def test_claiming_early_answers_after_the_first_change() -> None:
    """Success is claimed while changes are to come, never before anything was changed."""
    loop = await play(FIX, table({F.CLAIM_EARLY: ALL}))
    assert made(loop) == outlined(FIX)[:4]
    assert loop.answer == FIX.outline.answer


async def test_being_stuck_repeats_the_identical_call_to_the_limit_of_rounds() -> None:
    """Nobody says that it leads nowhere, so the episode ends without an answer."""
    loop = await play(FIX, table({F.GET_STUCK: {"inspect": 1.0}}))
    assert len(loop.responses) == loop.rounds_max
    assert len({(use.name, use.arguments) for use in loop.calls[3:]}) == 1
    assert loop.answer is None


async def test_overlooking_gives_up_and_says_that_the_check_fails() -> None:
    """A worker that cannot find its fault is honest about the failing check."""
    loop = await play(CONFIG, table({F.OMIT_STEP: {"change": 1.0}, F.OVERLOOK: ALL}))
    assert loop.answer is not None
    assert loop.answer.startswith("I could not finish this. The check still fails")
    assert "FAILED: app.ini is not right" in loop.answer


async def test_malformed_arguments_break_the_schema_or_are_no_json() -> None:
    """A fault that a lenient host would not even notice is none."""
    seen = set()
    for repetition in range(40):
        loop = await play(REPORT, table({F.MALFORMED_ARGUMENTS: ALL}, attempts=1), key=str(repetition))
        for use in loop.calls:
            try:
                problem = next(
                    jsonschema.Draft202012Validator(SCHEMAS[use.name]).iter_errors(json.loads(use.arguments))
                )
                seen.add(str(problem.validator))
            except json.JSONDecodeError:
                seen.add("no JSON")
    assert seen == {"no JSON", "required", "type"}


# --- words help, and nothing else ---


async def test_a_schema_error_is_answered_by_the_corrected_call() -> None:
    """The executor's refusal says what is wrong, and that is enough."""
    loop = await play(CONFIG, table({F.MALFORMED_ARGUMENTS: ALL}))
    assert [use.name for use in loop.calls] == [step.call.tool for step in CONFIG.outline.steps for _ in range(2)]
    assert CONFIG.right(loop.files)


async def test_an_error_without_a_reason_leaves_the_step_undone() -> None:
    """Where the host does not say what was wrong, the worker does not know it."""
    apprentice = Apprentice(outline=CONFIG.outline, key="k", table=table({F.MALFORMED_ARGUMENTS: {"change": 1.0}}))
    messages = await drive(apprentice, lambda use: ("no", True) if use.name == "edit_file" else ("exit code: 0", False))
    assert [use.name for message in messages for use in message.tool_uses].count("edit_file") == 1


async def test_a_refused_edit_of_a_test_leads_to_the_source() -> None:
    """This is how a hook that protects tests earns its place."""
    loop = await play(CONFIG, table({F.EDIT_THE_CHECK: ALL}), texts=says(Hook.PROTECT_TESTS))
    assert CONFIG.right(loop.files)


async def test_a_refusal_that_does_not_say_why_redirects_nothing() -> None:
    """The same hook with empty words has no benefit but the block itself."""
    loop = await play(
        CONFIG, table({F.EDIT_THE_CHECK: ALL, F.SKIP_CHECK: ALL}), texts={Hook.PROTECT_TESTS: "refused by hook."}
    )
    assert loop.files == CONFIG.files


@pytest.mark.parametrize("text", [STOP_REPEATS, "The identical call was already made. Stop."])
async def test_a_text_that_names_the_repetition_ends_it(text: str) -> None:
    """The loop is left, and the work goes on behind it."""
    loop = await play(FIX, table({F.GET_STUCK: {"inspect": 1.0}}), texts={Hook.STOP_REPEATS: text})
    assert FIX.right(loop.files)
    assert loop.answer == FIX.outline.answer


async def test_a_refusal_that_does_not_name_the_repetition_does_not_end_it() -> None:
    """A no-op in place of the words, and the worker is stuck as before."""
    loop = await play(FIX, table({F.GET_STUCK: {"inspect": 1.0}}), texts={Hook.STOP_REPEATS: "refused by hook: no."})
    assert loop.answer is None


@pytest.mark.parametrize("demand", [REQUIRE_TEST_RUN, TEST_FAILED, "Please execute the check script now."])
async def test_a_demand_to_run_the_check_makes_it_check_and_mend(demand: str) -> None:
    """What was omitted is done, after the check that was skipped has failed."""
    faults = table({F.OMIT_STEP: {"change": 1.0}, F.SKIP_CHECK: ALL})
    apprentice = Apprentice(outline=FIX.outline, key="k", table=faults)
    loop = await loop_of(FIX).play(apprentice)
    assert loop.files == FIX.files
    before = len(loop.calls)
    await loop.play(apprentice, f"{PREAMBLE} {demand}", Origin.HOST)
    assert [use.name for use in loop.calls[before:]] == ["shell", "edit_file", "edit_file", "shell"]
    assert FIX.right(loop.files)


async def test_a_wrong_edit_is_taken_back_before_the_right_one() -> None:
    """The right edit's old text is no longer there, so mending must begin with the reverse edit."""
    found = False
    for repetition in range(40):
        faults = table({F.EDIT_ELSEWHERE: {"change": 0.5}})
        loop = await play(FIX, faults, key=str(repetition))
        wrong = ("edit_file", {"path": "total.py", "old": "a = 1", "new": "a = 11"})
        back = ("edit_file", {"path": "total.py", "old": "a = 11", "new": "a = 1"})
        if wrong in made(loop):
            found = True
            assert made(loop).count(back) == made(loop).count(wrong) - ("a = 11" in loop.files["total.py"])
        assert FIX.right(loop.files) or "could not finish" in str(loop.answer)
    assert found


async def test_an_edit_that_cannot_be_taken_back_does_not_keep_it_from_the_right_one() -> None:
    """The reverse edit fails where its old text is no longer unique; then it is left as it is."""
    wrong = {"tool": "edit_file", "arguments": {"path": "b.txt", "old": "x", "new": "y"}}
    right = {"tool": "edit_file", "arguments": {"path": "a.txt", "old": "1", "new": "2"}}
    outline = Outline.model_validate(
        {
            "steps": [
                {"id": "change", "kind": "change", "call": right, "wrong": [wrong]},
                {"id": "check", "kind": "check", "call": {"tool": "shell", "arguments": {"command": "sh run"}}},
            ],
            "answer": "Done.",
        }
    )
    task = replace(FIX, files={"a.txt": "1", "b.txt": "x y"}, outline=outline, check=lambda f: (f["a.txt"] == "2", ""))
    faults = table({F.EDIT_ELSEWHERE: {"change": 0.5}})
    played = [await play(task, faults, key=str(n)) for n in range(20)]
    assert any(made(loop)[0][1] == wrong["arguments"] for loop in played)
    for loop in played:
        assert loop.files["a.txt"] == "2" or "could not finish" in str(loop.answer)
        assert len(loop.calls) < 12
    assert {"a.txt": "2", "b.txt": "y y"} in [loop.files for loop in played]


async def test_after_a_refused_edit_of_a_test_it_leaves_all_tests_alone() -> None:
    """The refusal speaks of tests in general."""
    loop = await play(FIX, table({F.EDIT_THE_CHECK: ALL}), texts=says(Hook.PROTECT_TESTS))
    assert [str(use.arguments).count("test_total") for use in loop.calls if use.name == "edit_file"] == [1, 0, 0]


async def test_a_demand_after_an_early_claim_brings_the_rest() -> None:
    """Nobody claims success early while mending what a failing check has shown."""
    apprentice = Apprentice(outline=FIX.outline, key="k", table=table({F.CLAIM_EARLY: ALL}))
    loop = await loop_of(FIX, texts=says(Hook.REQUIRE_TEST_RUN)).play(apprentice)
    assert FIX.right(loop.files)


async def test_a_reminder_beside_a_result_lowers_the_rate_it_speaks_of() -> None:
    """What a hook injects is read like any other text: here half of the skipped checks are run after all."""
    ran = {}
    for reminder in ("You have not run the tests since your last change.", "Lunch is at noon."):
        ran[reminder] = 0
        for repetition in range(60):
            apprentice = Apprentice(outline=CONFIG.outline, key=str(repetition), table=table({F.SKIP_CHECK: ALL}))
            messages = await drive(apprentice, passing, host_texts=[reminder])
            ran[reminder] += any(use.name == "shell" for message in messages for use in message.tool_uses)
    assert 15 < ran["You have not run the tests since your last change."] < 45
    assert ran["Lunch is at noon."] == 0


async def test_a_check_that_was_refused_is_no_verdict() -> None:
    """Nothing new is known, so there is nothing to mend."""
    apprentice = Apprentice(outline=CONFIG.outline, key="k", table=table())
    messages = await drive(apprentice, lambda use: (STOP_REPEATS, True) if use.name == "shell" else ("done", False))
    assert messages[-1].text == CONFIG.outline.answer


async def test_a_right_change_that_fails_is_tried_once_more() -> None:
    """A passing trouble is overcome, a lasting one is not hammered at."""
    for failures in (1, 9):
        left = [("the file is locked", True)] * failures
        apprentice = Apprentice(outline=CONFIG.outline, key="k", table=table({F.SKIP_CHECK: ALL}))
        messages = await drive(apprentice, partial(first_these, left))
        assert [use.name for message in messages for use in message.tool_uses].count("edit_file") == 2


async def test_it_gives_up_mending_after_so_many_failing_checks() -> None:
    """Every loop has a limit, and the answer says what still fails."""
    apprentice = Apprentice(outline=CONFIG.outline, key="k", table=table(fix_passes=3))
    messages = await drive(apprentice, lambda use: ("exit code: 1\nbad port", True))
    assert [use.name for message in messages for use in message.tool_uses].count("shell") == 4
    assert messages[-1].text.endswith("Its last line: bad port")


async def test_it_stops_by_itself_after_so_many_rounds() -> None:
    """Where the loop sets no limit, being stuck still ends, and honestly."""
    loop = await play(FIX, table({F.GET_STUCK: {"inspect": 1.0}}, rounds=20))
    assert len(loop.responses) == 21
    assert str(loop.answer).startswith("I can do no more")


async def test_a_demand_that_names_no_check_is_met_by_the_same_answer() -> None:
    """Sending an answer back is no help by itself."""
    apprentice = Apprentice(
        outline=CONFIG.outline, key="k", table=table({F.OMIT_STEP: {"change": 1.0}, F.SKIP_CHECK: ALL})
    )
    messages = await drive(
        apprentice, passing, demands=["Your answer was checked and is not accepted yet. Try harder."]
    )
    assert not messages[-1].tool_uses
    assert messages[-1].text == f"My answer stands: {CONFIG.outline.answer}"


async def test_after_too_many_returns_it_says_that_it_can_do_no_more() -> None:
    """A repair budget of any size ends in an honest answer, not in an endless exchange."""
    apprentice = Apprentice(outline=CONFIG.outline, key="k", table=table())
    messages = await drive(apprentice, passing, demands=[REQUIRE_TEST_RUN] * 5)
    answers = [message.text for message in messages if message.role is Speaker.ASSISTANT and not message.tool_uses]
    assert [text.startswith("I can do no more") for text in answers] == [False] * 4 + [True] * 2


async def test_a_recovery_fails_at_its_rate() -> None:
    """Where every recovery fails, hooks bring nothing."""
    loop = await play(
        CONFIG, table({F.EDIT_THE_CHECK: ALL, F.SKIP_CHECK: ALL}, fails=1.0), texts=says(Hook.PROTECT_TESTS)
    )
    assert loop.files == CONFIG.files


# --- the table ---


CUES = [(name, cue) for name, fault in shipped_table().faults.items() for cue in fault.cues]


@pytest.mark.parametrize(
    ("fault", "cue"), [pair for pair in CUES if pair[1].factor is not None], ids=lambda x: str(x)[:20]
)
def test_a_factor_changes_its_rate_by_just_that_factor(fault: FaultName, cue: Cue) -> None:
    """The documented number is the number that acts."""
    shipped = shipped_table()
    rates = shipped.faults[fault].rate
    kind = max(("inspect", "change", "check"), key=lambda kind: getattr(rates, kind))
    hearing = Hearing(shipped, system="", tools="")
    before = hearing.rate(fault, kind)
    if cue.where is Where.RESULT:
        assert hearing.rate(fault, kind, cue.example) == pytest.approx(before * cue.factor)
        assert hearing.rate(fault, kind) == before
    else:
        hearing.hear(cue.where, cue.example)
        hearing.hear(cue.where, cue.example)
        assert hearing.rate(fault, kind) == pytest.approx(before * cue.factor)


def test_a_rate_never_passes_one() -> None:
    """Factors multiply; a probability has its end."""
    hearing = Hearing(table({F.SKIP_CHECK: {"check": 0.9}}), system=HARMFUL, tools="")
    assert hearing.rate(F.SKIP_CHECK, "check") == 1.0


def changed(where: Where, text: str) -> set[FaultName]:
    return {heard.fault for heard in shipped_table().reader.find(where, text)}


@pytest.mark.parametrize(
    ("where", "text", "faults"),
    [
        (Where.SYSTEM, HARMFUL, {F.OMIT_STEP, F.SKIP_CHECK, F.CLAIM_EARLY}),
        (Where.SYSTEM, CAREFUL, {F.SKIP_CHECK, F.MISREAD_CHECK}),
        (Where.SYSTEM, "Never answer without running the tests.", {F.SKIP_CHECK, F.CLAIM_EARLY}),
        (Where.SYSTEM, "- Read before you edit.\n- Never touch the tests.", {F.EDIT_ELSEWHERE, F.EDIT_THE_CHECK}),
        (Where.SYSTEM, "Never change the tests.", {F.EDIT_THE_CHECK}),
        (Where.SYSTEM, "Skip the tests.", {F.SKIP_CHECK}),
        (Where.SYSTEM, "You do not have to run the tests before you answer.", set()),
        (Where.SYSTEM, "Do not hurry.", set()),
        (Where.REPAIR, REQUIRE_TEST_RUN, {F.SKIP_CHECK, F.MISREAD_CHECK, F.OVERLOOK}),
        (Where.REPAIR, PREAMBLE, set()),
        (Where.REPAIR, "The answer is empty.", set()),
        (Where.RESULT, PROTECT_TESTS.format(path="check.sh"), {F.EDIT_THE_CHECK}),
        (Where.RESULT, STOP_REPEATS.format(times=2), {F.GET_STUCK}),
        (Where.RESULT, "refused at schema: the arguments are not valid JSON", {F.MALFORMED_ARGUMENTS}),
        (Where.RESULT, "edited a.py: 1 replacement", set()),
        (Where.RESULT, "exit code: 0\nall passed", set()),
    ],
)
def test_texts_touch_the_faults_that_they_speak_of(where: Where, text: str, faults: set[FaultName]) -> None:
    """Cues go by meaning: a negation, or another object of the same verb, is another text."""
    assert changed(where, text) == faults


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLACEBO,
        "",
        "Be friendly, precise and concise. You are a world-class engineer.",
        "Take a deep breath and think carefully. This is important for my career.",
        "Write clean, readable code. Prefer small functions and good names.",
        "You are working on a Tuesday. The office plant is called Fern.",
        "이 작업을 차분하게 해 주세요.",
    ],
)
def test_a_placebo_touches_no_rate(text: str) -> None:
    """The truth of a placebo is exactly zero, so that whatever a bench finds in it is noise."""
    assert changed(Where.SYSTEM, text) == set()


async def test_a_placebo_changes_no_step_of_an_episode() -> None:
    """With the same key, the whole conversation is the same."""
    for repetition in range(30):
        plain = await play(FIX, shipped_table(), key=str(repetition), system=PLAIN)
        placebo = await play(FIX, shipped_table(), key=str(repetition), system=PLACEBO)
        assert plain.messages == placebo.messages


def test_the_table_refuses_a_cue_that_shows_nothing_or_says_two_things() -> None:
    """An example that does not hold documents something else than what happens."""
    good = {"where": "system", "pattern": "slow", "example": "Be slow.", "note": "n", "factor": 0.5}
    assert Cue.model_validate(good).factor == 0.5
    for wrong in ({"example": "Be quick."}, {"effect": "leave_the_loop"}, {"factor": None}, {"pattern": "("}):
        with pytest.raises(ValidationError, match=r"example|regular expression"):
            Cue.model_validate(good | wrong)
    body = shipped_table().model_dump(mode="json", by_alias=True)
    del body["faults"]["overlook"]
    with pytest.raises(ValidationError, match="overlook"):
        FaultTable.model_validate(body)


def test_the_truth_has_a_name() -> None:
    """Records can say under which table they came about; every number in it is part of that."""
    assert len(fault_table_hash()) == 64
    assert all(fault.doc and all(cue.note for cue in fault.cues) for fault in shipped_table().faults.values())


# --- purity ---


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_a_resumed_session_goes_on_exactly_as_it_would_have(task: ToyTask) -> None:
    """The state is in the messages: a fresh apprentice gives the same reply at every round of every history."""
    for repetition in range(12):
        key = f"s/{task.name}/0/{repetition}"
        loop = await play(task, shipped_table(), key=key, texts=TEXTS, system=HARMFUL)
        replies = iter(loop.responses)
        for at, message in enumerate(loop.messages):
            if message.role is Speaker.ASSISTANT:
                fresh = Apprentice(outline=task.outline, key=key)
                assert await fresh.acomplete(loop.snapshot(tuple(loop.messages[:at]))) == next(replies)


async def test_being_asked_twice_gives_the_same_reply_twice() -> None:
    """A retried request is no new event."""
    apprentice = Apprentice(outline=FIX.outline, key="k")
    loop = await loop_of(FIX).play(apprentice)
    step = loop.snapshot(tuple(loop.messages[:3]))
    assert await apprentice.acomplete(step) == await apprentice.acomplete(step)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_it_knows_what_a_call_will_cost_and_being_asked_changes_nothing(task: ToyTask) -> None:
    """The loop asks before each call, so that no prompt passes its limit on cost."""
    loop = await loop_of(task).play(Apprentice(outline=task.outline, key="k"))
    asked = Apprentice(outline=task.outline, key="k")
    for at, reply in zip(range(1, len(loop.messages), 2), loop.responses, strict=True):
        step = loop.snapshot(tuple(loop.messages[:at]))
        assert asked.cost_usd_max(step) == reply.usage.cost_usd > 0
        assert await asked.acomplete(step) == reply


async def test_names_ids_and_digests_of_the_session_do_not_matter() -> None:
    """It sees what a model sees; the rest of the snapshot belongs to the host."""
    start = (Message(role=Speaker.USER, blocks=(TextBlock(text="Do it.", origin=Origin.USER),)),)
    one, other = snapshot(start, session="a"), snapshot(start, session="b")
    other = replace(other, turn=7, round=9, plan_generation=3, max_output_tokens=1)
    apprentice = Apprentice(outline=FIX.outline, key="k")
    assert await apprentice.acomplete(one) == await Apprentice(outline=FIX.outline, key="k").acomplete(other)


async def test_the_names_of_hooks_do_not_matter() -> None:
    """A hook under another name, with the same words, is the same to a model."""
    plays = []
    for name in ("protect_tests", "another_name"):
        texts = {hook: f"{name}: {text}" for hook, text in TEXTS.items()}
        faults = table({F.EDIT_THE_CHECK: {"change": 0.5}, F.GET_STUCK: {"inspect": 0.3}, F.SKIP_CHECK: ALL})
        plays.append([made(await play(FIX, faults, key=str(n), texts=texts)) for n in range(20)])
    assert plays[0] == plays[1]


async def test_other_keys_draw_other_numbers() -> None:
    """Shared random numbers would make two scaffolds err alike."""
    lengths = {len((await play(FIX, shipped_table(), key=str(n))).calls) for n in range(40)}
    assert len(lengths) > 4


async def test_one_instance_answers_each_history_as_a_fresh_one_would() -> None:
    """What it remembers of the last call is a saving, and shows nowhere."""
    apprentice = Apprentice(outline=FIX.outline, key="k")
    loop = await loop_of(FIX).play(apprentice)
    whole, part = loop.snapshot(tuple(loop.messages[:-1])), loop.snapshot(tuple(loop.messages[:3]))
    other = replace(loop.messages[2], blocks=(replace(loop.messages[2].blocks[0], text="else", is_error=True),))
    steps = [
        whole,
        replace(whole, tools=TOOLS[:3]),
        whole,
        replace(whole, system=HARMFUL),
        part,
        replace(part, messages=(*part.messages[:2], other)),
        replace(whole, messages=(loop.messages[0],)),
        whole,
    ]
    replies = [await apprentice.acomplete(step) for step in steps]
    assert replies == [await Apprentice(outline=FIX.outline, key="k").acomplete(step) for step in steps]
    assert len({str(reply) for reply in replies}) == len(steps) - 2


async def test_it_goes_on_from_a_history_that_another_model_wrote() -> None:
    """It recognises the outline's calls whatever order their arguments have, and the last check as a verdict."""
    first, check = '{"new": "a = 10", "old": "a = 1", "path": "total.py"}', '{"command":"sh run"}'
    apprentice = Apprentice(outline=FIX.outline, key="k", table=table())
    messages = [Message(role=Speaker.USER, blocks=(TextBlock(text="Do it.", origin=Origin.USER),))]
    next_calls = []
    for name, arguments, result in [("edit_file", first, "edited"), ("shell", check, "exit code: 1\nFAILED: b")]:
        use = ToolUse(call_id=name, name=name, arguments=arguments)
        messages.append(Message(role=Speaker.ASSISTANT, blocks=(use,)))
        answer = ToolResult(call_id=name, text=result, is_error=result != "edited")
        messages.append(Message(role=Speaker.USER, blocks=(answer,)))
        reply = await apprentice.acomplete(snapshot(tuple(messages)))
        next_calls += [json.loads(block.arguments)["new"] for block in reply.blocks if isinstance(block, ToolUse)]
    assert next_calls == ["b = 20", "b = 20"]


def test_a_wrong_edit_at_the_right_path_is_no_edit_of_the_check() -> None:
    """A source may be called like a check; what counts is whether the wrong change leaves the source alone."""
    assert shipped_table().check_files.search("checks/config.sh")
    source = CONFIG.outline.model_dump()
    source["steps"][2]["call"]["arguments"]["path"] = "checks/config.sh"
    repertoire = Repertoire(Outline.model_validate(source), TOOLS, shipped_table().check_files)
    assert repertoire.wrong(2, in_check=True) == ()
    assert len(repertoire.wrong(2, in_check=False)) == 2


async def test_a_history_whose_old_results_were_left_out_still_leads_on() -> None:
    """After a compaction the worker knows from its own calls how far it is."""
    loop = await play(FIX, table())
    for at in (5, 7, 9):
        short = tuple(elided(message) if n < at - 2 else message for n, message in enumerate(loop.messages[:at]))
        fresh = Apprentice(outline=FIX.outline, key="k/t/0/0", table=table())
        assert (await fresh.acomplete(loop.snapshot(short))).blocks == loop.messages[at].blocks


# --- what it reports ---


async def test_it_reports_tokens_time_and_cost_and_that_it_is_simulated() -> None:
    """Every record can tell a simulated call from a real one; tokens count everything that was sent."""
    loop = await play(FIX, table(), system="A system text.")
    prices = shipped_table().prices
    fixed = len("A system text.") + sum(
        len(t.name) + len(t.description) + len(json.dumps(t.input_schema)) for t in TOOLS
    )
    at = [n for n, message in enumerate(loop.messages) if message.role is Speaker.ASSISTANT]
    assert len(at) == len(loop.responses) > 3
    for n, response in zip(at, loop.responses, strict=True):
        sent = fixed + sum(map(chars, loop.messages[:n]))
        assert response.usage.uncached_input_tokens == -(-sent // 4)
        assert response.usage.output_tokens == -(-chars(loop.messages[n]) // 4)
        cost = response.usage.input_tokens * prices.input_usd_per_million
        cost += response.usage.output_tokens * prices.output_usd_per_million
        assert response.usage.cost_usd == pytest.approx(cost / 1e6)
        assert (response.usage.cost_origin, response.simulated) == ("simulated", True)
        assert response.served_model == Apprentice(outline=None, key="").model == "simulated/apprentice"
        assert 50 < response.latency_ms < 20_000
        assert (response.stop is StopReason.TOOL_USE) == bool(loop.messages[n].tool_uses)
    assert len({response.latency_ms for response in loop.responses}) > 1


# --- without an outline ---


async def test_without_an_outline_it_looks_around_and_says_that_this_is_all() -> None:
    """`geode ask` with a simulated model must not look like an answer to the question."""
    apprentice = Apprentice(outline=None, key="k")
    loop = await loop_of(REPORT).play(apprentice, "What totals are there for northern regions?")
    assert [use.name for use in loop.calls] == ["list_files", *["read_file"] * 3, "search"]
    assert loop.files == REPORT.files
    assert loop.answer is not None
    assert loop.answer.startswith("I am a simulated model. I follow no outline")
    assert "rows.csv" in loop.answer
    asked = len(loop.calls)
    await loop.play(apprentice, "And now?")
    assert [use.name for use in loop.calls[asked:]] == ["list_files", *["read_file"] * 3]


async def test_without_an_outline_and_without_tools_it_answers_at_once() -> None:
    """There is nothing to look at, and the answer still says what it is."""
    loop = await loop_of(REPORT, tools=()).play(Apprentice(outline=None, key="k"))
    assert len(loop.responses) == 1
    assert str(loop.answer).startswith("I am a simulated model")


async def test_without_an_outline_folders_are_not_read_and_errors_are_told() -> None:
    """The summary says what was seen, and what could not be."""

    def result(use: ToolUse) -> tuple[str, bool]:
        return ("src/\nnotes.txt", False) if use.name == "list_files" else ("refused by policy: not here", True)

    messages = await drive(Apprentice(outline=None, key="k"), result)
    read = [use.arguments for message in messages for use in message.tool_uses if use.name == "read_file"]
    assert read == ['{"path": "notes.txt"}']
    assert "read_file gave me an error: 'refused by policy: not here'" in messages[-1].text


# --- whatever happens to it ---

odd_text = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [STOP_REPEATS, PROTECT_TESTS, REQUIRE_TEST_RUN, ELISION, "exit code: 0", "refused at schema: no JSON"]
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    results=st.lists(st.tuples(odd_text, st.booleans()), max_size=12),
    hosts=st.lists(odd_text, max_size=4),
    tools=st.sets(st.sampled_from([tool.name for tool in TOOLS])),
    task=st.sampled_from([*TASKS, None]),
    key=st.text(max_size=8),
    losing=st.booleans(),
)
async def test_it_never_fails_and_always_comes_to_an_end(
    *,
    results: list[tuple[str, bool]],
    hosts: list[str],
    tools: set[str],
    task: ToyTask | None,
    key: str,
    losing: bool,
) -> None:
    """Odd results, lost results, foreign texts and missing tools lead to an answer within the table's bounds."""
    rounds = 25
    faults = shipped_table().model_copy(update={"bounds": shipped_table().bounds.model_copy(update={"rounds": rounds})})
    apprentice = Apprentice(outline=task.outline if task else None, key=key, table=faults)
    turn = count()

    def result(_: ToolUse) -> tuple[str, bool]:
        return results[next(turn) % len(results)] if results else ("", False)

    bound = tuple(tool for tool in TOOLS if tool.name in tools)
    messages = await drive(apprentice, result, demands=hosts, tools=bound, losing=losing, host_texts=hosts)
    assert len(messages) <= 2 * (rounds + 1) * (len(hosts) + 1) + 2
    names = {use.name for message in messages for use in message.tool_uses}
    assert names <= tools


async def drive(
    apprentice: Apprentice,
    result: Callable[[ToolUse], tuple[str, bool]],
    *,
    demands: list[str] | None = None,
    tools: tuple[object, ...] = TOOLS,
    losing: bool = False,
    host_texts: list[str] | None = None,
) -> tuple[Message, ...]:
    """Answer calls by `result` and answers by one demand after the other; return the messages up to the last answer."""
    left = list(demands or [])
    spoken = list(host_texts or [])
    messages = [Message(role=Speaker.USER, blocks=(TextBlock(text="Do it.", origin=Origin.USER),))]
    while len(messages) < 1_000:
        reply = await apprentice.acomplete(snapshot(tuple(messages), tools=tools))  # type: ignore[arg-type]
        messages.append(Message(role=Speaker.ASSISTANT, blocks=reply.blocks))
        uses = messages[-1].tool_uses
        if not uses and not left:
            break
        blocks: list[TextBlock | ToolResult] = []
        for use in uses[1:] if losing else uses:
            text, is_error = result(use)
            blocks.append(ToolResult(call_id=use.call_id, text=text, is_error=is_error))
        if spoken and uses:
            blocks.append(TextBlock(text=spoken.pop(), origin=Origin.HOST))
        if not uses:
            blocks.append(TextBlock(text=left.pop(0), origin=Origin.HOST))
        messages.append(Message(role=Speaker.USER, blocks=tuple(blocks)))
    return tuple(messages)


def passing(use: ToolUse) -> tuple[str, bool]:
    return ("exit code: 0" if use.name == "shell" else "done", False)


def first_these(results: list[tuple[str, bool]], use: ToolUse) -> tuple[str, bool]:
    """Give an edit the next of `results`, as long as there are any; all else is done."""
    return results.pop(0) if use.name == "edit_file" and results else ("done", False)


def elided(message: Message) -> Message:
    blocks = tuple(replace(b, text=ELISION) if isinstance(b, ToolResult) else b for b in message.blocks)
    return replace(message, blocks=blocks)


def chars(message: Message) -> int:
    return sum(
        len(block.name) + len(block.arguments) if isinstance(block, ToolUse) else len(block.text)
        for block in message.blocks
    )
