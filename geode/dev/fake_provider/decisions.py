"""The decision API: System One, direct and through OpenRouter. It answers questions; it never writes a text."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from geode.dev.fake_provider import failures
from geode.dev.fake_provider.decision_rules import direct_fault, openrouter_faults, question_fault, tokens_of_request
from geode.dev.fake_provider.models import DECISION_MODELS
from geode.dev.fake_provider.script import Failure, HttpReply, Step
from geode.dev.fake_provider.wire import Answer, Asked, Body, Refused, Request, drawn, encode, json_reply
from geode.llm.routes import Route

_USD_A_TOKEN: Final = 0.042e-6  # input; output is free
_OUTPUT_TOKENS_A_QUESTION: Final = 22
_HUNDREDTHS: Final = 100
_HUNDREDTHS_MOVED_MAX: Final = 4
_SYSTEM_ONE: Final = "/systemone"


class _Decisions:
    """What both ways have in common."""

    def asked(self, body: Body) -> Asked:
        """Return nothing: there is nothing for an agent to do here."""
        return Asked(prompt="")

    def stream_error(self, failure: Failure, request: Request, events: Sequence[str]) -> str:
        """Return nothing: decisions are not streamed."""
        return ""

    def _usage(self, request: Request, step: Step) -> dict[str, Any]:
        counted = tokens_of_request(request.body), _OUTPUT_TOKENS_A_QUESTION * len(request.body["questions"])
        figures = step.figures
        return {
            "input_tokens": counted[0] if figures.input_tokens is None else figures.input_tokens,
            "output_tokens": counted[1] if figures.output_tokens is None else figures.output_tokens,
        }

    def _answers(self, request: Request, step: Step) -> dict[str, Any]:
        questions: Mapping[str, Mapping[str, Any]] = request.body["questions"]
        return {
            name: decide(question, step.answers.get(name), request.seed + name, request.attempt)
            for name, question in questions.items()
        }


class TypeSafe(_Decisions):
    """`POST /v1/systemone` of TypeSafe itself."""

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        return failures.typesafe(failure, note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        if fault := direct_fault(request):
            raise Refused(fault)

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the answers to all questions, and the versioned model."""
        served = step.served_model or DECISION_MODELS[Route.TYPESAFE].get(request.model, request.model)
        body = {"model": served, "answers": self._answers(request, step), "usage": self._usage(request, step)}
        return Answer(whole=lambda: encode(body), events=list)


class OpenRouterDecisions(_Decisions):
    """OpenRouter's two endpoints: upstream errors come wrapped as text, and the reply names a cost."""

    def refuse(self, failure: Failure, request: Request | None, *, note: str = "") -> HttpReply:
        """Return the error body of `failure`."""
        if failure is Failure.CONTEXT_TOO_LONG:
            return _wrapped(failures.typesafe(failure, note))
        return failures.openrouter(failure, note)

    def check(self, request: Request) -> None:
        """Raise `Refused` if the request breaks a rule."""
        for fault in openrouter_faults(request.body):
            raise Refused(json_reply(400, {"error": {"message": fault, "code": 400}}))
        model = _slug(request)
        if model not in DECISION_MODELS[Route.OPENROUTER] and model not in request.script.models:
            raise Refused(self.refuse(Failure.UNKNOWN_MODEL, request, note=request.model))
        if upstream := question_fault(request):
            raise Refused(_wrapped(upstream))

    def answer(self, request: Request, step: Step) -> Answer:
        """Return the answers to all questions, and what they cost."""
        model = _slug(request)
        usage = self._usage(request, step)
        cost = step.figures.cost_usd
        body = {
            "id": drawn("gen-dec-1790200001-", request.seed, length=20),
            "model": step.served_model or DECISION_MODELS[Route.OPENROUTER].get(model, model),
            "provider": "TypeSafe",
            "answers": self._answers(request, step),
            "usage": {**usage, "cost": round(usage["input_tokens"] * _USD_A_TOKEN, 12) if cost is None else cost},
        }
        return Answer(whole=lambda: encode(body), events=list)


def _slug(request: Request) -> str:
    """Return OpenRouter's id. Its System One endpoint takes TypeSafe's own spelling too."""
    model = request.model
    if not request.path.endswith(_SYSTEM_ONE) or "/" in model:
        return model
    return f"~typesafe/{model}" if model == "jev-latest" else f"typesafe/{model}"


def _wrapped(reply: HttpReply) -> HttpReply:
    error = {"message": f"HTTP {reply.status}: {reply.body}", "code": reply.status}
    return json_reply(reply.status, {"error": error})


def decide(question: Mapping[str, Any], given: object, seed: str, attempt: int = 1) -> dict[str, Any]:
    """Answer one question: as given by the script, or drawn, with a clear favourite.

    The same question is not answered twice alike: what is drawn for a later `attempt` differs by a few hundredths. A
    probability is given for a noul; probabilities by label or level for the others. The statistics follow from the
    rounded probabilities: confidence of a choice is (n·pmax - 1)/(n - 1); of a score 1 - sum(p·|i - mode|)/U with
    U = floor(n²/4)/n.
    """
    if question["type"] == "noul":
        return {
            "type": "noul",
            "noul": round(float(given), 2) if isinstance(given, int | float) else _draw(seed, 2, attempt)[0],
        }
    if question["type"] == "choice":
        labels = sorted(question["criteria"], key=lambda label: drawn("", seed, label))  # not the order that was asked
        chances = _chances(labels, given, seed, attempt)
        top = max(chances.values())
        confidence = (len(labels) * top - 1) / (len(labels) - 1) if len(labels) > 1 else 1.0
        best = max(chances, key=lambda label: chances[label])
        return {"type": "choice", "choice": best, "confidence": round(confidence, 2), "probabilities": chances}
    levels = question["criteria"]
    chances = _chances([str(at) for at in range(len(levels))], given, seed, attempt)
    by_level = list(chances.values())
    mode = by_level.index(max(by_level))
    most = (len(levels) ** 2 // 4) / len(levels)
    spread = sum(chance * abs(at - mode) for at, chance in enumerate(by_level))
    return {
        "type": "score",
        "score": round(sum(at * chance for at, chance in enumerate(by_level)), 2),
        "confidence": round(max(0.0, 1 - spread / most), 2) if most else 1.0,
        "legend": {str(at): level for at, level in enumerate(levels)},
        "probabilities": chances,
    }


def _chances(names: Sequence[str], given: object, seed: str, attempt: int) -> dict[str, float]:
    if isinstance(given, dict):
        return {name: round(float(given.get(name, 0.0)), 2) for name in names}
    return dict(zip(names, _draw(seed, len(names), attempt), strict=True))


def _draw(seed: str, count: int, attempt: int) -> list[float]:
    """Return hundredths that sum to one, most of them at one place."""
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()
    left, shares = _HUNDREDTHS, [0] * count
    favourite = digest[0] % count
    for at in range(min(count, len(digest) - 2)):
        share = min(left // 4, digest[at + 2] % 12)
        shares[at] += share
        left -= share
    shares[favourite] += left
    if attempt > 1:
        moved, to, *_ = hashlib.sha256(f"{seed}\x1f{attempt}".encode("utf-8", "surrogatepass")).digest()
        moved = min(shares[favourite], moved % (_HUNDREDTHS_MOVED_MAX + 1))
        shares[favourite] -= moved
        shares[to % count] += moved
    return [share / _HUNDREDTHS for share in shares]
