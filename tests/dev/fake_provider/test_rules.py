"""Facts of the OpenAI-shaped wires: each broken rule is refused in the provider's words, and nothing but the fault."""

import copy
import json
from typing import Any

import httpx
import openai
import pytest

from geode.dev.fake_provider.endpoints import BASES
from geode.dev.fake_provider.keys import EXPIRED
from geode.dev.fake_provider.script import Call, Script, Step, Thinking
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import IS_CHAT, Change, answered, ask, question

LOOK = Step(
    text="I look.",
    thinking=(Thinking(text="which file?"),),
    calls=(Call(name="read_file", call_id="call_a"), Call(name="read_file", call_id="call_b")),
)
Clients = dict[Route, openai.OpenAI]


def post(double: FakeProvider, route: Route, body: object, key: str | None = None) -> httpx.Response:
    path = "/chat/completions" if route in IS_CHAT else "/responses"
    sent = {"authorization": f"Bearer {double.key(route) if key is None else key}"} if key != "" else {}
    return httpx.post(double.url + BASES[route] + path, json=body, headers=sent, trust_env=False, verify=False)


def put(*path: Any, to: Any) -> Change:
    def made(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        at[path[-1]] = to

    return made


def cut(*path: Any) -> Change:
    def made(body: dict[str, Any]) -> None:
        at: Any = body
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return made


# The history is: user, assistant with calls a and b, tool a, tool b.
CHAT: list[tuple[Change, str]] = [
    (cut("messages", 3), "did not have response messages: call_b"),
    (cut("messages", 2), "did not have response messages: call_a"),
    (cut("messages", 1), "must be a response to a preceeding message"),
    (put("messages", 3, "tool_call_id", to="call_a"), "must be a response to a preceeding message"),
    (lambda body: body["messages"].insert(2, {"role": "user", "content": "wait"}), "did not have response messages"),
    (cut("tools"), "Tools must be provided"),
    (put("messages", to=[]), "at least"),
    (put("messages", 1, "tool_calls", 1, "id", to="call_a"), "Duplicate tool call id"),
    (put("messages", 1, "tool_calls", 0, "function", "arguments", to={}), "must be a string"),
    (put("messages", 1, "role", to="friend"), "Invalid value"),
    (put("tools", 0, "function", to={}), "expected a function with a name"),
    (put("messages", to="go"), "malformed"),
    (put("messages", 0, "content", to=None), "content: Required"),
    (lambda body: body["messages"].insert(1, {"role": "assistant", "content": ""}), "content must not be empty"),
    (
        lambda body: body["messages"][0].update(tool_calls=body["messages"][1]["tool_calls"]),
        "only allowed for the role",
    ),
]
OPENROUTER: list[tuple[Change, str]] = [
    *CHAT,
    (cut("messages", 1, "reasoning_details"), "reasoning details to be preserved"),
    (put("messages", 1, "reasoning_details", 0, "text", to="another"), "reasoning details to be preserved"),
    (put("messages", 1, "reasoning_details", 0, "signature", to="another"), "reasoning details to be preserved"),
]
ZAI: list[tuple[Change, str]] = [
    *CHAT[:6],
    *CHAT[7:],
    (cut("messages", 1, "reasoning_content"), "reasoning_content is missing"),
    (put("messages", 1, "reasoning_content", to="another"), "reasoning_content is missing"),
    (put("max_completion_tokens", to=100), "max_completion_tokens"),
    (put("stream_options", to={"include_usage": True}), "stream_options"),
    (put("frequency_penalty", to=0.1), "frequency_penalty"),
    (put("presence_penalty", to=0.1), "presence_penalty"),
    (put("tool_choice", to="required"), "tool_choice"),
    (put("temperature", to=0), "temperature"),
    (put("temperature", to=1), "temperature"),
    (put("top_p", to=1.0), "top_p"),
    (put("messages", 0, "name", to="me"), "name"),
    (put("tools", 0, "function", "strict", to=True), "strict"),
    (put("thinking", to={"type": "adaptive"}), "thinking.type"),
    (put("messages", 0, "role", to="system"), "At least one user message"),
]
# The history is: user, reasoning, message, call a, call b, output a, output b.
RESPONSES: list[tuple[Change, str]] = [
    (cut("input", 6), "No tool output found for function call call_b."),
    (cut("input", 3), "No tool call found for function call output with call_id call_a."),
    (put("input", 6, "call_id", to="call_a"), "Duplicate function call output"),
    (lambda body: body["input"].insert(5, {"role": "user", "content": "wait"}), "No tool output found"),
    (cut("tools"), "Tools must be provided"),
    (cut("input", 1, "encrypted_content"), "Items are not persisted when `store` is set to false"),
    (put("input", 1, "encrypted_content", to="another"), "could not be verified"),
    (put("input", 1, "summary", 0, "text", to="another"), "could not be verified"),
    (cut("input", 1), "without its required 'reasoning' item"),
    (put("input", to=[]), "must not be empty"),
    (cut("input"), "Missing required parameter: 'input'"),
    (put("max_tokens", to=100), "Unknown parameter: 'max_tokens'."),
    (put("max_output_tokens", to=5), "integer below minimum value"),
    (cut("tools", 0, "strict"), "Missing required parameter: 'tools[0].strict'."),
    (put("tools", 0, "name", to="read.file"), "does not match pattern"),
    (put("tool_choice", to={"type": "function", "name": "other"}), "not found in 'tools'"),
    (put("previous_response_id", to="resp_none"), "Previous response with id 'resp_none' not found."),
    (lambda body: body.update(previous_response_id="resp_1", conversation="conv_1"), "Mutually exclusive parameters"),
    (put("reasoning", to={"effort": "huge"}), "Invalid value: 'huge'"),
    (put("input", 2, to={"type": "brand_new"}), "is no type of an input item"),
    (put("input", 3, "arguments", to={}), "expected a string"),
    (put("input", 4, "call_id", to="call_a"), "Duplicate function call with call_id call_a"),
    (lambda body: body.update(input=body["input"][:2]), "without its required following item"),
    (cut("input", 5, "output"), "Missing required parameter: 'input.output'."),
    (put("input", 0, to="go"), "malformed"),
]


@pytest.mark.parametrize(
    ("route", "broken", "said"),
    [
        *((Route.OPENROUTER, *case) for case in OPENROUTER),
        *((Route.ZAI, *case) for case in ZAI),
        *((Route.OPENAI, *case) for case in RESPONSES),
    ],
)
def test_each_broken_rule_is_refused_and_takes_no_step(
    double: FakeProvider, clients: Clients, route: Route, broken: Change, said: str
) -> None:
    """The same history without the fault is answered: nothing but the fault is refused."""
    double.play(Script(steps=(LOOK, Step(text="done"))))
    sound = answered(question(route), ask(clients[route], route, question(route)))
    body = copy.deepcopy(sound)
    broken(body)
    refused = post(double, route, body)
    assert refused.status_code in (400, 404)
    assert said in refused.json()["error"]["message"]
    assert double.steps_left == 1
    assert ask(clients[route], route, sound).text == "done"


@pytest.mark.parametrize("field", ["max_completion_tokens", "stream_options", "tool_choice", "temperature", "name"])
def test_zai_has_business_codes(double: FakeProvider, field: str) -> None:
    body = question(Route.ZAI)
    changes: dict[str, Change] = {
        "name": put("messages", 0, "name", to="me"),
        "temperature": put("temperature", to=1.5),
        "tool_choice": put("tool_choice", to="required"),
    }
    changes.get(field, put(field, to={}))(body)
    code = post(double, Route.ZAI, body).json()["error"]["code"]
    assert code == ("1214" if field == "name" else "1210")


@pytest.mark.parametrize(
    ("model", "is_decision"),
    [
        ("typesafe/jev-1.13", True),
        ("~typesafe/jev-latest", True),
        ("jev-1.13.0", True),
        ("jev-preview", True),
        ("typesafe/jev-router", False),
        ("openrouter/auto", False),
    ],
)
def test_a_decision_model_is_refused_for_chat(double: FakeProvider, model: str, is_decision: bool) -> None:
    """Field failures of this kind survived suites whose doubles were permissive."""
    reply = post(double, Route.OPENROUTER, {**question(Route.OPENROUTER), "model": model})
    if not is_decision:
        assert reply.status_code == 200
        return
    assert reply.status_code == 400
    assert reply.json()["error"] == {
        "message": f"{model} is a decisions model and cannot be used with the chat/completions endpoint. Use the"
        " /api/alpha/decisions endpoint instead.",
        "code": 400,
    }


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (cut("store"), "Store must be set to false"),
        (put("store", to=True), "Store must be set to false"),
        (cut("stream"), "Stream must be set to true"),
        (cut("instructions"), "Instructions are required"),
        (put("instructions", to=""), "Instructions are required"),
        (put("max_output_tokens", to=100), "Unsupported parameter: max_output_tokens"),
        (put("temperature", to=0.5), "Unsupported parameter: temperature"),
        (put("top_p", to=0.5), "Unsupported parameter: top_p"),
        (put("previous_response_id", to="resp_1"), "Unsupported parameter: previous_response_id"),
    ],
)
def test_a_subscription_has_rules_of_its_own(double: FakeProvider, broken: Change, said: str) -> None:
    """The same body by key is taken, or refused for another reason: the rule is the token's."""
    body = {**question(Route.OPENAI_CODEX), "stream": True}
    assert post(double, Route.OPENAI_CODEX, body).status_code == 200
    broken(body)
    refused = post(double, Route.OPENAI_CODEX, body)
    assert (refused.status_code, refused.json()) == (400, {"detail": said})
    assert "detail" not in post(double, Route.OPENAI, body).text[:12]


