"""What a provider says of a failed request, as the errors of `geode.llm.errors`: the same words, whatever the wire.

A word of the provider's (its `code`, else its `type`) decides; the HTTP status decides where no word is known. Inside
of a stream the status is 200 and says nothing, so there only words count.
"""

import json
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from geode.llm.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ContextTooLarge,
    Facts,
    Overloaded,
    PaymentRequired,
    ProviderError,
    RateLimited,
    RequestInvalid,
    ResponseInvalid,
    StreamCut,
)
from geode.llm.routes import Route
from geode.llm.usage import Usage
from geode.redaction import Redactor, clean_text

BODY_CHARS_MAX: Final = 2_000
_MESSAGE_CHARS_MAX: Final = 600
_READ_CHARS_MAX: Final = 20_000  # a secret is looked for in no more of a body than this
_REQUEST_IDS: Final = ("request-id", "x-request-id", "x-typesafe-request-id", "x-generation-id")

_WORDS: Final[Mapping[type[ProviderError], str]] = {
    ContextTooLarge: (
        "context_length_exceeded context_window_exceeded max_tokens_exceeded token_limit_exceeded string_too_long"
        " string_above_max_length payload_too_large request_too_large model_context_window_exceeded 1261"
    ),
    # Waiting does not help with these, although most of them come with status 429.
    PaymentRequired: (
        "billing_error payment_required insufficient_quota billing_not_active billing_hard_limit_reached"
        " usage_limit_reached usage_not_included contract_spend_limit_reached openrouter_credits openrouter_key_limit"
        " 1113 1304 1308 1309 1310 1311 1313"
    ),
    AuthenticationFailed: (
        "authentication authentication_error invalid_api_key token_expired permission_error permission_denied"
        " insufficient_permissions 1000 1001 1002 1003 1004 1110 1111 1112 1120 1121 1220"
    ),
    RateLimited: ("rate_limit_error rate_limit_exceeded tokens requests openrouter_in_flight_budget 1302 1303 1305"),
    Overloaded: (
        "overloaded_error overloaded provider_overloaded provider_unavailable server_is_overloaded"
        " service_unavailable_error capacity_exhausted temporarily_unavailable api_error server_error server"
        " internal_server_error timeout_error timeout conflict_error slow_down network_error 500 1234 1312"
    ),
    RequestInvalid: (
        "invalid_request_error invalid_request invalid_prompt not_found_error not_found model_not_found"
        " unsupported_value precondition_failed unprocessable 1210 1211 1212 1213 1214"
    ),
}
_BY_WORD: Final[Mapping[str, type[ProviderError]]] = {
    word: kind for kind, words in _WORDS.items() for word in words.split()
}
# So many requests are refused for being of the wrong form that these words leave the choice to the status.
_VAGUE: Final = frozenset({"invalid_request_error", "invalid_request"})
_BY_STATUS: Final[Mapping[int, type[ProviderError]]] = {
    401: AuthenticationFailed,
    402: PaymentRequired,
    403: AuthenticationFailed,
    408: Overloaded,
    409: Overloaded,
    413: ContextTooLarge,
    429: RateLimited,
    434: AuthenticationFailed,  # Z.ai's for an API that the account may not use; its 435 is a file that is too large
}
# The one way in which some providers say it; no code stands beside it.
_TOO_LONG: Final = (
    "prompt is too long",
    "exceed context limit",
    "exceeds the context window",
    "maximum context length",
    "max_tokens_exceeded",
)


def provider_error(
    route: Route,
    *,
    status: int | None,
    type: str,  # noqa: A002  (the providers' own word)
    code: str,
    message: str,
    headers: Mapping[str, str],
    body: object,
    redactor: Redactor,
    usage: Usage | None = None,
    retryable: bool | None = None,
) -> ProviderError:
    """Return the error that these words of a provider's mean.

    Args:
        route: where the request went.
        status: the HTTP status; 200 for an error inside of a stream.
        type: the provider's word for the kind of error, empty if it has none.
        code: its more exact word, empty if it has none.
        message: what it says to people.
        headers: of the reply; looked up by lower-case names.
        body: what the reply held, as text or parsed; None where it must not be kept.
        redactor: takes secrets out of all that the error keeps.
        usage: what the request was billed for, as far as it is known.
        retryable: what the provider itself says of trying again; by default the kind of error decides.
    """
    facts = Facts(
        provider=route.value,
        status=status,
        type=_shown(type, redactor, 100),
        code=_shown(code, redactor, 100),
        request_id=request_id_of(headers),
        retry_after_s=retry_after_s(headers),
        body=shown_body(body, redactor),
    )
    kind = _kind(status, type, code, message)
    said = _shown(message, redactor, _MESSAGE_CHARS_MAX) or "the provider gave no reason"
    return kind(said, facts, usage=usage, retryable=retryable)


