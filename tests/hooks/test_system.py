"""Facts of `geode.hooks.system`: observers see everything, change nothing, and cannot break what they watch."""

from geode.events import Event, Notice
from geode.hooks.system import HookSystem


def notice(text: str) -> Notice:
    return Notice(about="test", text=text)


def test_every_observer_hears_every_event_in_order() -> None:
    first: list[Event] = []
    second: list[Event] = []
    system = HookSystem((first.append, second.append), lambda *_: None)
    events = [notice("a"), notice("b")]
    for event in events:
        system.emit(event)
    assert first == second == events


def test_an_observer_that_fails_is_reported_and_costs_the_others_nothing() -> None:
    """R33: a timeline that cannot be written must not pass unseen, and must not end the turn."""
    heard: list[Event] = []
    reports: list[tuple[str, str]] = []

    def full_disk(_: Event) -> None:
        raise OSError(28, "No space left on device")

    system = HookSystem((full_disk, heard.append), lambda about, text: reports.append((about, text)))
    system.emit(notice("a"))
    system.emit(notice("b"))
    assert heard == [notice("a"), notice("b")]
    assert system.failures == 2
    assert ["full_disk" in about and "No space left" in text for about, text in reports] == [True, True]
