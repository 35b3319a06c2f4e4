"""What happened in a session, turn by turn, from what is left of its records.

The timeline tells most: ends, stages, usage. What it lacks, since a process died before it could write or the file is
torn, is filled in from the messages and the receipts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from geode.events import preview
from geode.llm.messages import Origin, TextBlock, ToolResult
from geode.records.checkpoint import PlacedMessage
from geode.records.receipts import EffectReceipt, ReceiptState

UNKNOWN = "unknown"
"""The end of a call of which nothing is on record but that it was asked for."""
_ANSWERED, _ERROR = "answered", "answered with an error"
_TO_BE_RESUMED = frozenset({"", "cancelled", "checkpoint_failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTold:
    """One tool call. `end` is that of its effect where one is on record; `stage` is empty unless it was refused."""

    call_id: str
    tool: str
    arguments: str
    end: str
    stage: str = ""
    rule: str = ""
    is_error: bool = False
    result: str = ""
    elapsed_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What model calls used, as far as it is on record. `unknown` counts those of which a figure is not."""

    model_calls: int = 0
    unknown: int = 0
    uncached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens together."""
        return self.uncached_input_tokens + self.cache_write_tokens + self.cache_read_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTold:
    """One model call and the tools that it asked for. `used` is None where no end of the call is on record.

    `attempts_cost_usd` is what is known to be billed for the requests that gave nothing.
    """

    round: int
    stop: str = ""
    model: str = ""
    simulated: bool = False
    used: Used | None = None
    failed: str = ""
    attempts_failed: int = 0
    attempts_cost_usd: float = 0.0
    calls: tuple[CallTold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTold:
    """One prompt and what became of it. `stop_reason` is empty while it has no end on record."""

    turn: int
    prompt: str = ""
    stop_reason: str = ""
    verified: bool = False
    repairs_used: int = 0
    answer: str = ""
    rounds: tuple[RoundTold, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether it is to be gone on with, as far as the timeline tells."""
        return self.stop_reason in _TO_BE_RESUMED


@dataclass(slots=True)
class _Turn:
    told: TurnTold
    rounds: dict[int, RoundTold] = field(default_factory=dict)
    calls: dict[int, dict[str, CallTold]] = field(default_factory=dict)

    def finished(self) -> TurnTold:
        numbers = sorted(self.rounds.keys() | self.calls.keys())
        rounds = (
            replace(self.rounds.get(n, RoundTold(round=n)), calls=tuple(self.calls.get(n, {}).values()))
            for n in numbers
        )
        return replace(self.told, rounds=tuple(rounds))


def tell(
    events: Iterable[Mapping[str, JsonValue]], messages: Sequence[PlacedMessage], receipts: Sequence[EffectReceipt]
) -> tuple[TurnTold, ...]:
    """Return the turns of a session in order. Texts are previews."""
    turns: dict[int, _Turn] = {}
    for placed in messages:  # first, since they know the order in which calls were asked for
        _from_message(turns, placed)
    for event in events:
        _from_event(turns, event)
    ends = {(receipt.key.round, receipt.key.call_id): receipt for receipt in receipts}
    for turn in turns.values():
        for number, calls in turn.calls.items():
            for call in calls.values():
                if receipt := ends.get((number, call.call_id)):
                    calls[call.call_id] = _with_receipt(call, receipt)
    return tuple(turns[number].finished() for number in sorted(turns))


