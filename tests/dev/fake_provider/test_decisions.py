"""Facts of the decision API, on both of its ways: each refusal by its body, and answers that obey the formulas."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from geode.dev.fake_provider.decisions import decide
from geode.dev.fake_provider.script import Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider
from geode.llm.routes import Route
from tests.dev.fake_provider.histories import Change

DIRECT, ROUTED, COMPATIBLE = "/typesafe/v1/systemone", "/openrouter/api/alpha/decisions", "/openrouter/api/v1/systemone"
SOUND: dict[str, Any] = {
    "model": "jev-1.13.0",
    "state": {"task": "Find the year.", "answer": "1931"},
    "questions": {
        "met": {"type": "noul", "instructions": "Is a year given?", "criteria": {"true": "Yes.", "false": "No."}},
        "mode": {"type": "choice", "instructions": "What is wrong?", "criteria": {"none": "Fine", "other": None}},
        "grounding": {"type": "score", "instructions": "How well?", "criteria": ["not", "partly", "wholly"]},
    },
}


def post(double: FakeProvider, path: str, body: Mapping[str, Any], key: str | None = None) -> httpx.Response:
    route = Route.TYPESAFE if path == DIRECT else Route.OPENROUTER
    sent = {"authorization": f"Bearer {key or double.key(route)}"}
    return httpx.post(double.url + path, json=body, headers=sent, trust_env=False, verify=False)


def sound(path: str) -> dict[str, Any]:
    model = {DIRECT: "jev-1.13.0", ROUTED: "typesafe/jev-1.13", COMPATIBLE: "jev-1.13"}[path]
    return {**copy.deepcopy(SOUND), "model": model}


def question(name: str, to: Any) -> Change:
    return lambda body: body["questions"].update({name: to})


def top(name: str, to: Any) -> Change:
    return lambda body: body.update({name: to})


USAGE = "api_usage_error"
NOUL = {"type": "noul", "instructions": "Is it?"}
DIRECT_FAULTS: list[tuple[Change, int, Any]] = [
    (top("model", "jev-9.99.9"), 400, {"error_type": USAGE, "message": "Unknown model: jev-9.99.9"}),
    (top("temperature", 0), 400, {"error_type": USAGE, "message": "Invalid request."}),
    (question("q", {"type": "rank"}), 400, {"error_type": USAGE, "message": "Invalid request."}),
    (question("q", {"type": "noul"}), 400, "Noul question must have criteria or instructions: q"),
    (
        question("q", {"type": "choice", "instructions": "?", "criteria": {}}),
        400,
        "Choice question must have at least one choice: q",
    ),
    (
        question("q", {"type": "choice", "instructions": "?", "criteria": {str(at): None for at in range(256)}}),
        400,
        "Too many choices. Must have at most 255 choices.",
    ),
    (
        question("q", {"type": "score", "instructions": "?", "criteria": ["x"] * 11}),
        400,
        "Too many score levels. Must have at most 10 levels.",
    ),
    (question("", NOUL), 400, "Question key cannot be empty."),
    (top("state", {"log": "word " * 60_000}), 400, {"error_type": "max_tokens_exceeded"}),
    (top("state", {"log": "1" * 32_000}), 400, {"error_type": "max_tokens_exceeded"}),
]
VALIDATED: list[tuple[Change, list[Any]]] = [
    (lambda body: body.pop("state"), ["body", "state"]),
    (lambda body: body.pop("questions"), ["body", "questions"]),
    (top("state", None), ["body", "state", "str"]),
    (top("state", 5), ["body", "state", "str"]),
    (top("questions", {}), ["body", "questions"]),
    (question("q", {"type": "score", "criteria": []}), ["body", "questions", "q", "score", "criteria"]),
    (question("q", {"type": "score", "criteria": "abc"}), ["body", "questions", "q", "score", "criteria"]),
    (
        question("q", {"type": "score", "instructions": "?", "criteria": ["a", None]}),
        ["body", "questions", "q", "score", "criteria", 1],
    ),
]


@pytest.mark.parametrize(("broken", "status", "detail"), DIRECT_FAULTS)
def test_each_broken_rule_is_refused_with_its_body(
    double: FakeProvider, broken: Change, status: int, detail: object
) -> None:
    body = sound(DIRECT)
    broken(body)
    refused = post(double, DIRECT, body)
    assert (refused.status_code, refused.json()) == (status, {"detail": detail})
    assert post(double, DIRECT, sound(DIRECT)).status_code == 200


@pytest.mark.parametrize(("broken", "where"), VALIDATED)
def test_a_form_that_is_wrong_is_echoed(double: FakeProvider, broken: Change, where: list[Any]) -> None:
    """Such a body must be handled like the request itself: it holds the state."""
    body = sound(DIRECT)
    broken(body)
    refused = post(double, DIRECT, body)
    assert refused.status_code == 422
    fault = refused.json()["detail"][0]
    assert fault["loc"] == where
    if where == ["body", "questions"] and "questions" not in body:
        assert fault["input"]["state"] == SOUND["state"]


@pytest.mark.parametrize("path", [ROUTED, COMPATIBLE])
def test_upstream_errors_come_wrapped_as_text(double: FakeProvider, path: str) -> None:
    for broken, status, detail in DIRECT_FAULTS[4:]:
        body = sound(path)
        broken(body)
        refused = post(double, path, body)
        upstream = json.dumps({"detail": detail}, separators=(",", ":"))
        assert refused.status_code == status
        assert refused.json() == {"error": {"message": f"HTTP {status}: {upstream}", "code": status}}


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        (question("q", {"type": "rank", "instructions": "?"}), ["questions", "q", "type"]),
        (question("q", {"type": "noul", "criteria": {"true": "a", "false": "b"}}), ["questions", "q", "instructions"]),
        (question("q", {**NOUL, "criteria": {"true": "only"}}), ["questions", "q", "criteria"]),
        (lambda body: body.pop("state"), ["state"]),
        (lambda body: body.pop("model"), ["model"]),
        (lambda body: body.pop("questions"), ["questions"]),
        (top("state", 5), ["state"]),
        (top("session_id", "x" * 257), ["session_id"]),
    ],
)
def test_openrouters_own_schema_puts_a_json_array_into_the_message(
    double: FakeProvider, broken: Change, path: list[str]
) -> None:
    body = sound(ROUTED)
    broken(body)
    refused = post(double, ROUTED, body)
    assert refused.status_code == 400
    assert json.loads(refused.json()["error"]["message"])[0]["path"] == path


@pytest.mark.parametrize("path", [DIRECT, ROUTED, COMPATIBLE])
def test_every_question_is_answered_under_its_id(double: FakeProvider, path: str) -> None:
    reply = post(double, path, sound(path))
    body = reply.json()
    assert {name: answer["type"] for name, answer in body["answers"].items()} == {
        "met": "noul",
        "mode": "choice",
        "grounding": "score",
    }
    assert set(body["answers"]["met"]) == {"type", "noul"}
    if path == DIRECT:
        assert set(body) == {"model", "answers", "usage"}
        assert body["model"] == "jev-1.13.0"
        assert reply.headers["x-typesafe-request-id"]
        assert "cost" not in body["usage"]
    else:
        assert body["model"] == "typesafe/jev-1.13-20260917"
        assert body["provider"] == "TypeSafe"
        assert body["id"].startswith("gen-dec-")
        assert body["usage"]["cost"] == pytest.approx(body["usage"]["input_tokens"] * 0.042e-6)


@pytest.mark.parametrize(
    ("path", "model", "status"),
    [
        (ROUTED, "typesafe/jev-1.13", 200),
        (ROUTED, "~typesafe/jev-latest", 200),
        (ROUTED, "jev-1.13.0", 400),
        (ROUTED, "openai/gpt-6-sol", 400),
        (COMPATIBLE, "jev-latest", 200),
        (COMPATIBLE, "typesafe/jev-1.13", 200),
        (DIRECT, "jev-latest", 200),
        (DIRECT, "typesafe/jev-1.13", 400),
    ],
)
def test_each_way_has_its_own_spelling(double: FakeProvider, path: str, model: str, status: int) -> None:
    assert post(double, path, {**sound(path), "model": model}).status_code == status


def test_the_published_samples_follow_from_the_formulas() -> None:
    """Figures of the providers' own worked examples."""
    asked = {"type": "choice", "criteria": dict.fromkeys("abcde")}
    told = decide(asked, {"a": 0.76, "b": 0.16, "c": 0.05, "d": 0.01, "e": 0.02}, "")
    assert (told["choice"], told["confidence"]) == ("a", 0.7)
    grounding = decide({"type": "score", "criteria": list("abcd")}, {"0": 0.02, "1": 0.1, "2": 0.62, "3": 0.26}, "")
    assert (grounding["score"], grounding["confidence"]) == (2.12, 0.6)
    form = decide({"type": "score", "criteria": list("abc")}, {"1": 0.1, "2": 0.9}, "")
    assert (form["score"], form["confidence"]) == (1.9, 0.85)


