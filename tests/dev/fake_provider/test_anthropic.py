"""Facts of the Messages wire, through the real SDK: what is served is whole, and each broken rule is refused."""

import copy
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import pytest

from geode.dev.fake_provider.script import Call, Cut, Ending, Failure, Figures, Script, Step, StreamError, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route

MODEL = "claude-opus-5-5"
TOOL = {"name": "read_file", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}
LOOK = Step(
    text="I look.",
    thinking=(Thinking(text="which file?"), Thinking(text="a secret", redacted=True)),
    calls=(Call(name="read_file"),),
)


def ask(client: anthropic.Anthropic, *, stream: bool = False, **more: Any) -> Any:
    wanted: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [TOOL],
    } | more
    if not stream:
        return client.messages.create(**wanted)
    with client.messages.stream(**wanted) as events:
        return events.get_final_message()


def answered(first: Any, *more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the history in which each call of `first` was answered."""
    blocks = first.to_dict()["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "text"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [*results, *more]},
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("count", range(1, 9))
def test_a_round_trip_with_parallel_calls(
    double: FakeProvider, claude: anthropic.Anthropic, count: int, stream: bool
) -> None:
    calls = tuple(Call(name="read_file", arguments={"path": f"{at}.txt", "text": 'ä"\n' * at}) for at in range(count))
    look = Step(text="I look.", thinking=(Thinking(text="so many"), Thinking(redacted=True)), calls=calls)
    double.play(Script(steps=(look, Step(text="done"))))
    first = ask(claude, stream=stream)
    assert [block.type for block in first.content] == ["thinking", "redacted_thinking", "text", *["tool_use"] * count]
    assert [block.input for block in first.content[3:]] == [call.arguments for call in calls]
    assert first.stop_reason == "tool_use"
    second = ask(claude, stream=stream, messages=answered(first))
    assert second.content[0].text == "done"
    assert second.stop_reason == "end_turn"
    assert double.steps_left == 0


def test_whole_and_streamed_say_the_same(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(then=LOOK))
    whole, streamed = ask(claude).to_dict(), ask(claude, stream=True).to_dict()
    for told in (whole, streamed):
        del told["id"], told["content"][3]["id"], told["usage"]
        told.pop("stop_details", None)
    assert whole == streamed


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def made(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = to

    return made


def drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def made(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return made


def repeat(*path: Any) -> Callable[[dict[str, Any]], None]:
    def made(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path:
            at = at[part]
        at.append(copy.deepcopy(at[0]))

    return made


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (drop("messages", 2), "`tool_use` ids were found without `tool_result` blocks immediately after"),
        (repeat("messages", 2, "content"), "each tool_use must have a single result"),
        (change("messages", 2, "content", 0, "tool_use_id", to="toolu_other"), "immediately after: toolu_"),
        (drop("messages", 1), "unexpected `tool_use_id`"),
        (
            lambda body: body["messages"][2]["content"].insert(0, {"type": "text", "text": "first"}),
            "must come first",
        ),
        (change("temperature", to=0), "temperature: Extra inputs are not permitted"),
        (change("top_p", to=0.5), "top_p: Extra inputs are not permitted"),
        (change("top_k", to=5), "top_k: Extra inputs are not permitted"),
        (lambda body: body["messages"].append({"role": "assistant", "content": "So"}), "prefill"),
        (change("messages", 1, "content", 0, "thinking", to="another file"), "Invalid `signature`"),
        (change("messages", 1, "content", 0, "signature", to="made up"), "Invalid `signature`"),
        (change("messages", 1, "content", 1, "data", to="made up"), "Invalid `data`"),
        (drop("messages", 1, "content", 0), "cannot be modified"),
        (drop("messages", 1, "content", 1), "cannot be modified"),
        (lambda body: body["messages"][1]["content"].insert(0, body["messages"][1]["content"].pop(1)), "be modified"),
        (drop("tools"), "must define tools"),
        (change("tools", 0, "name", to="read.file"), "is not allowed"),
        (change("tools", 0, "input_schema", to={}), "input_schema.type: Field required"),
        (lambda body: body["tools"].append(TOOL), "Tool names must be unique"),
        (drop("max_tokens"), "max_tokens: Field required"),
        (change("max_tokens", to=-1), "greater than or equal to 0"),
        (change("max_tokens", to=200_000), "maximum allowed number of output tokens"),
        (change("messages", 0, "content", to=" "), "must be non-empty"),
        (
            change("messages", 0, "content", to=[{"type": "text", "text": "go", "citations": [{"type": "x"}]}]),
            "citations",
        ),
        (change("messages", 1, "content", 1, to={"type": "document", "source": {}}), "of the user role"),
        (change("messages", 1, "content", 1, to={"type": "brand_new"}), "unknown 'brand_new'"),
        (change("thinking", to={"type": "enabled", "budget_tokens": 100}), "greater than or equal to 1024"),
        (change("thinking", to={"type": "enabled", "budget_tokens": 1024}), "must be greater than"),
        (change("thinking", to={"type": "disabled"}), "is not supported"),
        (change("thinking", to={"type": "often"}), "does not match"),
        (change("output_config", to={"effort": "huge"}), "output_config.effort"),
        (change("tool_choice", to={"type": "tool", "name": "other"}), "not found in provided tools"),
        (
            lambda body: (body.update(messages=body["messages"][:1], tool_choice={"type": "auto"}), body.pop("tools")),
            "tool_choice may only be specified while providing tools",
        ),
        (change("messages", 2, "role", to="friend"), "Input should be 'user' or 'assistant'"),
        (change("messages", to="go"), "malformed"),
        (change("messages", 1, to={"role": "assistant"}), "malformed"),
        (
            lambda body: (
                body.update(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000),
                body.update(tool_choice={"type": "any"}),
            ),
            "may not be enabled when tool_choice forces",
        ),
        (
            change(
                "system",
                to=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(5)],
            ),
            "A maximum of 4 blocks",
        ),
    ],
)
def test_each_broken_rule_is_refused_and_takes_no_step(
    double: FakeProvider, claude: anthropic.Anthropic, broken: Callable[[dict[str, Any]], None], said: str
) -> None:
    """The same history without the fault is answered: nothing but the fault is refused."""
    double.play(Script(steps=(LOOK, Step(text="done"))))
    history = answered(ask(claude))
    sound: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "messages": history, "tools": [TOOL]}
    body = copy.deepcopy(sound)
    broken(body)
    refused = raw(double, body)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert said in error["message"]
    assert double.steps_left == 1
    assert raw(double, sound).json()["content"] == [{"type": "text", "text": "done"}]


def raw(double: FakeProvider, body: object, **headers: str) -> httpx.Response:
    named = {"x_api_key": double.key(Route.ANTHROPIC), "anthropic_version": "2026-10-21"} | headers
    sent = {name.replace("_", "-"): value for name, value in named.items() if value}
    return httpx.post(
        double.base_url(Route.ANTHROPIC) + "/v1/messages", json=body, headers=sent, trust_env=False, verify=False
    )


def test_reasoning_of_an_earlier_loop_may_go_but_not_change(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(LOOK,), then=Step(text="done")))
    history = answered(ask(claude))
    history += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "and again"}]
    ask(claude, messages=history)
    without = copy.deepcopy(history)
    del without[1]["content"][0]
    ask(claude, messages=without)
    history[1]["content"][0]["thinking"] = "another"
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        ask(claude, messages=history)


def test_hidden_thinking_comes_back_empty_with_its_signature(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    """A block that looks empty must not be dropped."""
    double.play(Script(steps=(LOOK, Step(text="done"))))
    how = {"thinking": {"type": "adaptive", "display": "omitted"}}
    first = ask(claude, stream=True, **how)
    assert first.content[0].thinking == ""
    assert first.content[0].signature
    history = answered(first)
    dropped = copy.deepcopy(history)
    del dropped[1]["content"][0]
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
        ask(claude, messages=dropped, **how)
    assert ask(claude, messages=history, **how).content[0].text == "done"


def test_a_paused_turn_goes_on_without_a_user_turn(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(text="so far", ending=Ending.PAUSE), Step(text="done"))))
    first = ask(claude)
    assert first.stop_reason == "pause_turn"
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": first.to_dict()["content"]}]
    changed = copy.deepcopy(history)
    changed[1]["content"][0]["text"] = "so"
    with pytest.raises(anthropic.BadRequestError, match="prefill"):
        ask(claude, messages=changed)
    assert ask(claude, messages=history).content[0].text == "done"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("stream", [False, True])
def test_an_unknown_block_survives_the_way_there_and_back(
    double: FakeProvider, claude: anthropic.Anthropic, stream: bool
) -> None:
    block = {"type": "brand_new", "payload": {"deep": [1, None]}}
    double.play(Script(steps=(Step(text="see", blocks=(block,), calls=(Call(name="read_file"),)), Step(text="done"))))
    first = ask(claude, stream=stream)
    history = answered(first)
    assert first.content[1].type == "brand_new"
    history[1]["content"][1] = block
    assert ask(claude, messages=history).content[0].text == "done"


@pytest.mark.parametrize(
    ("ending", "stop"),
    [
        (Ending.LENGTH, "max_tokens"),
        (Ending.WINDOW, "model_context_window_exceeded"),
        (Ending.REFUSAL, "refusal"),
        ("brand_new", "brand_new"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_each_ending_has_its_word(
    double: FakeProvider, claude: anthropic.Anthropic, ending: Any, stop: str, stream: bool
) -> None:
    double.play(Script(steps=(Step(text="so", ending=ending),)))
    assert ask(claude, stream=stream).stop_reason == stop


def test_a_refusal_has_its_details(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(then=Step(refusal="I must not.")))
    for stream in (False, True):
        told = ask(claude, stream=stream)
        assert told.stop_reason == "refusal"
        assert told.stop_details.explanation == "I must not."


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_can_be_cut_off_by_the_limit(double: FakeProvider, claude: anthropic.Anthropic, stream: bool) -> None:
    cut = Call(name="read_file", arguments='{"path": "a.t')
    double.play(Script(steps=(Step(calls=(cut,), ending=Ending.LENGTH),)))
    told = ask(claude, stream=stream)
    assert told.stop_reason == "max_tokens"
    assert told.content[0].type == "tool_use"
    assert told.content[0].input in ({}, {"path": "a.t"})


def test_a_cut_stream_has_no_stop_reason(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(text="a long answer that comes in pieces", cut=Cut(after_events=4)),)))
    told = ask(claude, stream=True)
    assert told.stop_reason is None
    assert told.content[0].text == "a long answer that comes"


def test_a_dropped_stream_raises(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(text="a long answer", cut=Cut(after_events=3, drop=True)),)))
    with pytest.raises(httpx2.RemoteProtocolError):  # its SDK does not wrap what breaks inside a stream
        ask(claude, stream=True)


def test_an_error_in_the_stream_has_status_200(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(text="a long answer", stream_error=StreamError(after_events=3)),)))
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask(claude, stream=True)
    assert raised.value.status_code == 200
    assert raised.value.type == "overloaded_error"


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (Failure.BAD_KEY, 401, "authentication_error"),
        (Failure.CREDITS, 402, "billing_error"),
        (Failure.FORBIDDEN, 403, "permission_error"),
        (Failure.UNKNOWN_MODEL, 404, "not_found_error"),
        (Failure.TIMEOUT, 408, "timeout_error"),
        (Failure.CONFLICT, 409, "conflict_error"),
        (Failure.RATE_LIMITED, 429, "rate_limit_error"),
        (Failure.SERVER, 500, "api_error"),
        (Failure.OVERLOADED, 529, "overloaded_error"),
    ],
)
def test_each_failure_has_its_status_and_type(
    double: FakeProvider, claude: anthropic.Anthropic, failure: Failure, status: int, kind: str
) -> None:
    double.play(Script(steps=(Step(failure=failure, retry_after_s=7),)))
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask(claude)
    assert (raised.value.status_code, raised.value.type) == (status, kind)
    assert raised.value.response.headers["retry-after"] == "7"
    assert raised.value.request_id == "req_fake_000001"


def test_html_under_status_200_comes_back_as_a_string(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(failure=Failure.HTML_200),)))
    assert isinstance(ask(claude), str)


def test_a_lost_connection_is_a_connection_error(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(steps=(Step(failure=Failure.DROPPED),)))
    with pytest.raises(anthropic.APIConnectionError):
        ask(claude)


def test_a_window_can_be_set(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(context_tokens=100, then=Step(text="fits")))
    assert ask(claude).content[0].text == "fits"
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: [0-9]+ tokens > 100 maximum"):
        ask(claude, messages=[{"role": "user", "content": "word " * 200}])


def test_an_unknown_model_is_not_found(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="model: claude-opus-9"):
        ask(claude, model="claude-opus-9")
    double.play(Script(models=("claude-opus-9",)))
    assert ask(claude, model="claude-opus-9").model == "claude-opus-9"


def test_the_key_and_the_version_are_needed(double: FakeProvider) -> None:
    body = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "go"}]}
    assert raw(double, body).status_code == 200
    assert raw(double, body, x_api_key="", authorization=f"Bearer {double.key(Route.ANTHROPIC)}").status_code == 200
    assert raw(double, body, x_api_key="sk-or-other").json()["error"]["message"] == "invalid x-api-key"
    missing = raw(double, body, x_api_key="")
    assert (missing.status_code, missing.json()["error"]["type"]) == (401, "authentication_error")
    assert "anthropic-version" in raw(double, body, anthropic_version="").json()["error"]["message"]


def test_figures_are_given_or_counted(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    given = Figures(input_tokens=11, cache_read_tokens=22, cache_write_tokens=33, output_tokens=44, reasoning_tokens=5)
    double.play(Script(steps=(Step(text="a", figures=given), Step(text="a" * 400), Step(text="a" * 400))))
    for stream in (False, True):
        double.play(Script(steps=(Step(text="a", figures=given, served_model="claude-opus-5"),)))
        told = ask(claude, stream=stream)
        usage = told.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (11, 22, 33)
        assert (usage.output_tokens, usage.output_tokens_details.thinking_tokens) == (44, 5)
        assert told.model == "claude-opus-5"
    double.play(Script(then=Step(text="a" * 400)))
    assert 100 <= ask(claude).usage.output_tokens < 120


def test_a_marked_prefix_is_written_once_and_then_read(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    double.play(Script(then=Step(text="yes")))
    system = [{"type": "text", "text": "rule " * 800, "cache_control": {"type": "ephemeral"}}]
    first = ask(claude, system=system).usage
    second = ask(claude, system=system, messages=[{"role": "user", "content": "another"}]).usage
    assert first.cache_read_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens > 1000
    assert second.cache_creation_input_tokens == 0
    other = ask(claude, system=[{**system[0], "text": "rules " * 800}]).usage
    assert other.cache_read_input_tokens == 0


def test_a_short_prefix_is_not_kept(double: FakeProvider, claude: anthropic.Anthropic) -> None:
    system = [{"type": "text", "text": "short", "cache_control": {"type": "ephemeral"}}]
    assert ask(claude, system=system).usage.cache_creation_input_tokens == 0


def test_the_models_are_listed(claude: anthropic.Anthropic) -> None:
    assert MODEL in {model.id for model in claude.models.list()}