def test_a_model_without_the_plan_is_refused_by_subscription(double: FakeProvider) -> None:
    body = {**question(Route.OPENAI), "stream": True, "model": "gpt-5.4"}
    assert post(double, Route.OPENAI, body).status_code == 200
    assert post(double, Route.OPENAI_CODEX, body).json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("route", "missing", "wrong"),
    [
        (Route.OPENAI, {"code": None}, {"code": "invalid_api_key"}),
        (Route.OPENROUTER, {"code": 401, "message": "Missing Authentication header"}, {"message": "User not found."}),
        (Route.ZAI, {"code": "1001"}, {"code": "1000"}),
    ],
)
def test_a_missing_or_wrong_key_is_told(
    double: FakeProvider, route: Route, missing: dict[str, Any], wrong: dict[str, Any]
) -> None:
    for key, expected in (("", missing), ("sk-wrong-key-of-nobody", wrong)):
        refused = post(double, route, question(route), key)
        assert refused.status_code == 401
        error = refused.json()["error"]
        assert {name: error[name] for name in expected} == expected
        assert "sk-wrong-key-of-nobody" not in refused.text


def test_an_expired_token_says_so(double: FakeProvider) -> None:
    refused = post(double, Route.OPENAI, question(Route.OPENAI), EXPIRED)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "token_expired")


