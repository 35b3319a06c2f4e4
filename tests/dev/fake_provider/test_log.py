"""Facts of the log: bounded, in order, and without a key."""

from geode.dev.fake_provider import log
from geode.dev.fake_provider.log import RecordedRequest, RequestLog, safe_headers
from geode.llm.routes import Route


def recorded(number: int) -> RecordedRequest:
    return RecordedRequest(
        route=Route.ZAI, method="POST", path="/x", headers={}, raw=b"", body={"n": number}, attempt=1, status=200
    )


def test_the_last_requests_are_kept_and_all_are_counted() -> None:
    """A double that runs for days must not grow without end."""
    kept = RequestLog()
    for number in range(log._KEPT_MAX + 5):
        kept.add(recorded(number))
        kept.attempt("/x", str(number).encode())
    assert len(kept.requests) == log._KEPT_MAX
    assert kept.requests[0].body == {"n": 5}
    assert kept.wait(log._KEPT_MAX + 5, timeout_s=0)
    assert not kept.wait(log._KEPT_MAX + 6, timeout_s=0)
    assert len(kept._seen) == log._KEPT_MAX


def test_attempts_are_counted_by_path_and_body() -> None:
    kept = RequestLog()
    assert [kept.attempt("/x", b"a"), kept.attempt("/x", b"b"), kept.attempt("/y", b"a"), kept.attempt("/x", b"a")] == [
        1,
        1,
        1,
        2,
    ]


def test_a_key_is_redacted_in_whatever_form_it_comes() -> None:
    sent = [
        (b"Authorization", b"bearer s3cret"),
        (b"X-API-Key", b"s3cret"),
        (b"Cookie", b"s3cret"),
        (b"Accept", b"*/*"),
    ]
    headers = safe_headers(sent)
    assert "s3cret" not in repr(headers)
    assert headers["authorization"] == headers["x-api-key"]
    assert headers["accept"] == "*/*"
