"""The engine `llm`: a language model reads an episode as fenced data, and gives a rationale and a value by dimension.

All dimensions go in one request, whose form a tool holds that the model has to call. A reply of another form is asked
for once more, and is then no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from geode.canonical import content_hash
from geode.clock import Clock, rfc3339
from geode.llm.binding import ModelOptions
from geode.llm.errors import BudgetReached, ConfigurationError, ContextTooLarge, LLMError, ProviderError
from geode.llm.messages import (
    LLMAdapter,
    Message,
    ModelResponse,
    Origin,
    Speaker,
    StepSnapshot,
    StopReason,
    TextBlock,
    ToolResult,
    ToolSchema,
    ToolUse,
)
from geode.llm.opening import room_of
from geode.llm.retry import RetryBudget, Retrying
from geode.llm.spending import billed_for
from geode.llm.usage import Attempt, Usage
from geode.redaction import clean_text
from judges.jev_questions import estimated_tokens
from judges.judgment import RAW_CHARS_MAX, Asked, Judgment, NoValue, Unscored, Value, all_unscored, entry_of, no_value
from judges.llm_prompt import (
    VERSION,
    Answer,
    ReplyMalformed,
    Shown,
    answers_of,
    instructions_of,
    question_set_of,
    shown_of,
    tool_of,
)
from judges.rubric import Dimension, Rubric
from judges.view import EpisodeView

NAME: Final = "llm"
_ASKED_MOST: Final = 2
_UNREAD: Final = "This is not of the form that was asked for: {problem}. Give the whole judgment again, in that form."
_NO_OPTIONS = ModelOptions()


@dataclass(slots=True)
class _Told:
    """What came of the requests for one episode so far."""

    asked: list[Asked] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)
    cut_by: str = ""


class LLMJudge:
    """Implements `JudgeEngine` over any model that holds a conversation.

    Args:
        adapter: the model; each episode has a budget of retries of its own.
        clock: when a judgment was given.
        options: how the model is asked; the adapter was opened with them.
        input_tokens_max: a longer episode is not asked about, by an estimate that rather counts too much; None takes
            the model's window.
        leave_out_middle: whether a longer episode is shown without the steps in its middle instead. The judgment notes
            it; an episode is never cut in silence.
    """

    def __init__(
        self,
        adapter: LLMAdapter,
        clock: Clock,
        *,
        options: ModelOptions = _NO_OPTIONS,
        input_tokens_max: int | None = None,
        leave_out_middle: bool = False,
    ) -> None:
        self._adapter, self._clock, self._options = adapter, clock, options
        self._input_tokens_max, self._leave_out_middle = input_tokens_max, leave_out_middle
        room = room_of(adapter.model, options)
        self._output_tokens = room.output_tokens
        bounds = [bound for bound in (input_tokens_max, room.context_tokens) if bound is not None]
        self._tokens_max = min(bounds, default=None)

    @property
    def name(self) -> str:
        """See `JudgeEngine.name`."""
        return NAME

    @property
    def engine_id(self) -> str:
        """See `JudgeEngine.engine_id`."""
        options = self._options.model_dump(mode="json", exclude_defaults=True)
        decides = [self._adapter.model, options, self._input_tokens_max, self._leave_out_middle]
        return content_hash([NAME, VERSION, *decides])[:12]

    @property
    def models(self) -> tuple[str, ...]:
        """See `JudgeEngine.models`."""
        return (self._adapter.model,)

    def question_set(self, rubric: Rubric) -> str:
        """See `JudgeEngine.question_set`."""
        return question_set_of(rubric)

    async def judge(self, view: EpisodeView, rubric: Rubric, *, repetition: int = 0) -> Judgment:
        """See `JudgeEngine.judge`."""
        system, tool, told = instructions_of(rubric), tool_of(rubric), _Told()
        shown, problem = self._shown(view, estimated_tokens(system) + estimated_tokens(str(tool.input_schema)))
        if problem:
            entries = all_unscored(rubric, Unscored.TOO_LONG, problem)
        else:
            told.said.append(_by_host(TextBlock(text=shown.text, origin=Origin.USER)))
            entries = await self._entries(rubric, system, tool, told)
        left_out = f"{shown.left_out} steps were left out of the middle: the episode is too long for the judge"
        return Judgment(
            episode=view.episode,
            view_digest=view.digest,
            engine=NAME,
            engine_id=self.engine_id,
            rubric=rubric.name,
            rubric_id=rubric.rubric_id,
            question_set=self.question_set(rubric),
            repetition=repetition,
            dimensions=entries,
            asked=tuple(told.asked),
            notes=(left_out,) if shown.left_out else (),
            cut_by=told.cut_by,
            at=rfc3339(self._clock.now()),
        )

    def _shown(self, view: EpisodeView, asking_tokens: int) -> tuple[Shown, str]:
        """Return what is shown, and why it cannot be."""
        most = float("inf") if self._tokens_max is None else self._tokens_max - asking_tokens
        shown = shown_of(view, most if self._leave_out_middle else float("inf"))
        tokens = estimated_tokens(shown.text)
        problem = f"about {tokens} tokens, and {most:.0f} are the most" if tokens > most else ""
        return shown, problem

    async def _entries(self, rubric: Rubric, system: str, tool: ToolSchema, told: _Told) -> dict[str, Value | NoValue]:
        """Ask, once more if the reply is of another form, and return what came of it."""
        adapter = self._adapter
        if isinstance(adapter, Retrying):
            adapter = replace(adapter, budget=RetryBudget())
        while True:
            try:
                response = await adapter.acomplete(self._snapshot(system, tool, told.said))
            except ConfigurationError:
                raise
            except BudgetReached as refusal:
                told.asked += [self._attempted(attempt) for attempt in refusal.attempts]
                if not told.asked:
                    raise
                told.cut_by = str(refusal)
                return all_unscored(rubric, Unscored.INFRASTRUCTURE, told.cut_by)
            except LLMError as error:
                told.asked += self._failed(error)
                too_long = isinstance(error, ContextTooLarge)
                return all_unscored(rubric, Unscored.TOO_LONG if too_long else Unscored.INFRASTRUCTURE, str(error))
            reply = _reply_of(response)
            told.asked += [*map(self._attempted, response.attempts), self._answered(response, reply)]
            if response.stop is StopReason.REFUSAL:
                return all_unscored(rubric, Unscored.REFUSED, response.stop_detail or reply)
            try:
                answers = answers_of(rubric, reply)
            except ReplyMalformed as problem:
                if len(told.said) > 2 * (_ASKED_MOST - 1):
                    return all_unscored(rubric, Unscored.PARSE_FAILURE, f"{problem}: {reply}")
                told.said += _asked_again(response, str(problem))
            else:
                return {d.name: _entry(d, answers[d.name]) for d in rubric.dimensions}

    def _snapshot(self, system: str, tool: ToolSchema, said: Sequence[Message]) -> StepSnapshot:
        asked = content_hash([system, *(message.text for message in said)])
        return StepSnapshot(
            session_id=f"judge-{content_hash([system, tool.input_schema])[:16]}",
            turn=1,
            round=len(said) // 2 + 1,
            model=self._adapter.model,
            system=system,
            messages=tuple(said),
            tools=(tool,),
            plan_hash="",
            plan_generation=0,
            max_output_tokens=self._output_tokens,
            history_digest=asked,
            forced_tool=tool.name,
        )

    def _answered(self, response: ModelResponse, reply: str) -> Asked:
        return self._asked(
            response.usage,
            served_model=response.served_model,
            request_id=response.request_id,
            latency_ms=response.latency_ms,
            reply=reply[:RAW_CHARS_MAX],
        )

    def _attempted(self, attempt: Attempt) -> Asked:
        return self._asked(
            attempt.usage, request_id=attempt.request_id, latency_ms=attempt.elapsed_ms, failed=attempt.error
        )

    def _failed(self, error: LLMError) -> list[Asked]:
        failed = f"{type(error).__name__}: {error}"
        if not isinstance(error, ProviderError):
            return [self._asked(None, failed=failed)]
        last = self._asked(billed_for(error), request_id=error.facts.request_id, failed=failed)
        return [*map(self._attempted, error.attempts), last]

    def _asked(self, usage: Usage | None, **more: object) -> Asked:
        used = usage or Usage()
        return Asked.model_validate(
            {
                "engine": NAME,
                "model": self._adapter.model,
                "input_tokens": used.input_tokens,
                "output_tokens": used.output_tokens,
                "cost_usd": used.cost_usd,
                "cost_origin": used.cost_origin,
                **more,
            }
        )


def _reply_of(response: ModelResponse) -> str:
    """Return the arguments of the call, else the text: a route that forces no tool may answer in either form.

    Those of calls that differ stand one under the other, which is no JSON: none of them is the one that was meant.
    """
    uses = dict.fromkeys(block.arguments for block in response.blocks if isinstance(block, ToolUse))
    if uses:
        return clean_text("\n".join(uses))
    text = "\n".join(block.text for block in response.blocks if isinstance(block, TextBlock)).strip()
    return clean_text(text.removeprefix("```json").removeprefix("```").removesuffix("```").strip())


def _asked_again(response: ModelResponse, problem: str) -> tuple[Message, Message]:
    """Return the malformed reply and what is wrong with it. Every call of it has a result."""
    text = _UNREAD.format(problem=problem)
    if not response.blocks:
        nothing = Message(role=Speaker.ASSISTANT, blocks=(TextBlock(text="(nothing)"),))
        return nothing, _by_host(TextBlock(text=text, origin=Origin.HOST))
    said = Message(role=Speaker.ASSISTANT, blocks=response.blocks, raw=response.raw)
    results = (ToolResult(call_id=use.call_id, text=text, is_error=True) for use in said.tool_uses)
    return said, _by_host(*results) if said.tool_uses else _by_host(TextBlock(text=text, origin=Origin.HOST))


def _by_host(*blocks: TextBlock | ToolResult) -> Message:
    return Message(role=Speaker.USER, blocks=blocks)


def _entry(dimension: Dimension, answer: Answer) -> Value | NoValue:
    if answer.value is None:
        return no_value(Unscored.ABSTAINED, answer.rationale)
    return entry_of(dimension, answer.value, reason=clean_text(answer.rationale))