@given(labels=st.sets(st.text(max_size=4), min_size=1, max_size=255), seed=st.text(max_size=8))
def test_drawn_choices_obey_the_formulas(labels: set[str], seed: str) -> None:
    told = decide({"type": "choice", "criteria": dict.fromkeys(labels)}, None, seed)
    chances = told["probabilities"]
    assert set(chances) == labels
    assert sum(chances.values()) == pytest.approx(1)
    assert chances[told["choice"]] == max(chances.values())
    assert 0 <= told["confidence"] <= 1
    assert told == decide({"type": "choice", "criteria": dict.fromkeys(labels)}, None, seed)


@given(count=st.integers(1, 10), seed=st.text(max_size=8), attempt=st.integers(1, 9))
def test_drawn_scores_obey_the_formulas(count: int, seed: str, attempt: int) -> None:
    told = decide({"type": "score", "criteria": [f"level {at}" for at in range(count)]}, None, seed, attempt)
    assert told["score"] == pytest.approx(sum(int(at) * p for at, p in told["probabilities"].items()), abs=0.006)
    assert 0 <= told["score"] <= count - 1
    assert 0 <= told["confidence"] <= 1
    assert list(told["legend"]) == [str(at) for at in range(count)]


@given(seed=st.text(max_size=8))
def test_drawn_nouls_are_probabilities(seed: str) -> None:
    assert 0 <= decide({"type": "noul"}, None, seed)["noul"] <= 1


