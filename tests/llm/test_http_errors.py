"""What providers say of failures, as our errors. The bodies are those that PROVIDERS.md records."""

import pytest

from geode.llm import errors
from geode.llm.http_errors import (
    connection_failed,
    hiding,
    not_json,
    provider_error,
    request_id_of,
    retry_after_s,
    shown_headers,
    stream_cut,
)
from geode.llm.routes import Route
from geode.redaction import Redactor


def said(
    status: int | None, type_: str = "", code: str = "", message: str = "m", route: Route = Route.OPENAI
) -> errors.ProviderError:
    return provider_error(
        route, status=status, type=type_, code=code, message=message, headers={}, body=None, redactor=Redactor()
    )


@pytest.mark.parametrize(
    ("status", "type_", "code", "message", "kind", "retryable"),
    [
        (400, "invalid_request_error", "", "max_tokens: Field required", errors.RequestInvalid, False),
        (400, "invalid_request_error", "", "prompt is too long: 250000 tokens > 200000", errors.ContextTooLarge, False),
        (400, "invalid_request_error", "context_length_exceeded", "", errors.ContextTooLarge, False),
        (400, "context_length_exceeded", "400", "", errors.ContextTooLarge, False),
        (400, "", "1261", "Prompt exceeds max length", errors.ContextTooLarge, False),
        (400, "", "400", 'HTTP 400: {"detail":{"error_type":"max_tokens_exceeded"}}', errors.ContextTooLarge, False),
        (413, "", "", "", errors.ContextTooLarge, False),
        (401, "invalid_request_error", "token_expired", "", errors.AuthenticationFailed, False),
        (401, "invalid_request_error", "", "", errors.AuthenticationFailed, False),
        (403, "permission_error", "", "", errors.AuthenticationFailed, False),
        (402, "billing_error", "", "", errors.PaymentRequired, False),
        (402, "openrouter_in_flight_budget", "402", "", errors.RateLimited, True),
        (402, "openrouter_credits", "402", "", errors.PaymentRequired, False),
        (429, "insufficient_quota", "insufficient_quota", "", errors.PaymentRequired, False),
        *((429, "", code, "", errors.PaymentRequired, False) for code in ("1113", "1308", "1309", "1310", "1311")),
        (429, "", "1313", "", errors.PaymentRequired, False),
        (429, "", "1302", "", errors.RateLimited, True),
        (429, "rate_limit_error", "", "", errors.RateLimited, True),
        (429, "tokens", "rate_limit_exceeded", "", errors.RateLimited, True),
        (408, "", "", "", errors.Overloaded, True),
        (409, "", "", "", errors.Overloaded, True),
        (500, "api_error", "", "", errors.Overloaded, True),
        (524, "", "", "", errors.Overloaded, True),
        (529, "overloaded_error", "", "", errors.Overloaded, True),
        (404, "not_found_error", "", "model: x", errors.RequestInvalid, False),
        (422, "", "", "", errors.RequestInvalid, False),
        # Inside of a stream the status says nothing.
        (200, "overloaded_error", "", "", errors.Overloaded, True),
        (200, "provider_overloaded", "529", "", errors.Overloaded, True),
        (200, "", "429", "", errors.RateLimited, True),
        (200, "", "rate_limit_exceeded", "", errors.RateLimited, True),
        (200, "invalid_request_error", "", "", errors.RequestInvalid, False),
        (200, "never_heard_of", "", "", errors.ResponseInvalid, False),
    ],
)
def test_the_words_of_a_provider_decide_and_the_status_where_there_are_none(
    *, status: int, type_: str, code: str, message: str, kind: type[errors.ProviderError], retryable: bool
) -> None:
    """PROVIDERS 2, 6, 8: what is tried again, and what is too long, whatever the wire calls it."""
    error = said(status, type_, code, message)

    assert type(error) is kind
    assert error.retryable is retryable


def test_what_the_provider_says_of_trying_again_counts_more_than_the_kind_of_error() -> None:
    error = provider_error(
        Route.OPENROUTER,
        status=503,
        type="provider_unavailable",
        code="503",
        message="gone for good",
        headers={},
        body=None,
        redactor=Redactor(),
        retryable=False,
    )

    assert isinstance(error, errors.Overloaded)
    assert not error.retryable


def test_an_error_keeps_what_is_known_of_it_and_no_secret() -> None:
    """PROVIDERS 9, 10: provider, status, type, code, request id, a redacted and bounded body."""
    key = "canary-key-0123456789"
    error = provider_error(
        Route.ANTHROPIC,
        status=401,
        type="authentication_error",
        code="bad_key",
        message=f"invalid key {key}",
        headers={"request-id": "req_1", "retry-after": "7"},
        body={"error": {"message": f"invalid key {key}"}, "padding": "x" * 5_000},
        redactor=hiding(Redactor(), key),
    )

    assert error.facts == errors.Facts(
        provider="anthropic",
        status=401,
        type="authentication_error",
        code="bad_key",
        request_id="req_1",
        retry_after_s=7.0,
        body=error.facts.body,
    )
    assert len(error.facts.body) == 2_000
    assert key not in f"{error} {error!r} {error.facts!r}"
    assert "invalid key [redacted]" in error.facts.body


def test_a_secret_across_the_border_of_what_is_kept_leaves_no_part_behind() -> None:
    key = "canary-key-0123456789"
    body = "x" * 1_990 + key

    error = provider_error(
        Route.OPENAI,
        status=400,
        type="",
        code="",
        message="",
        headers={},
        body=body,
        redactor=hiding(Redactor(), key),
    )

    assert "canary" not in error.facts.body


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "3", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT", "date": "Tue, 01 Dec 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Tue, 01 Dec 2026 10:00:30 GMT"}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read_in_each_of_its_forms(
    headers: dict[str, str], wait_s: float | None
) -> None:
    """PROVIDERS 3: whoever retries caps it; a nonsensical one is none."""
    assert retry_after_s(headers) == wait_s


def test_replies_that_never_came_or_never_ended_have_errors_of_their_own() -> None:
    late = connection_failed(Route.ZAI, TimeoutError(), Redactor(), timeout_s=600.0)
    lost = connection_failed(Route.ZAI, OSError("refused"), Redactor())
    cut = stream_cut(Route.ANTHROPIC, {"request-id": "req_2"}, "message_stop")
    page = not_json(Route.OPENAI, {"content-type": "text/html"}, "<html>", Redactor())

    assert "within 600 s" in str(late)
    assert "refused" in str(lost)
    assert "before 'message_stop'" in str(cut)
    assert cut.facts.request_id == "req_2"
    assert page.facts.body == "<html>"
    assert (late.retryable, lost.retryable, cut.retryable, page.retryable) == (True, True, True, False)


def test_a_gateway_that_names_a_request_by_its_key_gives_no_key_away() -> None:
    """PROVIDERS 10: the name of a request stands in the timeline, in errors and in the warehouse."""
    redactor = hiding(Redactor(), "zx-key-0123456789")
    shown = shown_headers({"X-Request-Id": "zx-key-0123456789", "Content-Type": "text/html"}, redactor)
    assert shown == {"x-request-id": "[redacted]", "content-type": "text/html"}
    assert request_id_of(shown) == "[redacted]"
