"""What policy says of one call in one session: the mode's table, then the operator's rules; the strictest counts.

Rules can only lift an *ask* that the safety level alone gave. Whatever was denied stays denied, and what somebody
should see for another reason (personal data, a file that acts later, a command that cannot be read) is still asked for.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from geode.authority import Arguments, DataClass, SafetyLevel
from geode.executor.patterns import Fit, host_fits, hosts_in, path_fits
from geode.executor.policy import Authority, Mode, Ruling, rule
from geode.executor.rules import PlacedRule, Rules, stricter
from geode.executor.shell.command import JudgedCommand, Reading, read_command
from geode.executor.shell.started import program_of
from geode.executor.shell.syntax import Word
from geode.executor.standing import OWN_FOLDER, is_own, runs_later
from geode.executor.touched import Touched, texts_in, touched_by_arguments, touched_by_command
from geode.tools.spec import ResourceClaim, ToolSpec

_SHELL: Final = "shell"
_SHOWN_CHARS = 80
_RULES_SHOWN = 3
_SINKS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
# They open no file that they are given the name of.
_SAYS = frozenset((":", "true", "false", "echo", "printf", "exit", "return", "break", "continue", "shift"))
# They change nothing outside of the shell that runs them.
_FREE = frozenset(
    (
        *(":", "true", "false", "cd", "pwd", "echo", "printf", "test", "[", "type", "set", "shift", "wait"),
        *("exit", "return", "break", "continue"),
    )
)
_PLAIN_URL = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d{1,5})?(?:[/?#][^\s\\]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """What one call can do, with its arguments: never less than its tool declares. `why` says what raised it."""

    level: SafetyLevel
    data_class: DataClass
    why: tuple[str, ...] = ()

    def falls_below(self, other: "Stakes") -> bool:
        """Whether this is less than `other` in level or in data."""
        return self.level < other.level or self.data_class < other.data_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a call can do, and what policy says of it."""

    stakes: Stakes
    ruling: Ruling