@pytest.mark.parametrize("path", [DIRECT, ROUTED])
def test_equal_calls_are_not_answered_alike(double: FakeProvider, path: str) -> None:
    """The real one has no seed, and its probabilities differ a little from call to call; a script's do not."""
    told = [post(double, path, sound(path)).json()["answers"] for _ in range(20)]
    nouls = [answers["met"]["noul"] for answers in told]
    assert 0 < max(nouls) - min(nouls) <= 0.08
    assert len({answers["grounding"]["score"] for answers in told}) > 1
    double.play(Script(then=Step(answers={"met": 0.5, "mode": {"none": 1.0}, "grounding": {"1": 1.0}})))
    assert len({post(double, path, sound(path)).text for _ in range(3)}) == 1


def test_a_script_gives_the_answers(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(answers={"met": 0.123, "mode": {"none": 0.2, "other": 0.8}}),)))
    answers = post(double, DIRECT, sound(DIRECT)).json()["answers"]
    assert answers["met"]["noul"] == 0.12
    assert answers["mode"]["choice"] == "other"


def test_keys_are_inverted_between_missing_and_wrong(double: FakeProvider) -> None:
    wrong = post(double, DIRECT, sound(DIRECT), "nobody")
    detail = {"error_type": "authentication_error", "message": "Cannot authenticate with the server."}
    assert (wrong.status_code, wrong.json()) == (401, {"detail": detail})
    missing = httpx.post(double.url + DIRECT, json=sound(DIRECT), trust_env=False, verify=False)
    assert missing.status_code == 403
    assert "detail" in missing.json()
    routed = httpx.post(double.url + ROUTED, json=sound(ROUTED), trust_env=False, verify=False)
    assert routed.json() == {"error": {"message": "Missing Authentication header", "code": 401}}


