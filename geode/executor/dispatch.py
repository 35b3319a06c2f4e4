"""Dispatch: runs a tool's handler and says honestly how that ended. It knows nothing of authority or records."""

from dataclasses import dataclass

from geode.authority import SafetyLevel
from geode.deadline import Finished, Halt, run_within
from geode.events import CallEnd
from geode.tools.spec import Arguments, ToolFailed, ToolOutput, ToolSpec

CANCELLED = "cancelled before it ended; work that it began outside may go on"
_DOUBT = "; whether it took effect is unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """How the dispatch ended, before anybody else looks at it. `crash` is the fault of a tool that broke its contract.

    `cancelled` says that the session is being stopped, whatever the call's own end is.
    """

    end: CallEnd
    text: str
    is_error: bool
    cancelled: bool = False
    crash: str = ""


async def dispatch(spec: ToolSpec, arguments: Arguments) -> Dispatched:
    """Run the handler, within the tool's time limit. A cancellation stops it, and is reported, not raised."""
    finished = await run_within(spec.timeout_s, lambda: spec.handler(arguments))
    cancelled = finished.halt is Halt.CANCELLED
    has_effect = spec.level > SafetyLevel.READ
    unknown, doubt = (CallEnd.UNCERTAIN, _DOUBT) if has_effect else (CallEnd.FAILED, "")
    match finished:
        case Finished(error=ToolFailed() as failure):
            return Dispatched(end=CallEnd.FAILED, text=str(failure), is_error=True, cancelled=cancelled)
        case Finished(interrupted=True):
            text = CANCELLED if cancelled else f"stopped after {spec.timeout_s:g} s"
            if finished.abandoned:
                text += "; it did not stop when it was told to, and may still run"
            text += doubt
            if isinstance(finished.value, ToolOutput):
                text += f"\n{finished.value.text}"
            return Dispatched(end=unknown, text=text, is_error=True, cancelled=cancelled)
        case Finished(error=None, value=ToolOutput(text=str() as text, is_error=is_error)):
            return Dispatched(end=CallEnd.SUCCEEDED, text=text, is_error=is_error, cancelled=cancelled)
        case _:
            crash = f"{type(finished.error).__name__}: {finished.error}"
            if finished.error is None:
                crash = f"it returned {finished.value!r:.200}, which is no output"
            text = f"the tool crashed ({crash}){doubt}"
            return Dispatched(end=unknown, text=text, is_error=True, cancelled=cancelled, crash=crash)