def _from_event(turns: dict[int, _Turn], event: Mapping[str, JsonValue]) -> None:
    number, at = event.get("turn"), event.get("round")
    if not isinstance(number, int):
        return
    turn = turns.setdefault(number, _Turn(TurnTold(turn=number)))
    match event.get("kind"):
        case "prompt_received":
            turn.told = replace(turn.told, prompt=_text(event, "text"))
        case "turn_ended":
            turn.told = replace(
                turn.told,
                stop_reason=_text(event, "stop_reason"),
                verified=event.get("verified") is True,
                repairs_used=round(_figure(event, "repairs_used")),
                answer=_text(event, "text"),
            )
        case "model_called" if isinstance(at, int):
            turn.rounds[at] = replace(
                turn.rounds.get(at, RoundTold(round=at)),
                stop=_text(event, "stop"),
                model=_text(event, "served_model"),
                simulated=event.get("simulated") is True,
                used=_used(event),
            )
        case "model_failed" if isinstance(at, int):
            turn.rounds[at] = replace(turn.rounds.get(at, RoundTold(round=at)), failed=_text(event, "error"))
        case "attempt_failed" if isinstance(at, int):
            told = turn.rounds.get(at, RoundTold(round=at))
            turn.rounds[at] = replace(
                told,
                attempts_failed=told.attempts_failed + 1,
                attempts_cost_usd=told.attempts_cost_usd + _figure(event, "cost_usd"),
            )
        case "call_ended" if isinstance(at, int):
            turn.calls.setdefault(at, {})[_text(event, "call_id")] = CallTold(
                call_id=_text(event, "call_id"),
                tool=_text(event, "tool"),
                arguments=_text(event, "arguments"),
                end=_text(event, "end") or UNKNOWN,
                stage=_text(event, "stage"),
                rule=_text(event, "rule"),
                is_error=event.get("is_error") is True,
                result=_text(event, "result"),
                elapsed_ms=_figure(event, "elapsed_ms"),
            )


def _from_message(turns: dict[int, _Turn], placed: PlacedMessage) -> None:
    turn = turns.setdefault(placed.turn, _Turn(TurnTold(turn=placed.turn)))
    for use in placed.message.tool_uses:
        asked = CallTold(call_id=use.call_id, tool=use.name, arguments=preview(use.arguments), end=UNKNOWN)
        turn.calls.setdefault(placed.round, {}).setdefault(use.call_id, asked)
    for block in placed.message.blocks:
        match block:
            case TextBlock(origin=Origin.USER):
                turn.told = replace(turn.told, prompt=preview(block.text))
            case ToolResult():
                calls = turn.calls.get(placed.round, {})
                if call := calls.get(block.call_id):
                    end = _ERROR if block.is_error else _ANSWERED
                    calls[block.call_id] = replace(call, end=end, is_error=block.is_error, result=preview(block.text))


def _with_receipt(call: CallTold, receipt: EffectReceipt) -> CallTold:
    # A receipt is the record of an effect; what the timeline says of it may have been settled since.
    end = ReceiptState.UNCERTAIN if receipt.state is ReceiptState.STARTED else receipt.state
    return replace(call, end=end.value)


def used(turns: Iterable[TurnTold]) -> Used:
    """Return the sum of what the model calls of `turns` used."""
    rounds = [told for turn in turns for told in turn.rounds]
    calls = [told.used for told in rounds if told.used is not None]
    return Used(
        model_calls=sum(call.model_calls for call in calls),
        unknown=sum(call.unknown for call in calls),
        uncached_input_tokens=sum(call.uncached_input_tokens for call in calls),
        cache_write_tokens=sum(call.cache_write_tokens for call in calls),
        cache_read_tokens=sum(call.cache_read_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cost_usd=sum(call.cost_usd for call in calls) + sum(told.attempts_cost_usd for told in rounds),
    )


def _used(event: Mapping[str, JsonValue]) -> Used:
    # A provider need not say how much it read from a cache; what it billed and wrote it must.
    needed = ("uncached_input_tokens", "output_tokens", "cost_usd")
    return Used(
        model_calls=1,
        unknown=int(any(event.get(key) is None for key in needed)),
        uncached_input_tokens=round(_figure(event, "uncached_input_tokens")),
        cache_write_tokens=round(_figure(event, "cache_write_tokens")),
        cache_read_tokens=round(_figure(event, "cache_read_tokens")),
        output_tokens=round(_figure(event, "output_tokens")),
        cost_usd=_figure(event, "cost_usd"),
    )


def _text(event: Mapping[str, JsonValue], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _figure(event: Mapping[str, JsonValue], key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