def test_the_website_answers_where_the_api_is_not(double: FakeProvider) -> None:
    """A client that looks at the status alone takes the page for an answer."""
    reply = post(double, "/openrouter/v1/systemone", sound(COMPATIBLE))
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/html")
    for wrong in ("/openrouter/api/alpha/v1/decisions", "/openrouter/api/v1/alpha/decisions"):
        assert post(double, wrong, sound(ROUTED)).status_code == 404


def test_decision_models_are_listed_only_where_they_are_asked_for(double: FakeProvider) -> None:
    sent = {"authorization": f"Bearer {double.key(Route.OPENROUTER)}"}
    url = double.base_url(Route.OPENROUTER) + "/models"
    asked = httpx.get(url + "?output_modalities=decisions", headers=sent, trust_env=False, verify=False).json()["data"]
    assert "typesafe/jev-1.13" in {model["id"] for model in asked}


def test_typesafe_lists_its_aliases_in_a_form_of_its_own(double: FakeProvider) -> None:
    sent = {"authorization": f"Bearer {double.key(Route.TYPESAFE)}"}
    url = double.base_url(Route.TYPESAFE) + "/v1/models"
    listed = httpx.get(url, headers=sent, trust_env=False, verify=False).json()["models"]
    assert [model["name"] for model in listed] == ["jev-latest", "jev-preview"]
    assert set(listed[0]) == {"name", "description", "release_date"}


@pytest.mark.parametrize("path", [DIRECT, ROUTED])
@pytest.mark.parametrize(
    ("failure", "status"),
    [(Failure.RATE_LIMITED, 429), (Failure.OVERLOADED, 529), (Failure.SERVER, 500), (Failure.CONTEXT_TOO_LONG, 400)],
)
def test_failures_have_the_form_of_their_way(double: FakeProvider, path: str, failure: Failure, status: int) -> None:
    double.play(Script(steps=(Step(failure=failure),)))
    refused = post(double, path, sound(path))
    assert refused.status_code == status
    assert ("detail" if path == DIRECT else "error") in refused.json()


def test_a_compressed_body_is_read(double: FakeProvider) -> None:
    """TypeSafe's SDK compresses what is longer than a kilobyte, if it can."""
    sent = {"authorization": f"Bearer {double.key(Route.TYPESAFE)}", "content-encoding": "zstd"}
    url = double.base_url(Route.TYPESAFE) + "/v1/systemone"
    content = zstd.compress(json.dumps(sound(DIRECT)).encode())
    assert httpx.post(url, content=content, headers=sent, trust_env=False, verify=False).status_code == 200
    assert double.requests[0].body == sound(DIRECT)
    broken = httpx.post(url, content=b"no zstd", headers=sent, trust_env=False, verify=False)
    assert broken.status_code == 400


def test_the_window_can_be_set(double: FakeProvider) -> None:
    double.play(Script(context_tokens=200))
    assert post(double, DIRECT, sound(DIRECT)).status_code == 200
    body = {**sound(DIRECT), "state": "word " * 300}
    assert post(double, DIRECT, body).json() == {"detail": {"error_type": "max_tokens_exceeded"}}
