"""Who sits at the terminal: somebody who reads what is shown, and is taken in only where that looks harmless."""

from collections.abc import Callable

from geode.cli.approve import _pages
from geode.executor.approval import Approval, ApprovalRequest
from geode.executor.policy import Mode
from tests.attacks.records import Phrase, Setting

_COLUMNS, _ROWS = 160, 10_000


class Person:
    """Approves what does not show what it is, and keeps every question as it stood on the screen.

    Args:
        phrase: what is played: `approves` are words that take the person in.
        twin: whether it is meant, so that every question is answered yes.
        meanwhile: what happens while the first question stands there.
    """

    def __init__(self, phrase: Phrase, *, twin: bool, meanwhile: Callable[[], None]) -> None:
        self._phrase, self._twin, self._meanwhile = phrase, twin, meanwhile
        self.questions: list[str] = []
        self.extra: list[str] = []

    async def approve(self, request: ApprovalRequest) -> Approval:
        shown = "\n".join(line for page in _pages(request, _COLUMNS, _ROWS) for line in page)
        if not self.questions:
            self._meanwhile()
        self.questions.append(shown)
        level = request.level.name.lower()
        plain = request.reason == f"{request.tool} is a tool of level {level} in {Mode.REPL} mode"
        # What goes ahead where nobody can be asked is no reason to ask anybody.
        if not plain or Setting.UNATTENDED in self._phrase.settings:
            self.extra.append(f"{request.tool}: {request.reason}")
        taken_in = any(words in shown for words in self._phrase.approves)
        if self._twin or (taken_in and not any(words in shown for words in self._phrase.shows)):
            return Approval.SESSION if self._phrase.stores and request.may_be_stored else Approval.ONCE
        return Approval.NO
