"""One real call to see whether a route works: the key, the address, the model and its form. It costs a little."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from geode.llm.binding import Effort, ModelOptions
from geode.llm.catalog import Entry, Tier, catalog
from geode.llm.credentials import has_key
from geode.llm.errors import LLMError
from geode.llm.messages import Message, Origin, Speaker, StepSnapshot, TextBlock
from geode.llm.opening import open_adapter
from geode.llm.retry import RetryPolicy
from geode.llm.routes import ModelName, Route, parse_model
from geode.llm.spending import Purse
from geode.llm.usage import Usage, shown_usd
from geode.redaction import Redactor

_SYSTEM = "This is a test of the connection."  # by the plan of a subscription, no request goes without instructions
_PROMPT = "Answer with the word ready."
_OUTPUT_TOKENS = 1_024  # a model that always thinks needs some before its first word
_NOT_ASKED = (Route.SIMULATED, Route.RECORDED, Route.TYPESAFE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of a check. `problem` is empty if the model answered."""

    model: str
    problem: str = ""
    served_model: str = ""
    usage: Usage | None = None
    latency_ms: int = 0

    @property
    def text(self) -> str:
        """The result for people."""
        if self.problem:
            return f"{self.model}: {self.problem}"
        # So small a cost needs more digits than others.
        usage = self.usage or Usage()
        cost = shown_usd(None) if usage.cost_usd is None else f"{usage.cost_usd:.6f} USD ({usage.cost_origin})"
        return f"{self.model}: served by {self.served_model} in {self.latency_ms} ms, {cost}"

    def to_json(self) -> dict[str, JsonValue]:
        """Return the result as JSON values."""
        usage = self.usage or Usage()
        return {
            "model": self.model,
            "ok": not self.problem,
            "problem": self.problem,
            "served_model": self.served_model,
            "latency_ms": self.latency_ms,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "cost_origin": usage.cost_origin.value,
        }


def models_to_check(environment: Mapping[str, str], route: Route | None, today: date) -> list[str]:
    """Return a cheap model of each route that has a key, or of `route` whether it has one or not."""
    routes = [route] if route else [known for known in Route if known not in _NOT_ASKED and has_key(known, environment)]
    return [str(model) for known in routes if (model := _cheap(known, today)) is not None]


async def check_model(model: str, environment: Mapping[str, str], purse: Purse, redactor: Redactor) -> Checked:
    """Ask `model` once for a word, and say what came of it. Nothing is raised for what the provider does."""
    try:
        adapter = open_adapter(
            model,
            environment,
            options=ModelOptions(effort=_least_effort(model)),
            purse=purse,
            redactor=redactor,
            policy=RetryPolicy(requests=2),
        )
        response = await adapter.acomplete(_question(model))
    except LLMError as error:
        return Checked(model=model, problem=f"{type(error).__name__}: {error}")
    return Checked(
        model=model, served_model=response.served_model, usage=response.usage, latency_ms=response.latency_ms
    )


def _cheap(route: Route, today: date) -> ModelName | None:
    def fits(entry: Entry) -> bool:
        ends = entry.ends_by(route)
        return entry.prices is not None and not entry.decision_only and (ends is None or today <= ends)

    found = [(name, entry) for name, entry in catalog().of_route(route) if fits(entry)]
    # What an operator would choose for cheap work comes before what costs nothing, and is often not to be had.
    return min(found, key=lambda of: (of[1].tier is not Tier.ECONOMY, _price(of[1])), default=(None, None))[0]


def _price(entry: Entry) -> float:
    return entry.prices.output if entry.prices else 0.0


def _least_effort(model: str) -> Effort | None:
    entry = catalog().find(parse_model(model))
    listed = entry is not None and entry in catalog().entries
    return entry.efforts[0] if entry is not None and listed and entry.efforts else None


def _question(model: str) -> StepSnapshot:
    return StepSnapshot(
        session_id="models-check",
        turn=1,
        round=1,
        model=model,
        system=_SYSTEM,
        messages=(Message(role=Speaker.USER, blocks=(TextBlock(text=_PROMPT, origin=Origin.USER),)),),
        tools=(),
        plan_hash="",
        plan_generation=0,
        max_output_tokens=_OUTPUT_TOKENS,
        history_digest="",
    )
