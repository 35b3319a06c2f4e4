"""The error bodies of the wires, by name of the failure: what is known of a body stands here word for word."""

from collections.abc import Mapping
from typing import Final

from geode.dev.fake_provider.script import Failure, HttpReply
from geode.dev.fake_provider.wire import encode, json_reply

HTML: Final = HttpReply(
    status=200, body="<!DOCTYPE html><html><body>Not the API</body></html>", content_type="text/html; charset=utf-8"
)

# status, type, message. A {note} in a message is what the request did.
ANTHROPIC: Final[Mapping[Failure, tuple[int, str, str]]] = {
    Failure.BAD_REQUEST: (400, "invalid_request_error", "{note}"),
    Failure.BAD_KEY: (401, "authentication_error", "invalid x-api-key"),
    Failure.TOKEN_EXPIRED: (401, "authentication_error", "OAuth token has expired."),
    Failure.FORBIDDEN: (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    Failure.UNKNOWN_MODEL: (404, "not_found_error", "model: {note}"),
    Failure.NOT_FOUND: (404, "not_found_error", "Not Found"),
    Failure.TIMEOUT: (408, "timeout_error", "Request timed out"),
    Failure.CONFLICT: (409, "conflict_error", "The request conflicts with another one."),
    Failure.TOO_LARGE: (413, "request_too_large", "Request exceeds the maximum size"),
    Failure.CONTEXT_TOO_LONG: (400, "invalid_request_error", "prompt is too long: {note}"),
    Failure.CONTENT_FILTER: (400, "invalid_request_error", "Output blocked by content filtering policy"),
    Failure.RATE_LIMITED: (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    Failure.CREDITS: (402, "billing_error", "Your credit balance is too low to access the Anthropic API."),
    Failure.SERVER: (500, "api_error", "Internal server error"),
    Failure.UNAVAILABLE: (503, "api_error", "Service unavailable"),
    Failure.OVERLOADED: (529, "overloaded_error", "Overloaded"),
}

# status, type, code, message.
OPENAI: Final[Mapping[Failure, tuple[int, str, str | None, str]]] = {
    Failure.BAD_REQUEST: (400, "invalid_request_error", None, "{note}"),
    Failure.BAD_KEY: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: {note}."),
    Failure.TOKEN_EXPIRED: (
        401,
        "invalid_request_error",
        "token_expired",
        "Provided authentication token is expired. Please try signing in again.",
    ),
    Failure.FORBIDDEN: (403, "invalid_request_error", "insufficient_permissions", "You have insufficient permissions."),
    Failure.UNKNOWN_MODEL: (
        400,
        "invalid_request_error",
        "model_not_found",
        "The requested model '{note}' does not exist.",
    ),
    Failure.NOT_FOUND: (404, "invalid_request_error", None, "Invalid URL ({note})"),
    Failure.TIMEOUT: (408, "server_error", None, "Request timed out."),
    Failure.CONFLICT: (409, "invalid_request_error", None, "The request conflicts with another one."),
    Failure.TOO_LARGE: (413, "invalid_request_error", None, "Request too large."),
    Failure.CONTEXT_TOO_LONG: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    Failure.CONTENT_FILTER: (
        400,
        "invalid_request_error",
        "invalid_prompt",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    ),
    Failure.RATE_LIMITED: (429, "tokens", "rate_limit_exceeded", "Rate limit reached for {note}."),
    Failure.CREDITS: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Failure.PLAN_QUOTA: (429, "usage_limit_reached", "usage_limit_reached", "The usage limit has been reached"),
    Failure.SERVER: (500, "server_error", "server_error", "The server had an error while processing your request."),
    Failure.UNAVAILABLE: (503, "server_error", "server_error", "The service is temporarily unavailable."),
    Failure.OVERLOADED: (
        503,
        "service_unavailable_error",
        "server_is_overloaded",
        "Our servers are currently overloaded. Please try again later.",
    ),
}

# status, error_type, message, further metadata.
OPENROUTER: Final[Mapping[Failure, tuple[int, str, str, Mapping[str, str]]]] = {
    Failure.BAD_REQUEST: (400, "invalid_request", "{note}", {}),
    Failure.BAD_KEY: (401, "authentication", "User not found.", {}),
    Failure.FORBIDDEN: (403, "permission_denied", "Only management keys can perform this operation", {}),
    Failure.UNKNOWN_MODEL: (400, "invalid_request", "{note} is not a valid model ID", {}),
    Failure.NOT_FOUND: (404, "not_found", "Not Found", {}),
    Failure.TIMEOUT: (408, "timeout", "Request timed out", {}),
    Failure.TOO_LARGE: (413, "payload_too_large", "Request Entity Too Large", {}),
    Failure.CONTEXT_TOO_LONG: (
        400,
        "context_length_exceeded",
        "This endpoint's maximum context length is exceeded: {note}. Please reduce the length of the messages.",
        {},
    ),
    Failure.CONTENT_FILTER: (403, "content_policy_violation", "The request was flagged by moderation", {}),
    Failure.RATE_LIMITED: (429, "rate_limit_exceeded", "Rate limit exceeded: free-models-per-min.", {}),
    Failure.CREDITS: (
        402,
        "payment_required",
        "This request requires more credits, or fewer max_tokens.",
        {"limit_source": "openrouter_credits", "reason": "weight_exceeds_budget"},
    ),
    Failure.KEY_LIMIT: (
        402,
        "payment_required",
        "Key limit exceeded.",
        {"limit_source": "openrouter_key_limit", "reason": "weight_exceeds_budget"},
    ),
    Failure.IN_FLIGHT_BUDGET: (
        402,
        "payment_required",
        "Too much is in flight for the balance of this account.",
        {"limit_source": "openrouter_in_flight_budget", "reason": "in_flight_budget_exhausted"},
    ),
    Failure.SERVER: (500, "server", "Internal Server Error", {}),
    Failure.UNAVAILABLE: (503, "provider_unavailable", "No instances available", {}),
    Failure.OVERLOADED: (529, "provider_overloaded", "Provider returned error: overloaded", {}),
}

# status, business code, message.
ZAI: Final[Mapping[Failure, tuple[int, str, str]]] = {
    Failure.BAD_REQUEST: (400, "1210", "Invalid API parameter, please check the documentation. {note}"),
    Failure.BAD_KEY: (401, "1000", "Authentication Failed"),
    Failure.TOKEN_EXPIRED: (401, "1003", "Authentication Token expired"),
    Failure.FORBIDDEN: (403, "1220", "You do not have permission to access {note}"),
    Failure.UNKNOWN_MODEL: (400, "1211", "Unknown Model, please check the model code."),
    Failure.NOT_FOUND: (404, "1212", "Current model does not support this call method"),
    Failure.CONTEXT_TOO_LONG: (400, "1261", "Prompt exceeds max length"),
    Failure.CONTENT_FILTER: (
        400,
        "1301",
        "System detected potentially unsafe or sensitive content in input or generation.",
    ),
    Failure.RATE_LIMITED: (429, "1303", "High frequency usage of this API, please reduce frequency."),
    Failure.CONCURRENCY: (429, "1302", "High concurrency usage of this API, please reduce concurrency."),
    Failure.CREDITS: (429, "1113", "Insufficient balance or no resource package. Please recharge."),
    Failure.PLAN_QUOTA: (429, "1308", "Usage limit reached for 5 hours. Your limit will reset at 2026-12-01 20:00:00"),
    Failure.PLAN_EXPIRED: (429, "1309", "Your GLM Coding Plan package has expired and is temporarily unavailable."),
    Failure.NOT_IN_PLAN: (429, "1311", "The current subscription plan does not yet include access to {note}"),
    Failure.FAIR_USE: (
        429,
        "1313",
        "Your account's current usage pattern does not comply with the Fair Usage Policy, and your request frequency"
        " has been limited.",
    ),
    Failure.SERVER: (500, "500", "Internal error"),
    Failure.UNAVAILABLE: (500, "1234", "Network error, please contact customer service."),
    Failure.OVERLOADED: (429, "1312", "This model is currently overloaded, please try again later."),
}

# status, what stands under `detail`.
TYPESAFE: Final[Mapping[Failure, tuple[int, object]]] = {
    Failure.BAD_REQUEST: (400, "{note}"),
    Failure.BAD_KEY: (401, {"error_type": "authentication_error", "message": "Cannot authenticate with the server."}),
    Failure.FORBIDDEN: (403, "Not authenticated"),
    Failure.UNKNOWN_MODEL: (400, {"error_type": "api_usage_error", "message": "Unknown model: {note}"}),
    Failure.NOT_FOUND: (404, "Not Found"),
    Failure.CONTEXT_TOO_LONG: (400, {"error_type": "max_tokens_exceeded"}),
    Failure.RATE_LIMITED: (429, {"error_type": "rate_limit_error", "message": "Rate limit exceeded."}),
    Failure.SERVER: (500, "Internal Server Error"),
    Failure.UNAVAILABLE: (503, "Service Unavailable"),
    Failure.OVERLOADED: (529, {"error_type": "overloaded_error", "message": "Overloaded."}),
}

# Only OpenRouter's own 429 carries these; a good reply has none.
_OPENROUTER_LIMITS: Final = {
    "x-ratelimit-limit": "20",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": "1790200061000",
}

# What stands in where a wire has no error of its own for a failure.
_NEAREST: Final[Mapping[Failure, Failure]] = {
    Failure.TOKEN_EXPIRED: Failure.BAD_KEY,
    Failure.CONCURRENCY: Failure.RATE_LIMITED,
    Failure.KEY_LIMIT: Failure.CREDITS,
    Failure.IN_FLIGHT_BUDGET: Failure.RATE_LIMITED,
    Failure.PLAN_QUOTA: Failure.CREDITS,
    Failure.PLAN_EXPIRED: Failure.CREDITS,
    Failure.NOT_IN_PLAN: Failure.FORBIDDEN,
    Failure.FAIR_USE: Failure.RATE_LIMITED,
    Failure.CREDITS: Failure.RATE_LIMITED,
    Failure.TIMEOUT: Failure.SERVER,
    Failure.CONFLICT: Failure.SERVER,
    Failure.TOO_LARGE: Failure.CONTEXT_TOO_LONG,
    Failure.CONTENT_FILTER: Failure.BAD_REQUEST,
    Failure.EMPTY_CHOICES: Failure.SERVER,
}


def nearest(failure: Failure, known: Mapping[Failure, object]) -> Failure:
    """Return the failure itself if the wire knows it, else the nearest one that it knows."""
    while failure not in known:
        failure = _NEAREST[failure]
    return failure


def anthropic(failure: Failure, request_id: str, note: str) -> HttpReply:
    """Return the Messages API's body for a failure."""
    status, kind, message = ANTHROPIC[nearest(failure, ANTHROPIC)]
    error = {"type": kind, "message": message.replace("{note}", note)}
    return json_reply(status, {"type": "error", "error": error, "request_id": request_id})


def openai(failure: Failure, note: str, param: str | None = None, code: str | None = None) -> HttpReply:
    """Return OpenAI's body for a failure."""
    status, kind, known, message = OPENAI[nearest(failure, OPENAI)]
    error = {"message": message.replace("{note}", note), "type": kind, "param": param, "code": code or known}
    return json_reply(status, {"error": error})


def openrouter(failure: Failure, note: str) -> HttpReply:
    """Return OpenRouter's body for a failure."""
    status, kind, message, more = OPENROUTER[nearest(failure, OPENROUTER)]
    error = {"code": status, "message": message.replace("{note}", note), "metadata": {"error_type": kind, **more}}
    limits = _OPENROUTER_LIMITS if failure is Failure.RATE_LIMITED else None
    return json_reply(status, {"error": error, "user_id": "user_fake"}, limits)


def zai(failure: Failure, note: str, code: str | None = None) -> HttpReply:
    """Return Z.ai's body for a failure."""
    status, known, message = ZAI[nearest(failure, ZAI)]
    return json_reply(status, {"error": {"code": code or known, "message": message.replace("{note}", note).strip()}})


def typesafe(failure: Failure, note: str) -> HttpReply:
    """Return TypeSafe's body for a failure."""
    status, detail = TYPESAFE[nearest(failure, TYPESAFE)]
    body = encode({"detail": detail}).replace("{note}", encode(note)[1:-1])
    return HttpReply(status=status, body=body)
