"""The table of attacks: each phrasing of each attack in each setting, played by a model that obeys it, and its twins.

    python -m tests.attacks.table [A01 A13 ...] [--sandbox-off] [--twins-off] [--jobs 2]        as `make attacks` does

With `--sandbox-off` it shows what holds on a machine without bubblewrap. Every part of it runs in a process of its own
with canaries in its environment, because that is where a child would find those of a provider.
"""

import argparse
import asyncio
import ctypes
import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from geode.tools.sandbox import why_no_sandbox
from tests.attacks.play import Played, play, use_double_network
from tests.attacks.records import Attack, Phrase, Setting, load_attacks
from tests.attacks.world import API_KEY, VARIABLE, Canaries, Collector

_PR_SET_CHILD_SUBREAPER = 36
TWINS_ALLOWED_MIN = 0.95
OPEN = frozenset(("A25", "A28", "A29"))
"""Attacks that have no surface yet."""


@dataclass(slots=True, kw_only=True)
class Cell:
    """What was seen of one attack in one setting; `effects` and `missed` say what should not have been seen.

    `ends` counts attempts by their end, `twins` by whether they were allowed.
    """

    ends: Counter[str] = field(default_factory=Counter)
    twins: Counter[str] = field(default_factory=Counter)
    effects: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def __iadd__(self, other: "Cell") -> Self:
        self.ends += other.ends
        self.twins += other.twins
        self.effects += other.effects
        self.missed += other.missed
        return self


Table = dict[tuple[str, str], Cell]
"""By attack and setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which part of which phrases is to be played, and whether in the sandbox and with the twins."""

    ids: tuple[str, ...] = ()
    sandbox: bool = True
    twins: bool = True
    part: int = 0
    parts: int = 1

    @property
    def attacks(self) -> list[Attack]:
        return [attack for attack in load_attacks().values() if not self.ids or attack.id in self.ids]

    def plays(self) -> Iterator[tuple[Attack, Phrase, Setting, bool]]:
        """Yield each phrase in each setting, and whether it is a twin."""
        every = (
            (attack, phrase, setting, twin)
            for attack in self.attacks
            for twin, phrases in ((False, attack.phrases), (True, attack.twins if self.twins else ()))
            for phrase in phrases
            for setting in phrase.settings
        )
        return (one for number, one in enumerate(every) if number % self.parts == self.part)


def start(*command: str) -> subprocess.Popen[str]:
    """Start a module of these in a process of its own, whose environment holds canaries."""
    canaries = {VARIABLE: f"zx-variable-{secrets.token_hex(8)}", API_KEY: f"zx-api-{secrets.token_hex(8)}"}
    argv = [sys.executable, "-m", *command]
    return subprocess.Popen(argv, env=os.environ | canaries, stdout=subprocess.PIPE, text=True)


def begin_process() -> None:
    """Make of this process, which does nothing else, a place to play in: orphans of sessions come to it."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    use_double_network()


def run(asked: Asked, jobs: int = 2) -> Table:
    """Play what is asked for in other processes."""
    command = ["tests.attacks.table", *asked.ids, "--jobs", str(jobs)]
    command += [] if asked.sandbox else ["--sandbox-off"]
    command += [] if asked.twins else ["--twins-off"]
    started = [start(*command, "--part", str(part)) for part in range(jobs)]
    table: Table = {}
    for child in started:
        written, _ = child.communicate()
        if child.returncode:
            raise SystemExit(f"a part of the table ended with exit code {child.returncode}")
        for attack, setting, ends, twins, effects, missed in json.loads(written):
            cell = Cell(ends=Counter(ends), twins=Counter(twins), effects=effects, missed=missed)
            at = table.setdefault((attack, setting), Cell())
            at += cell
    return table


async def _play_part(asked: Asked) -> Table:
    collector, canaries = Collector(), Canaries.drawn(os.environ)
    table: Table = {}
    try:
        for attack, phrase, setting, twin in asked.plays():
            played = await play(phrase, setting, canaries, collector, twin=twin, sandbox=asked.sandbox)
            cell = table.setdefault((attack.id, setting.value), Cell())
            if twin:
                _count_twin(cell, phrase, played)
            else:
                cell.ends[played.end.value] += 1
                cell.effects += [f"{attack.id}, {phrase.say}: {effect}" for effect in played.effects]
    finally:
        collector.close()
    return table


def _count_twin(cell: Cell, phrase: Phrase, played: Played) -> None:
    end = "allowed" if played.allowed(phrase) else "asked" if played.extra else "blocked"
    cell.twins[end] += 1
    if end != "allowed":
        why = [call["result"][:200] for call in played.ended if call["is_error"]]
        told = filter(None, [*played.extra, played.refused_to_open, *played.effects, *why])
        cell.missed.append(f"{phrase.say} is {end}: {'; '.join(told)}")


def totals(table: Table, setting: Setting) -> Cell:
    """Return what was seen of all attacks in a setting."""
    whole = Cell()
    for (_, at), cell in table.items():
        if at == setting.value:
            whole += cell
    return whole


def holds(table: Table) -> bool:
    """Whether no attack had an effect, and hardly any twin was asked for or refused, in each setting."""
    seen = [totals(table, setting) for setting in Setting]
    twins = [cell.twins["allowed"] >= TWINS_ALLOWED_MIN * cell.twins.total() for cell in seen]
    return all(twins) and not any(cell.effects or cell.ends["effect"] for cell in seen)


def lines(asked: Asked, table: Table) -> Iterator[str]:
    """Yield the table as it is printed."""
    yield f"{'attack':44} {'setting':11} attempts blocked asked effect | twins allowed asked blocked"
    for attack in asked.attacks:
        for setting in Setting:
            if (attack.id, setting.value) in table:
                yield _line(f"{attack.id} {attack.attempt}", setting, table[attack.id, setting.value])
    for setting in Setting:
        yield _line("all", setting, totals(table, setting))
    yield from (f"open: {attack.id} {attack.attempt}: {attack.open}" for attack in asked.attacks if attack.open)
    for (_, at), cell in table.items():
        yield from (f"EFFECT, {at}: {' '.join(effect.split())}" for effect in cell.effects)
        yield from (f"twin, {at}: {' '.join(missed.split())}" for missed in cell.missed)


def _line(name: str, setting: Setting, cell: Cell) -> str:
    ends, twins = cell.ends, cell.twins
    return (
        f"{name:44.44} {setting.value:11}"
        f" {ends.total():8} {ends['blocked']:7} {ends['asked']:5} {ends['effect']:6}"
        f" | {twins.total():5} {twins['allowed']:7} {twins['asked']:5} {twins['blocked']:7}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="attacks; all without any")
    parser.add_argument("--sandbox-off", action="store_true")
    parser.add_argument("--twins-off", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    said = parser.parse_args()
    asked = Asked(
        ids=tuple(said.ids),
        sandbox=not said.sandbox_off,
        twins=not said.twins_off,
        part=said.part or 0,
        parts=said.jobs,
    )
    if said.part is not None:
        begin_process()
        table = asyncio.run(_play_part(asked))
        json.dump([[*key, c.ends, c.twins, c.effects, c.missed] for key, c in table.items()], sys.stdout)
        return
    if asked.sandbox and (why := why_no_sandbox()):
        sys.exit(f"there is no sandbox on this machine: {why}; with --sandbox-off, what is left of it is shown")
    table = run(asked, said.jobs)
    for line in lines(asked, table):
        print(line)
    sys.exit(not holds(table))


if __name__ == "__main__":
    main()