def test_claude_at_openrouter_takes_no_sampling_where_parameters_are_required(double: FakeProvider) -> None:
    body = {**question(Route.OPENROUTER), "model": "anthropic/claude-opus-5-5", "temperature": 0.5}
    assert post(double, Route.OPENROUTER, body).status_code == 200
    refused = post(double, Route.OPENROUTER, {**body, "provider": {"require_parameters": True}})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, 404)


def test_the_provider_that_is_pinned_serves(double: FakeProvider) -> None:
    body = question(Route.OPENROUTER)
    assert post(double, Route.OPENROUTER, body).json()["provider"] == "Fake"
    pinned = {**body, "provider": {"order": ["google-vertex"], "allow_fallbacks": False}}
    assert post(double, Route.OPENROUTER, pinned).json()["provider"] == "google-vertex"


def test_claude_at_openrouter_takes_no_prefill(double: FakeProvider) -> None:
    body = question(Route.OPENROUTER)
    body["messages"].append({"role": "assistant", "content": "So"})
    assert post(double, Route.OPENROUTER, body).status_code == 200
    refused = post(double, Route.OPENROUTER, {**body, "model": "anthropic/claude-opus-5-5"})
    assert "prefill" in refused.json()["error"]["message"]


def test_what_was_stored_can_be_gone_on_with(double: FakeProvider, clients: Clients) -> None:
    double.play(Script(steps=(LOOK, Step(text="done"))))
    wanted = {**question(Route.OPENAI), "store": True}
    first = clients[Route.OPENAI].responses.create(**wanted)
    outputs = [{"type": "function_call_output", "call_id": name, "output": "x"} for name in ("call_a", "call_b")]
    more = {**wanted, "previous_response_id": first.id, "input": outputs}
    with pytest.raises(openai.BadRequestError, match="No tool output found for function call call_b"):
        clients[Route.OPENAI].responses.create(**{**more, "input": outputs[:1]})
    assert clients[Route.OPENAI].responses.create(**more).output_text == "done"


def test_an_unknown_output_item_comes_back_as_it_was(double: FakeProvider) -> None:
    item = {"type": "brand_new", "id": "bn_1", "deep": {"x": [1]}}
    double.play(Script(steps=(Step(text="see", blocks=(item,)), Step(text="done"))))
    body = question(Route.OPENAI)
    output = post(double, Route.OPENAI, body).json()["output"]
    assert output[1] == item
    body["input"] += [*output, {"role": "user", "content": "on"}]
    assert post(double, Route.OPENAI, body).json()["output"][0]["content"][0]["text"] == "done"


@pytest.mark.parametrize("route", [Route.OPENAI, Route.OPENROUTER, Route.ZAI])
def test_the_window_can_be_set(double: FakeProvider, route: Route) -> None:
    double.play(Script(context_tokens=200, then=Step(text="fits")))
    body = question(route)
    assert post(double, route, body).status_code == 200
    body["messages" if route in IS_CHAT else "input"][0]["content"] = "word " * 500
    error = post(double, route, body).json()["error"]
    marks = {Route.OPENAI: "context_length_exceeded", Route.ZAI: "1261", Route.OPENROUTER: "context_length_exceeded"}
    assert marks[route] in json.dumps(error)
