"""Facts of a script that is read from a file."""

from pathlib import Path

import pytest

from geode.dev.fake_provider.script import Call, Cut, Ending, Failure, HttpReply, Script, Step, Thinking
from geode.dev.fake_provider.script_file import ScriptInvalid, read_script
from geode.llm.routes import Route

YAML = """
steps:
  - text: I look.
    thinking: [{text: hm}]
    calls: [{name: read_file, arguments: {path: a.txt}}, {name: read_file, arguments: '{"path": "b', call_id: c2}]
  - {text: so, ending: length}
  - {text: so, ending: brand_new, cut: {after_events: 3}}
by_route:
  zai: [{failure: credits, retry_after_s: 2}]
by_model:
  gpt-6-sol: [{failure: {status: 418, body: "{}"}}]
then: {text: done}
context_tokens: 1000
"""


def test_a_file_says_what_a_script_says(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(YAML)
    calls = (
        Call(name="read_file", arguments={"path": "a.txt"}),
        Call(name="read_file", arguments='{"path": "b', call_id="c2"),
    )
    script = read_script(path)
    assert script == Script(
        steps=(
            Step(text="I look.", thinking=(Thinking(text="hm"),), calls=calls),
            Step(text="so", ending="length"),
            Step(text="so", ending="brand_new", cut=Cut(after_events=3)),
        ),
        by_route={Route.ZAI: (Step(failure=Failure.CREDITS, retry_after_s=2),)},
        by_model={"gpt-6-sol": (Step(failure=HttpReply(status=418, body="{}")),)},
        then=Step(text="done"),
        context_tokens=1000,
    )
    assert script.steps[1].end is Ending.LENGTH
    assert script.steps[2].end == "brand_new"


def test_json_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"then": {"text": "done"}}')
    assert read_script(path) == Script(then=Step(text="done"))


def test_an_empty_file_leaves_everything_to_the_agent(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("")
    assert read_script(path).is_empty


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step: []", "step: Unexpected keyword argument"),
        ("steps: [{txt: hi}]", "steps.0.txt: Unexpected keyword argument"),
        ("steps: [{failure: broken}]", "steps.0.failure"),
        ("by_route: {nowhere: []}", "by_route.nowhere"),
        ("steps: [", "expected the node content"),
        ("steps: []\nsteps: []", "stands twice"),
    ],
)
def test_what_no_script_can_say_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """A misspelt field that is silently dropped would make a test of something else."""
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ScriptInvalid) as raised:
        read_script(path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)
