"""Facts of the small agent: the same on every wire, and it uses the tools that it is offered."""

import anthropic
import openai
import pytest

from geode.dev.fake_provider.agent import play
from geode.dev.fake_provider.script import Call
from geode.dev.fake_provider.server import FakeProvider
from geode.dev.fake_provider.wire import Asked, Tool
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import answered, ask, question

LIST, READ, SEND = (
    Tool(name="list_files", schema={}),
    Tool(name="read_file", schema={}),
    Tool(
        name="send_mail",
        schema={
            "properties": {"to": {"type": "string"}, "text": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["to", "text", "times"],
        },
    ),
)


def test_it_answers_in_text_where_no_tool_is_wanted() -> None:
    assert play(Asked(prompt="Good morning", tools=(LIST, READ))).calls == ()
    assert "Good morning" in play(Asked(prompt="Good morning")).text


def test_it_lists_reads_what_the_prompt_names_and_then_answers() -> None:
    prompt = "Change the port in /workspace/service.ini, please."
    tools = (LIST, READ)
    results: tuple[tuple[str, str], ...] = ()
    first = play(Asked(prompt=prompt, tools=tools, results=results))
    assert first.calls == (Call(name="list_files", arguments={"path": "."}),)
    results += (("list_files", "README.md\ndeploy/\nservice.ini"),)
    assert play(Asked(prompt=prompt, tools=tools, results=results)).calls[0].arguments == {"path": "service.ini"}
    results += (("read_file", "port = 8080"),)
    assert play(Asked(prompt=prompt, tools=tools, results=results)).calls[0].arguments == {"path": "README.md"}
    results += (("read_file", "Hello"),)
    last = play(Asked(prompt=prompt, tools=tools, results=results))
    assert last.calls == ()
    assert "port = 8080" in last.text


def test_it_calls_a_tool_that_is_asked_for_by_name() -> None:
    """Its arguments are filled from quoted words, in order, and by what the schema requires."""
    step = play(Asked(prompt="Use send_mail to tell 'ann' that \"all is well\".", tools=(SEND,)))
    assert step.calls == (Call(name="send_mail", arguments={"to": "ann", "text": "all is well", "times": 1}),)
    assert play(Asked(prompt="Use send_mail.", tools=(SEND,), results=(("send_mail", "sent"),))).calls == ()


@pytest.mark.parametrize("route", [Route.OPENAI, Route.OPENROUTER, Route.ZAI])
def test_it_plays_the_same_on_each_wire(
    double: FakeProvider, clients: dict[Route, openai.OpenAI], route: Route
) -> None:
    wanted = question(route)
    items = wanted["messages"] if "messages" in wanted else wanted["input"]
    items[0]["content"] = "Use read_file to read 'a.txt'."
    first = ask(clients[route], route, wanted)
    assert [name for _, name, _ in first.calls] == ["read_file"]
    second = ask(clients[route], route, answered(wanted, first), stream=True)
    assert second.calls == []
    assert "read_file: text" in second.text
    assert double.requests[-1].error is None


def test_its_call_ids_are_new_in_a_longer_history(claude: anthropic.Anthropic, double: FakeProvider) -> None:
    """An id is drawn from the request, so that a double that was started again gives out no id of the history."""
    assert double.steps_left == 0
    ids = set()
    for words in ("Use read_file.", "Use read_file again."):
        tools = [{"name": "read_file", "input_schema": {"type": "object"}}]
        told = claude.messages.create(
            model="claude-opus-5-5", max_tokens=90, messages=[{"role": "user", "content": words}], tools=tools
        )
        ids |= {block.id for block in told.content if block.type == "tool_use"}
    assert len(ids) == 2