class Policy:
    """Policy of one session: its mode, the rules of its files, and which paths are GEODE's own.

    Args:
        mode: from where the session is reached.
        rules: what the policy files say for that mode.
        own: further paths below the workspace that no tool may write (the state root, if it lies there).
        confined: whether commands run in a sandbox. Where they do not, a path that only the shell will know is asked
            for, since it may lead anywhere.
    """

    def __init__(
        self, mode: Mode, rules: Rules | None = None, own: Sequence[str] = (), *, confined: bool = True
    ) -> None:
        self.mode, self._rules, self._own, self._confined = mode, rules or Rules(), tuple(own), confined

    @property
    def digest(self) -> str:
        """A name for the rules that hold; empty if there are none, and the mode's table is all there is."""
        return self._rules.digest

    def judge_tool(self, spec: ToolSpec) -> Ruling:
        """Say what the mode allows of the tool, whatever its arguments."""
        return self._by_table(spec, Stakes(level=spec.level, data_class=spec.data_class))

    def judge(self, spec: ToolSpec, arguments: Arguments, claims: Sequence[ResourceClaim]) -> Judged:
        """Say what the call can do and whether it may, for arguments that fit the tool's schema."""
        touched = self._touched(spec, arguments, claims)
        stakes = self._stakes(spec, touched)
        base = self._by_table(spec, stakes)
        return Judged(stakes=stakes, ruling=self._ruled(spec, arguments, touched, stakes, base))

    def _by_table(self, spec: ToolSpec, stakes: Stakes) -> Ruling:
        for pattern in self._rules.denied_tools:
            if fnmatchcase(spec.name, pattern):
                reason = f"{spec.name} is not available in {self.mode} mode"
                return Ruling(
                    authority=Authority.DENY, reason=reason, rule=f"modes.{self.mode}.denied_tools: {pattern}"
                )
        ruling = rule(self.mode, spec.name, stakes.level, stakes.data_class)
        own = stricter(
            self._rules.levels.get(stakes.level, Authority.ALLOW),
            self._rules.data.get(stakes.data_class, Authority.ALLOW),
        )
        if stricter(own, ruling.authority) is not ruling.authority:
            return Ruling(authority=own, reason=ruling.reason, rule=f"modes.{self.mode}: {own}")
        return ruling

    def _ruled(self, spec: ToolSpec, arguments: Arguments, touched: Touched, stakes: Stakes, base: Ruling) -> Ruling:
        if base.authority is Authority.DENY:
            return base
        for path in touched.writes:
            if is_own(path, self._own):
                reason = f"{_shown(path)} is one of GEODE's own files, which no tool may write"
                return Ruling(authority=Authority.DENY, reason=reason)
        rules = [placed for placed in self._rules.placed if fnmatchcase(spec.name, placed.rule.tool)]
        asks: list[Ruling] = []
        for placed in rules:
            fit = self._fit(placed, arguments, touched)
            if placed.rule.says is Authority.DENY and fit is Fit.YES:
                return Ruling(authority=Authority.DENY, reason=_refused_by(placed), rule=placed.shown)
            if placed.rule.says is not Authority.ALLOW and fit is not Fit.NO:
                reason = (
                    "a rule asks for it" if fit is Fit.YES else f"it may be what a rule wants to {placed.rule.says}"
                )
                asks.append(Ruling(authority=Authority.ASK, reason=reason, rule=placed.shown))
        asks += [Ruling(authority=Authority.ASK, reason=text) for text in self._doubts(touched, base)]
        if base.authority is Authority.ASK:
            more_than_level = bool(asks or stakes.why or stakes.data_class)
            lifted = None if more_than_level else self._lifted(spec, rules, arguments, touched)
            if lifted is not None:
                return lifted
            asks.insert(0, base)
        if not asks:
            return base
        reason = "; ".join(dict.fromkeys((*(ask.reason for ask in asks), *stakes.why)))
        return Ruling(authority=Authority.ASK, reason=reason, rule=_some([ask.rule for ask in asks if ask.rule]))

    def _fit(self, placed: PlacedRule, arguments: Arguments, touched: Touched) -> Fit:
        """Say whether a rule that asks or denies means the call."""
        rule_ = placed.rule
        if rule_.command_pattern is not None:
            commands = touched.reading.commands if touched.reading else ()
            fits = [rule_.command_pattern.forbids(command.words) for command in commands]
            return max(fits, key=lambda fit: fit.value, default=Fit.NO)
        if rule_.path is not None:
            named = (*touched.reads, *touched.writes)
            return Fit.YES if any(path_fits(rule_.path, path) for path in named) else Fit.NO
        if rule_.host is not None:
            hosts = [host for text in texts_in(dict(arguments)) for host in hosts_in(text)]
            return Fit.YES if any(host_fits(rule_.host, host) for host in hosts) else Fit.NO
        return Fit.YES

    def _doubts(self, touched: Touched, base: Ruling) -> Iterator[str]:
        """Say what somebody should look at in a command that was read."""
        if touched.reading is None:
            return
        for doubt in touched.reading.doubts:
            # Where the mode allows every command, only a doubt that could hide a forbidden one counts.
            if base.authority is Authority.ASK or doubt.hides:
                yield doubt.text
        if base.authority is Authority.ASK:
            yield from (f"it writes {_shown(word.start)}" for word in touched.reading.writes if word.text not in _SINKS)
            if not self._confined and (word := _leads_anywhere(touched.reading)) is not None:
                yield f"nothing confines it, and only the shell knows where {_shown(word.start + '...')} leads"

    def _lifted(
        self, spec: ToolSpec, rules: Sequence[PlacedRule], arguments: Arguments, touched: Touched
    ) -> Ruling | None:
        """Return the ruling of the rules that allow all of the call, or None."""
        allowing = [placed for placed in rules if placed.rule.says is Authority.ALLOW]
        if spec.name != _SHELL or touched.reading is None:
            found = _allowing(allowing, arguments, touched)
        else:
            found = []
            for command in touched.reading.commands:
                by = next((p for p in allowing if p.rule.command_pattern and _means(p, command)), None)
                if by is None and not (command.carrier or program_of(command.words[0]) in _FREE):
                    return None
                found += [by] if by is not None else []
        if not found:
            return None
        shown = _some([placed.shown for placed in found])
        return Ruling(authority=Authority.ALLOW, reason="the operator's rules allow it", rule=shown)

    def _stakes(self, spec: ToolSpec, touched: Touched) -> Stakes:
        level, data_class, why = spec.level, spec.data_class, list[str]()
        for path in filter(runs_later, touched.writes):
            level = max(level, SafetyLevel.EXECUTE)
            why.append(f"{_shown(path)} runs later")
        for kind, pattern in self._rules.data_paths:
            for path in (*touched.reads, *touched.writes):
                if kind > data_class and path_fits(pattern, path):
                    data_class = kind
                    why.append(f"{_shown(path)} holds {kind.name.lower()} data")
        return Stakes(level=level, data_class=data_class, why=tuple(why))

    def _touched(self, spec: ToolSpec, arguments: Arguments, claims: Sequence[ResourceClaim]) -> Touched:
        if spec.name == _SHELL:
            command = str(arguments.get("command", ""))
            return touched_by_command(read_command(command)) if self._must_read(command) else Touched()
        text = arguments.get("command", arguments.get("cmd"))
        ruled = any(p.rule.command and fnmatchcase(spec.name, p.rule.tool) for p in self._rules.placed)
        reading = read_command(text) if ruled and isinstance(text, str) else None
        return replace(touched_by_arguments(spec, arguments, claims), reading=reading)

    def _must_read(self, command: str) -> bool:
        """Whether anything that the command holds can change the answer: reading it costs more than all else here."""
        ruled = self._rules.data_paths or any(fnmatchcase(_SHELL, placed.rule.tool) for placed in self._rules.placed)
        return bool(ruled) or self._names_own(command) or not self._allows_every_command()

    def _allows_every_command(self) -> bool:
        table = rule(self.mode, _SHELL, SafetyLevel.EXECUTE, DataClass.NONE).authority
        return stricter(table, self._rules.levels.get(SafetyLevel.EXECUTE, Authority.ALLOW)) is Authority.ALLOW

    def _names_own(self, command: str) -> bool:
        return any(name in command for name in (OWN_FOLDER, *self._own))


