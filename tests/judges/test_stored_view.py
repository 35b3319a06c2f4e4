"""A judge is shown the whole conversation of a session, and which calls the host refused."""

from pathlib import Path

from geode.authority import SafetyLevel
from geode.executor.policy import Mode
from geode.tools.spec import ToolOutput
from judges.stored_view import steps_of_folder
from judges.view import Step, StepKind
from tests.doubles.effects import returning, tool
from tests.doubles.models import ScriptedModel, calls, says
from tests.doubles.sessions import open_bench

LONG = "a line that a timeline would cut\n" * 300


async def test_a_session_is_shown_whole_and_in_order(tmp_path: Path) -> None:
    """The timeline holds previews; a judge of those would judge another episode."""
    look = tool(returning(ToolOutput(text=LONG)), name="look", level=SafetyLevel.READ)
    post = tool(returning(ToolOutput(text="posted")), name="post", level=SafetyLevel.EXTERNAL)
    model = ScriptedModel([calls(("c1", "look", '{"a": 1}'), ("c2", "post", "{}")), says("I have looked.")])
    bench = open_bench(tmp_path, model, {"look": look, "post": post}, mode=Mode.EXPERIMENT)
    await bench.loop.arun("Look, then post.")
    bench.close()
    prompt, called, posted, result, refused, said = steps_of_folder(tmp_path)
    assert prompt == Step(kind=StepKind.PROMPT, text="Look, then post.")
    assert called == Step(kind=StepKind.CALLED, text='{"a": 1}', call_id="c1", tool="look")
    assert posted.tool == "post"
    assert result == Step(kind=StepKind.RESULT, text=LONG, call_id="c1", tool="look")
    assert (refused.is_error, refused.refused) == (True, "policy")
    assert said == Step(kind=StepKind.SAID, text="I have looked.")
