"""What is told of a call, to the model and to observers: clean, without secrets, and bounded."""

from geode.events import PREVIEW_CHARS, CallEnded, HookDecided, preview
from geode.executor.call import ExecutedCall, Place
from geode.hooks.points import HookPoint
from geode.hooks.registry import Answer
from geode.hooks.system import HookSystem
from geode.llm.messages import ToolUse
from geode.redaction import Redactor, clean_text

RESULT_CHARS_MAX = 30_000


class Told:
    """Cleans texts, and emits what happened to a call."""

    def __init__(self, redactor: Redactor, observers: HookSystem) -> None:
        self._redactor, self._observers = redactor, observers

    def safe(self, text: str) -> str:
        """Return `text` as the model may read it: never empty, and cut in the middle if it is too long."""
        text = self._redactor.redact(clean_text(text))
        if not text.strip():
            return "(no output)"
        if len(text) <= RESULT_CHARS_MAX:
            return text
        half = RESULT_CHARS_MAX // 2
        return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

    def excerpt(self, text: str, limit: int = PREVIEW_CHARS) -> str:
        """Return the beginning of `text` for a record."""
        # Redacted before it is cut: half a secret would not be recognised.
        return preview(self._redactor.redact(clean_text(text)), limit)

    def hook(self, answer: Answer, point: HookPoint, place: Place) -> None:
        """Tell what a hook said."""
        self._observers.emit(decided(answer, point, place.turn, place.round, self._redactor))

    def ended(self, call: ToolUse, executed: ExecutedCall, place: Place, elapsed_s: float) -> None:
        """Tell how a call ended."""
        self._observers.emit(
            CallEnded(
                turn=place.turn,
                round=place.round,
                call_id=call.call_id,
                tool=self.excerpt(call.name, 80),
                arguments=self.excerpt(call.arguments),
                end=executed.end.value,
                is_error=executed.result.is_error,
                stage=executed.stage,
                elapsed_ms=round(elapsed_s * 1000, 3),
                result=preview(executed.result.text),
                result_chars=len(executed.result.text),
                rule=self.excerpt(executed.rule),
            )
        )


def decided(answer: Answer, point: HookPoint, turn: int, round_: int, redactor: Redactor) -> HookDecided:
    """Return the event that reports what a hook said."""
    decision = answer.decision
    reason = answer.problem
    for field in ("reason", "instruction", "text"):
        reason = reason or str(getattr(decision, field, ""))
    return HookDecided(
        turn=turn,
        round=round_,
        point=point.value,
        hook=answer.hook,
        decision="broken" if decision is None else type(decision).__name__.lower(),
        reason=preview(redactor.redact(reason)),
        broken=answer.broken,
    )
