"""Facts that hold on each wire of the OpenAI SDK: round trips, endings, figures."""

import json

import openai
import pytest

from geode.dev.fake_provider.script import Call, Ending, Figures, Script, Step, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import IS_CHAT, MODELS, answered, ask, question

BY_KEY = (Route.OPENAI, Route.OPENROUTER, Route.ZAI)
Clients = dict[Route, openai.OpenAI]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("route", BY_KEY)
def test_a_round_trip_with_parallel_calls(
    double: FakeProvider, clients: Clients, route: Route, count: int, stream: bool
) -> None:
    given = [{"path": f"{at}.txt", "text": 'ä"\n' * at} for at in range(count)]
    calls = tuple(Call(name="read_file", arguments=arguments) for arguments in given)
    look = Step(text="I look.", thinking=(Thinking(text="a thought that takes more than one piece"),), calls=calls)
    double.play(Script(steps=(look, Step(text="done"))))
    wanted = question(route)
    first = ask(clients[route], route, wanted, stream=stream)
    assert first.text == "I look."
    assert [json.loads(arguments) for _, _, arguments in first.calls] == given
    assert len({call_id for call_id, _, _ in first.calls}) == count
    second = ask(clients[route], route, answered(wanted, first), stream=stream)
    assert second.text == "done"
    assert double.steps_left == 0


def test_a_subscription_streams_its_round_trip(double: FakeProvider, clients: Clients) -> None:
    route = Route.OPENAI_CODEX
    look = Step(thinking=(Thinking(text="hm"),), calls=(Call(name="read_file"), Call(name="read_file")))
    double.play(Script(steps=(look, Step(text="done"))))
    wanted = question(route)
    first = ask(clients[route], route, wanted, stream=True)
    assert ask(clients[route], route, answered(wanted, first), stream=True).text == "done"
    assert {request.route for request in double.requests} == {Route.OPENAI_CODEX}


@pytest.mark.parametrize(
    ("route", "ending", "word"),
    [
        (Route.OPENAI, Ending.END, "completed"),
        (Route.OPENAI, Ending.LENGTH, "incomplete max_output_tokens"),
        (Route.OPENAI, Ending.WINDOW, "incomplete max_output_tokens"),
        (Route.OPENAI, Ending.FAILED, "failed"),
        (Route.OPENAI, "content_filter", "incomplete content_filter"),
        (Route.OPENAI, "brand_new", "incomplete brand_new"),
        (Route.OPENROUTER, Ending.END, "stop"),
        (Route.OPENROUTER, Ending.LENGTH, "length"),
        (Route.OPENROUTER, Ending.REFUSAL, "content_filter"),
        (Route.OPENROUTER, Ending.FAILED, "error"),
        (Route.OPENROUTER, "brand_new", "brand_new"),
        (Route.ZAI, Ending.END, "stop"),
        (Route.ZAI, Ending.LENGTH, "length"),
        (Route.ZAI, Ending.WINDOW, "model_context_window_exceeded"),
        (Route.ZAI, Ending.REFUSAL, "sensitive"),
        (Route.ZAI, Ending.FAILED, "network_error"),
        (Route.ZAI, "brand_new", "brand_new"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_each_ending_has_its_word(
    double: FakeProvider, clients: Clients, route: Route, *, ending: Ending | str, word: str, stream: bool
) -> None:
    double.play(Script(steps=(Step(text="so", ending=ending),)))
    told = ask(clients[route], route, question(route), stream=stream)
    assert told.ending == word


@pytest.mark.parametrize("route", BY_KEY)
def test_a_pause_is_no_ending_of_these_wires(double: FakeProvider, clients: Clients, route: Route) -> None:
    """A script that asks for one is wrong, and is told so."""
    double.play(Script(steps=(Step(text="so", ending=Ending.PAUSE),)))
    with pytest.raises(openai.BadRequestError, match="an ending that this wire does not know"):
        ask(clients[route], route, question(route))


@pytest.mark.parametrize("route", BY_KEY)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_can_be_cut_off_by_the_limit(double: FakeProvider, clients: Clients, route: Route, stream: bool) -> None:
    cut = Call(name="read_file", arguments='{"path": "a.t')
    double.play(Script(steps=(Step(calls=(cut,), ending=Ending.LENGTH),)))
    told = ask(clients[route], route, question(route), stream=stream)
    assert told.calls[0][2] == '{"path": "a.t'
    assert told.ending in ("length", "incomplete max_output_tokens")


@pytest.mark.parametrize("route", BY_KEY)
@pytest.mark.parametrize("stream", [False, True])
def test_cached_tokens_are_part_of_the_input(
    double: FakeProvider, clients: Clients, route: Route, stream: bool
) -> None:
    """Unlike Anthropic's three figures: what is cached must not be counted twice."""
    figures = Figures(input_tokens=10, cache_read_tokens=20, output_tokens=7, reasoning_tokens=3, cost_usd=0.25)
    double.play(Script(steps=(Step(text="a", figures=figures, served_model="another"),)))
    told = ask(clients[route], route, question(route), stream=stream)
    assert told.model == "another"
    usage = told.usage
    assert usage.total_tokens == 37
    if route in IS_CHAT:
        assert (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens) == (30, 20)
        assert usage.completion_tokens_details.reasoning_tokens == 3
    else:
        assert (usage.input_tokens, usage.input_tokens_details.cached_tokens) == (30, 20)
        assert usage.output_tokens_details.reasoning_tokens == 3
    assert getattr(usage, "cost", None) == (0.25 if route is Route.OPENROUTER else None)


@pytest.mark.parametrize("route", BY_KEY)
def test_an_unknown_model_is_refused(double: FakeProvider, clients: Clients, route: Route) -> None:
    wanted = {**question(route), "model": "model/of-nobody"}
    with pytest.raises(openai.BadRequestError):
        ask(clients[route], route, wanted)
    double.play(Script(models=("model/of-nobody",)))
    assert ask(clients[route], route, wanted).model == "model/of-nobody"


@pytest.mark.parametrize("route", BY_KEY)
def test_a_key_of_another_provider_is_refused(double: FakeProvider, route: Route) -> None:
    key = double.key(Route.ANTHROPIC)
    with (
        openai.OpenAI(api_key=key, base_url=double.base_url(route), max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        ask(client, route, question(route))
    assert key not in repr(double.requests)


def test_the_models_are_listed(clients: Clients) -> None:
    for route in (Route.OPENAI, Route.OPENROUTER):
        listed = {model.id for model in clients[route].models.list()}
        assert MODELS[route] in listed
        assert not any("jev-1" in name for name in listed)
