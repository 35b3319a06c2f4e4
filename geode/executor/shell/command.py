"""A shell command as policy sees it: every simple command that it would run, also those that others of them start."""

from dataclasses import dataclass
from functools import lru_cache

from geode.executor.shell.launchers import started_by
from geode.executor.shell.syntax import COMMANDS_MAX, Doubt, Simple, Syntax, Word, parse

_DEPTH_MAX = 4
_CACHED = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCommand:
    """One simple command. A `carrier` does nothing but start another one, which stands here, too."""

    words: tuple[Word, ...]
    carrier: bool

    @property
    def shown(self) -> str:
        """The command as a reader knows it, with `...` for what only the shell will know."""
        return " ".join(word.text if word.text is not None else f"{word.start}..." for word in self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of a command's text."""

    commands: tuple[JudgedCommand, ...]
    reads: tuple[Word, ...]
    writes: tuple[Word, ...]
    doubts: tuple[Doubt, ...]


@lru_cache(maxsize=_CACHED)
def read_command(text: str) -> Reading:
    """Read `text`. It never raises: what cannot be read is a doubt."""
    whole = _Whole()
    whole.add(parse(text), depth=0)
    return Reading(
        commands=tuple(whole.commands),
        reads=tuple(whole.reads),
        writes=tuple(whole.writes),
        doubts=tuple(dict.fromkeys(whole.doubts)),
    )


class _Whole:
    """Gathers what a text and the texts inside it hold."""

    def __init__(self) -> None:
        self.commands: list[JudgedCommand] = []
        self.reads: list[Word] = []
        self.writes: list[Word] = []
        self.doubts: list[Doubt] = []

    def add(self, syntax: Syntax, depth: int) -> None:
        self.reads += syntax.reads
        self.writes += syntax.writes
        self.doubts += syntax.doubts
        for command in syntax.commands[: COMMANDS_MAX + 1]:
            self._command(command, depth)

    def _command(self, command: Simple, depth: int) -> None:
        if depth > _DEPTH_MAX or len(self.commands) > COMMANDS_MAX:
            self.doubts.append(Doubt(text="commands start commands too deeply or too often", hides=True))
            return
        started = started_by(command.words, command.sets)
        self.commands.append(JudgedCommand(words=command.words, carrier=started.carrier))
        self.doubts += started.doubts
        for words in started.commands:
            self._command(Simple(words=words), depth + 1)
        for text in started.texts:
            self.add(parse(text), depth + 1)