def _some(rules: Sequence[str]) -> str:
    """Return the first of several rules; a command that nobody can name may be what each of them means."""
    names = list(dict.fromkeys(rules))
    more = f"; and {len(names) - _RULES_SHOWN} more" if len(names) > _RULES_SHOWN else ""
    return "; ".join(names[:_RULES_SHOWN]) + more


def _leads_anywhere(reading: Reading) -> Word | None:
    """Return a word that is unknown, and that its program may take for a path."""
    named = [word for each in reading.commands if program_of(each.words[0]) not in _SAYS for word in each.words[1:]]
    return next((word for word in (*named, *reading.reads) if word.text is None), None)


def _refused_by(placed: PlacedRule) -> str:
    return f"a rule forbids it ({placed.rule.why})" if placed.rule.why else "a rule forbids it"


def _means(placed: PlacedRule, command: JudgedCommand) -> bool:
    pattern = placed.rule.command_pattern
    return pattern is not None and pattern.allows(command.words)


def _allowing(rules: Sequence[PlacedRule], arguments: Arguments, touched: Touched) -> list[PlacedRule]:
    """Return the rules that together allow the whole call of a tool other than the shell, or none."""
    if whole := next((placed for placed in rules if _allows(placed, arguments)), None):
        return [whole]
    found = []
    # Every path by itself, as the commands of a compound one: beside a link's name stands the file that it leads to.
    for path in (*touched.reads, *touched.writes):
        by = next((p for p in rules if p.rule.path is not None and path_fits(p.rule.path, path)), None)
        if by is None:
            return []
        found.append(by)
    return found


def _allows(placed: PlacedRule, arguments: Arguments) -> bool:
    """Whether a rule means the whole call, whatever its paths."""
    rule_ = placed.rule
    if rule_.host is not None:
        # What a URL with a name, a password or a backslash in it leads to, readers do not agree on.
        url = arguments.get("url")
        found = _PLAIN_URL.fullmatch(url) if isinstance(url, str) else None
        return found is not None and host_fits(rule_.host, found[1].rstrip(".").lower())
    return rule_.command is None and rule_.path is None


def _shown(path: str) -> str:
    return ascii(path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}...")
