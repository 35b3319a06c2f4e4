"""The observing plane: tells observers what happened. They can change nothing, and cannot break what they watch."""

from collections.abc import Callable, Sequence

from geode.events import Event

Observer = Callable[[Event], None]
"""Called with each event, on the session's thread. What it raises is reported, and it is asked again."""


class HookSystem:
    """Passes each event to the observers in order.

    `report` is told of an observer that failed (its name and the error); a timeline that cannot be written must not
    pass unseen.
    """

    def __init__(self, observers: Sequence[Observer], report: Callable[[str, str], None]) -> None:
        self._observers = tuple(observers)
        self.report = report
        self.failures = 0

    def emit(self, event: Event) -> None:
        """Tell every observer of `event`."""
        for observer in self._observers:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001  (an observer is foreign code and may not change the session)
                self.failures += 1
                self.report(f"observer {observer!r}", f"{type(error).__name__}: {error}")