def connection_failed(
    route: Route,
    problem: BaseException,
    redactor: Redactor,
    *,
    timeout_s: float | None = None,
    usage: Usage | None = None,
) -> ConnectionFailed:
    """Return the error of a request that got no reply; `timeout_s` if it is the time that was up."""
    said = f"{problem.__class__.__name__}: {problem.__cause__ or problem}"
    text = f"no reply within {timeout_s:g} s" if timeout_s is not None else f"no connection to the provider ({said})"
    return ConnectionFailed(_shown(text, redactor, _MESSAGE_CHARS_MAX), Facts(provider=route.value), usage=usage)


def stream_cut(
    route: Route, headers: Mapping[str, str], missing: str, usage: Usage | None = None, problem: str = ""
) -> StreamCut:
    """Return the error of a stream that ended without `missing`, its last event."""
    facts = Facts(provider=route.value, status=200, request_id=request_id_of(headers), type=problem)
    return StreamCut(f"the stream ended before {missing!r}", facts, usage=usage)


def not_json(route: Route, headers: Mapping[str, str], body: object, redactor: Redactor) -> ResponseInvalid:
    """Return the error of a reply with status 200 that is no reply of an API, such as an HTML page of a proxy."""
    facts = Facts(provider=route.value, status=200, request_id=request_id_of(headers), body=shown_body(body, redactor))
    kind = headers.get("content-type", "of no type")
    return ResponseInvalid(
        f"the reply is {kind!r} where an API replies with JSON or events; check the base URL of the route", facts
    )


def shown_headers(headers: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return the headers of a reply by lower-case names, without secrets: a gateway may name a request by its key."""
    return {name.lower(): redactor.redact(value) for name, value in headers.items()}


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the provider's own name of a request, empty if its reply does not say."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), "")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the provider asks to wait; None if it says nothing that can be read.

    A date is held against the date of the reply, since the clocks of the two hosts may differ.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait_s):
            return max(0.0, wait_s)
    try:
        until, sent = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
        return max(0.0, (until - sent).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None


def hiding(redactor: Redactor, key: str) -> Redactor:
    """Return `redactor` made to know `key` as well: providers repeat a key in what they say of it."""
    own = Redactor.of_environment({"KEY": key})
    return Redactor(needles=(*own.needles, *redactor.needles), secrets=(*own.secrets, *redactor.secrets))


def shown_body(body: object, redactor: Redactor) -> str:
    """Return what an error may keep of a body: redacted, and no more than `BODY_CHARS_MAX` of it."""
    match body:
        case None:
            return ""
        case bytes():
            text = body[: 4 * _READ_CHARS_MAX].decode("utf-8", "replace")
        case str():
            text = body
        case _:
            text = json.dumps(body, ensure_ascii=False, default=str)
    return _shown(text, redactor, BODY_CHARS_MAX)


def _shown(text: str, redactor: Redactor, chars_max: int) -> str:
    # Redacted before it is cut: half a key is not known as one.
    return redactor.redact(clean_text(text[:_READ_CHARS_MAX]))[:chars_max]


def _kind(status: int | None, type_: str, code: str, message: str) -> type[ProviderError]:
    if status in (None, 200) and code.isdigit() and len(code) == len("429"):
        status = int(code)  # OpenRouter writes the status that it would have sent
    if any(part in message.lower() for part in _TOO_LONG):
        return ContextTooLarge
    words = [word for word in (code, type_) if word not in _VAGUE]
    for word in words:
        if kind := _BY_WORD.get(word):
            return kind
    if status is not None and status != 200:
        return _BY_STATUS.get(status, Overloaded if status >= 500 else RequestInvalid)
    return RequestInvalid if {code, type_} & _VAGUE else ResponseInvalid
