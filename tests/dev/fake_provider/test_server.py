"""Facts of the server: what it records, how it waits, what becomes of many calls, and that it ends."""

import asyncio
import contextlib
import socket
import threading
import time

import anthropic
import httpx
import pytest

from geode.dev.fake_provider.endpoints import BASES, ENDPOINTS, PREFIXES, Endpoint, Kind
from geode.dev.fake_provider.log import RecordedRequest, redacted
from geode.dev.fake_provider.script import Failure, Script, Step
from geode.dev.fake_provider.server import FakeProvider, PortUnavailable
from geode.llm.routes import Route

BODY = {"model": "claude-opus-5-5", "max_tokens": 50, "messages": [{"role": "user", "content": "go"}]}


def headers(double: FakeProvider) -> dict[str, str]:
    return {"authorization": f"Bearer {double.key(Route.ANTHROPIC)}", "anthropic-version": "2026-10-21"}


def post(double: FakeProvider, path: str = "/v1/messages", **more: object) -> httpx.Response:
    url = double.url + path
    return httpx.post(url, json=BODY | more, headers=headers(double), trust_env=False, verify=False)


def test_each_request_is_recorded_as_it_came(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(failure=Failure.OVERLOADED), Step(text="done"))))
    raw = b'{"model": "claude-opus-5-5",  "max_tokens":50, "messages":[{"role":"user","content":"g\\u00f6"}]}'
    for _ in range(2):
        sent = headers(double) | {"content-type": "application/json"}
        httpx.post(double.url + "/v1/messages", content=raw, headers=sent, trust_env=False, verify=False)
    first, second = double.requests
    assert first.raw == second.raw == raw
    assert first.body["messages"][0]["content"] == "gö"
    assert (first.attempt, second.attempt) == (1, 2)
    assert (first.status, second.status) == (529, 200)
    assert first.error is not None
    assert second.error is None
    assert (first.route, first.method, first.path) == (Route.ANTHROPIC, "POST", "/v1/messages")


def test_no_key_is_on_the_record(double: FakeProvider) -> None:
    """It can still be told whether two requests had the same one."""
    key = double.key(Route.ANTHROPIC)
    post(double)
    httpx.post(
        double.url + "/v1/messages",
        json=BODY,
        headers={"x-api-key": key, "anthropic-version": "x"},
        trust_env=False,
        verify=False,
    )
    by_bearer, by_name = double.requests
    assert key not in repr(double.requests)
    assert by_bearer.headers["authorization"] == by_name.headers["x-api-key"] == redacted(key)


def test_keys_can_be_given_in_place_of_the_made_up_ones() -> None:
    with FakeProvider(keys={Route.ANTHROPIC: "canary"}) as double:
        assert post(double).status_code == 200
        sent = {"x-api-key": "sk-ant-fake-0000000000000000", "anthropic-version": "x"}
        url = double.url + "/v1/messages"
        assert httpx.post(url, json=BODY, headers=sent, trust_env=False, verify=False).status_code == 401


def test_the_base_url_has_the_form_that_each_sdk_wants(double: FakeProvider) -> None:
    assert double.base_url(Route.ANTHROPIC) == double.url + "/anthropic"
    assert double.base_url(Route.OPENAI) == double.url + "/openai/v1"
    assert double.base_url(Route.OPENROUTER) == double.url + "/openrouter/api/v1"
    assert double.base_url(Route.ZAI) == double.url + "/zai/api/paas/v4"
    assert double.base_url(Route.TYPESAFE) == double.url + "/typesafe"
    assert set(BASES) == set(PREFIXES)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_is_served_under_its_prefix(double: FakeProvider, endpoint: Endpoint) -> None:
    method, other = ("GET", "POST") if endpoint.kind is Kind.MODELS else ("POST", "GET")
    url = double.url + PREFIXES[endpoint.route] + endpoint.path
    sent = {"authorization": f"Bearer {double.key(endpoint.route)}"}
    reply = httpx.request(
        method, url, json={} if method == "POST" else None, headers=sent, trust_env=False, verify=False
    )
    assert reply.status_code in (200, 400, 422)
    assert double.requests[0].route is endpoint.route
    if endpoint.kind is not Kind.HTML:
        assert httpx.request(other, url, headers=sent, trust_env=False, verify=False).status_code == 404


def test_what_is_served_nowhere_is_not_found(double: FakeProvider) -> None:
    """An Anthropic base URL that ends in /v1 asks for /v1/v1/messages."""
    assert post(double, "/anthropic/v1/v1/messages").status_code == 404
    assert double.requests[0].route is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_a_bad_request(double: FakeProvider, content: bytes) -> None:
    reply = httpx.post(
        double.url + "/v1/messages", content=content, headers=headers(double), trust_env=False, verify=False
    )
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
    assert double.requests[0].raw == content


