"""What System One refuses of a decision request, and OpenRouter's schema before it."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from geode.dev.fake_provider.models import DECISION_MODELS
from geode.dev.fake_provider.script import HttpReply
from geode.dev.fake_provider.wire import Body, Request, encode, json_reply
from geode.llm.routes import Route

_TOP_LEVEL: Final = ("model", "state", "questions", "assets")
_TYPES: Final = ("noul", "choice", "score")
_CHOICES_MAX: Final = 255
_LEVELS_MAX: Final = 10
_SESSION_CHARS_MAX: Final = 256
_TOTAL_TOKENS_MAX: Final = 64_000
_LONGEST_TOKENS_MAX: Final = 32_000
_FIXED_TOKENS: Final = 258
_QUESTION_TOKENS: Final = 8
_OPTION_TOKENS: Final = 8
_CHARS_A_TOKEN: Final = 6.5  # of prose
_COSTLY = re.compile(r"[^\sA-Za-z]")  # digits and punctuation: a token each

_INVALID: Final = {"error_type": "api_usage_error", "message": "Invalid request."}


def direct_fault(request: Request) -> HttpReply | None:
    """Return what TypeSafe's own endpoint answers to a request that breaks a rule."""
    body = request.body
    if any(name not in _TOP_LEVEL for name in body):
        return _detail(400, _INVALID)
    for name in ("state", "questions", "model"):
        if name not in body:
            return _unprocessable("missing", [name], "Field required", body)
    if not isinstance(body["state"], str | dict | list):
        return _unprocessable("string_type", ["state", "str"], "Input should be a valid string", body["state"])
    if request.model not in DECISION_MODELS[Route.TYPESAFE] and request.model not in request.script.models:
        return _detail(400, {"error_type": "api_usage_error", "message": f"Unknown model: {request.model}"})
    return question_fault(request)


def question_fault(request: Request) -> HttpReply | None:
    """Return what is wrong with the questions, or with their size; OpenRouter hands it on as text."""
    questions = request.body["questions"]
    if not isinstance(questions, dict) or not questions:
        text = "Dictionary should have at least 1 item after validation, not 0"
        return _unprocessable("too_short", ["questions"], text, questions)
    for name, question in questions.items():
        if fault := _one(name, question):
            return fault
    if is_too_long(request):
        return _detail(400, {"error_type": "max_tokens_exceeded"})
    return None


def _one(name: str, question: Mapping[str, Any]) -> HttpReply | None:
    if not name:
        return _detail(400, "Question key cannot be empty.")
    criteria = question.get("criteria")
    detail: object = None
    match question.get("type"):
        case "noul":
            if not question.get("instructions") and not any((criteria or {}).values()):
                detail = f"Noul question must have criteria or instructions: {name}"
        case "choice":
            if not criteria:
                detail = f"Choice question must have at least one choice: {name}"
            elif len(criteria) > _CHOICES_MAX:
                detail = f"Too many choices. Must have at most {_CHOICES_MAX} choices."
        case "score":
            return _score(["questions", name, "score", "criteria"], criteria)
        case _:
            detail = _INVALID
    return _detail(400, detail) if detail else None


def _score(where: list[Any], levels: object) -> HttpReply | None:
    if not isinstance(levels, list):
        return _unprocessable("list_type", where, "Input should be a valid list", levels)
    if not levels:
        return _unprocessable("too_short", where, "List should have at least 1 item after validation, not 0", levels)
    if None in levels:
        return _unprocessable("string_type", [*where, levels.index(None)], "Input should be a valid string", None)
    if len(levels) > _LEVELS_MAX:
        return _detail(400, f"Too many score levels. Must have at most {_LEVELS_MAX} levels.")
    return None


def openrouter_faults(body: Body) -> Iterator[str]:
    """Say what OpenRouter's own schema refuses, as the JSON array that it puts into the message as a string."""
    for name in ("model", "state", "questions"):
        if name not in body:
            yield _issue("invalid_type", [name], "Invalid input: expected a value, received undefined")
    if not isinstance(body.get("state"), str | dict | list):
        yield _issue("invalid_union", ["state"], "Invalid input")
    if len(str(body.get("session_id", ""))) > _SESSION_CHARS_MAX:
        yield _issue("too_big", ["session_id"], f"Too big: expected string to have <={_SESSION_CHARS_MAX} characters")
    for name, question in body["questions"].items():
        where = ["questions", name]
        if question.get("type") not in (*_TYPES, "box"):
            yield _issue("invalid_union", [*where, "type"], "Invalid input")
        if not isinstance(question.get("instructions"), str | dict | list):
            yield _issue("invalid_union", [*where, "instructions"], "Invalid input")
        criteria = question.get("criteria")
        if question.get("type") == "noul" and criteria is not None and not {"true", "false"} <= set(criteria):
            yield _issue("invalid_type", [*where, "criteria"], "Invalid input: both `true` and `false` are required")


def _issue(code: str, path: list[str], message: str) -> str:
    return encode([{"code": code, "path": path, "message": message}])


def _detail(status: int, detail: object) -> HttpReply:
    return json_reply(status, {"detail": detail})


def _unprocessable(kind: str, where: list[Any], message: str, given: object) -> HttpReply:
    """Return a validation error. It echoes what it was given, as the real one does."""
    return _detail(422, [{"type": kind, "loc": ["body", *where], "msg": message, "input": given}])


def tokens_in(value: object) -> int:
    """Return the tokens of a JSON value as System One counts them: digits and punctuation are dear."""
    text = value if isinstance(value, str) else encode(value)
    costly = len(_COSTLY.findall(text))
    return costly + math.ceil((len(text) - costly) / _CHARS_A_TOKEN)


def tokens_of_question(question: Mapping[str, Any]) -> int:
    """Return the tokens of a question with its options or levels. Its id is not sent to the model."""
    criteria = question.get("criteria") or ()
    parts = [question.get("instructions") or ""]
    parts += [part for item in criteria.items() for part in item] if isinstance(criteria, dict) else list(criteria)
    options = len(criteria) * _OPTION_TOKENS
    return _QUESTION_TOKENS + options + sum(tokens_in(part) for part in parts if part is not None)


def tokens_of_request(body: Body) -> int:
    """Return the input tokens of a request."""
    asked = sum(tokens_of_question(question) for question in body["questions"].values())
    return _FIXED_TOKENS + tokens_in(body["state"]) + asked


def is_too_long(request: Request) -> bool:
    """Return whether the state with the longest question, or all of it, passes the window."""
    body, window = request.body, request.script.context_tokens
    longest = max(tokens_of_question(question) for question in body["questions"].values())
    binding = window if window is not None else _LONGEST_TOKENS_MAX
    return tokens_in(body["state"]) + longest > binding or tokens_of_request(body) > max(_TOTAL_TOKENS_MAX, binding)