def test_a_reply_can_begin_late(double: FakeProvider) -> None:
    double.play(Script(latency_ms=60, steps=(Step(text="a", first_byte_ms=60),)))
    began = time.monotonic()
    assert post(double).status_code == 200
    assert time.monotonic() - began >= 0.12


def test_the_events_of_a_stream_can_come_one_by_one(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="abc", event_ms=30),)))
    began, came = time.monotonic(), []
    with httpx.stream(
        "POST",
        double.url + "/v1/messages",
        json=BODY | {"stream": True},
        headers=headers(double),
        trust_env=False,
        verify=False,
    ) as reply:
        came = [time.monotonic() - began for line in reply.iter_lines() if line.startswith("event:")]
    assert len(came) == 7
    assert came[-1] - came[0] >= 0.1


def test_it_is_seen_when_a_client_leaves_a_stream(double: FakeProvider) -> None:
    double.play(Script(steps=(Step(text="word " * 200, event_ms=20),)))
    with httpx.stream(
        "POST",
        double.url + "/v1/messages",
        json=BODY | {"stream": True},
        headers=headers(double),
        trust_env=False,
        verify=False,
    ) as reply:
        next(reply.iter_lines())
    assert double.wait(1, abandoned=1)


def test_a_step_of_a_model_goes_before_one_of_a_route_before_one_for_all(double: FakeProvider) -> None:
    double.play(
        Script(
            steps=(Step(text="for all"),),
            by_route={Route.ANTHROPIC: (Step(text="of the route"),)},
            by_model={"claude-opus-5-5": (Step(text="of the model"),)},
            then=Step(text="for ever"),
        )
    )
    texts = [post(double).json()["content"][0]["text"] for _ in range(5)]
    assert texts == ["of the model", "of the route", "for all", "for ever", "for ever"]


async def test_two_hundred_calls_at_once_are_answered_each_once(double: FakeProvider) -> None:
    """Every reply takes 50 ms, and they wait together: one after another it would be ten seconds."""
    double.play(Script(latency_ms=50, steps=tuple(Step(text=str(at)) for at in range(200))))
    async with anthropic.AsyncAnthropic(
        api_key=double.key(Route.ANTHROPIC), base_url=double.base_url(Route.ANTHROPIC), max_retries=0
    ) as client:
        replies = await asyncio.gather(
            *(
                client.messages.create(
                    model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": str(at)}]
                )
                for at in range(200)
            )
        )
    texts = {block.text for reply in replies for block in reply.content if block.type == "text"}
    assert texts == {str(at) for at in range(200)}
    assert len(double.requests) == 200


def test_it_ends_with_its_block_whatever_hangs() -> None:
    """No thread is left, and the port is free again."""
    before = threading.active_count()
    with FakeProvider(Script(then=Step(text="late", first_byte_ms=600_000))) as double:
        hanging = threading.Thread(target=_swallow, args=(double,))
        hanging.start()
        assert double.wait(1)
    hanging.join(5)
    assert not hanging.is_alive()
    assert threading.active_count() == before
    with pytest.raises(httpx.ConnectError):
        post(double)


def _swallow(double: FakeProvider) -> None:
    with contextlib.suppress(httpx.HTTPError):
        httpx.post(
            double.url + "/v1/messages", json=BODY, headers=headers(double), trust_env=False, verify=False, timeout=30
        )


def test_its_small_packets_are_sent_at_once(double: FakeProvider) -> None:
    """A reply of two packets would else wait for an acknowledgement, which clients hold back for 40 ms."""
    asked = f"x-api-key: {double.key(Route.ANTHROPIC)}\r\nanthropic-version: 1\r\ncontent-length: 0\r\n\r\n"
    spent = []
    with socket.create_connection(("127.0.0.1", int(double.url.rpartition(":")[2]))) as client:
        for _ in range(9):
            began = time.monotonic()
            client.sendall(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{asked}".encode())
            came = b""
            while not came.endswith(b"}"):
                came += client.recv(65_536)
            spent.append(time.monotonic() - began)
    assert sorted(spent)[2] < 0.03, spent  # a busy machine makes some late, never all of them


async def test_it_can_be_driven_without_a_socket() -> None:
    double = FakeProvider()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=double.app), base_url="http://double") as client:
        reply = await client.post("/v1/messages", json=BODY, headers=headers(double))
    assert reply.status_code == 200
    assert len(double.requests) == 1


def test_a_port_that_is_taken_is_named(double: FakeProvider) -> None:
    port = int(double.url.rpartition(":")[2])
    with (
        pytest.raises(PortUnavailable, match=f"port {port} on 127.0.0.1: Address already in use"),
        FakeProvider(port=port),
    ):
        pass


def test_each_request_is_told_as_it_is_decided() -> None:
    told: list[RecordedRequest] = []
    with FakeProvider(on_request=told.append) as double:
        post(double)
        assert tuple(told) == double.requests
