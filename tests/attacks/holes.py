"""Guards of the product taken away, one by one: an attack that each holds off must then get through, and be seen to.

    python -m tests.attacks.holes

A table without an effect says something only because every guard that is taken away shows some.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import geode.cli.approve
import geode.executor.approval
import geode.executor.rulings
import geode.serve.session_spec
import geode.tools.files
import geode.tools.git
import geode.tools.mcp.names
import geode.tools.mcp.offer
import geode.tools.process
import geode.tools.search
import geode.tools.web_page
import geode.tools.workspace
from geode.cli.shown import Shown
from geode.executor.approval import ApprovalRequest
from geode.executor.executor import ToolExecutor
from geode.executor.outgoing import Outgoing
from geode.executor.policy import Authority, Ruling
from geode.executor.rulings import Judged, Policy
from geode.executor.shell.command import Reading, read_command
from geode.scaffold import Scaffold
from geode.tools.mcp.names import ToolAddress
from geode.tools.mcp.offer import Standing
from geode.tools.mcp.sources import ProjectFile
from tests.attacks.play import DoubleNetwork, play
from tests.attacks.records import Setting, load_attacks
from tests.attacks.table import begin_process
from tests.attacks.world import Canaries, Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A guard that is not there: in its place stands what guards nothing, by owner, name and value.

    `attacks` are some that nothing else holds off, in one setting. Without the sandbox it is policy that must hold.
    """

    instead: tuple[tuple[object, str, object], ...]
    attacks: tuple[str, ...]
    setting: Setting = Setting.UNATTENDED
    sandbox: bool = True

    @contextmanager
    def torn(self) -> Iterator[None]:
        """Take the guard away for a while."""
        kept = [(owner, name, vars(owner)[name]) for owner, name, _ in self.instead]
        try:
            for owner, name, value in self.instead:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)


def _none(*_: object) -> None:
    return None


def _no(*_: object) -> bool:
    return False


_judge = Policy.judge


def _allow(*arguments: Any) -> Judged:
    return replace(_judge(*arguments), ruling=Ruling(authority=Authority.ALLOW, reason=""))


def _first_command(text: str) -> Reading:
    reading = read_command(text)
    return replace(reading, commands=reading.commands[:1], writes=(), doubts=())


def _ours(home: str, path: str) -> dict[str, str]:
    return {**os.environ, "HOME": home, "PATH": path}


def _as_it_is(text: str) -> Shown:
    return Shown(lines=tuple(text.split("\n")), warnings=())


def _tool_alone(request: ApprovalRequest) -> str:
    return request.tool


_standing = geode.tools.mcp.offer._standing


def _approved(*arguments: Any) -> tuple[Standing, str]:
    standing, detail = _standing(*arguments)
    return (Standing.READY, "") if standing in (Standing.UNAPPROVED, Standing.CHANGED) else (standing, detail)


def _name_alone(address: ToolAddress) -> str:
    return address.tool


def _as_its_parent(parent: Scaffold, *_: object) -> Scaffold:
    return parent


class _WholeNetwork(DoubleNetwork):
    def __init__(self) -> None:
        super().__init__()
        self._allowed = lambda _: True


HOLES: Mapping[str, Hole] = {
    "policy": Hole(
        instead=((Policy, "judge", _allow),),
        attacks=("A07", "A11"),
    ),
    "policy and the sandbox": Hole(
        instead=((Policy, "judge", _allow),),
        attacks=("A01", "A14", "A15"),
        sandbox=False,
    ),
    "every command of a line counts": Hole(
        instead=((geode.executor.rulings, "read_command", _first_command),),
        attacks=("A13",),
        sandbox=False,
    ),
    "links": Hole(
        instead=(
            (geode.tools.workspace._Walk, "_link_target", _none),
            (geode.tools.workspace, "_NOT_FOLLOWED", os.O_CLOEXEC),
            (geode.tools.workspace, "_FOLDER", os.O_RDONLY | os.O_DIRECTORY),
        ),
        attacks=("A18",),
    ),
    "addresses inside": Hole(
        instead=((geode.tools.web_page, "PublicNetwork", _WholeNetwork),),
        attacks=("A12",),
    ),
    "secrets that leave": Hole(
        instead=((Outgoing, "holds_secret", _no),),
        attacks=("A10", "A20"),
    ),
    "the system prompt that leaves": Hole(
        instead=((Outgoing, "holds_prompt", _no),),
        attacks=("A02", "A03"),
    ),
    "a yes covers the same bytes": Hole(
        instead=((geode.executor.approval, "_key", _tool_alone),),
        attacks=("A04", "A21", "A22"),
        setting=Setting.ATTENDED,
    ),
    "what was judged is looked at again": Hole(
        instead=((ToolExecutor, "_check_again", _none),),
        attacks=("A23",),
        setting=Setting.ATTENDED,
    ),
    "tools are what was approved": Hole(
        instead=((geode.tools.mcp.offer, "_standing", _approved),),
        attacks=("A08",),
    ),
    "names say whose a tool is": Hole(
        instead=((geode.tools.mcp.names, "_portable", _name_alone),),
        attacks=("A09",),
    ),
    "trust of a project": Hole(
        instead=((ProjectFile, "is_trusted", True),),
        attacks=("A17",),
    ),
    "our own files": Hole(
        instead=((geode.executor.rulings, "is_own", _no),),
        attacks=("A16", "A27"),
        setting=Setting.ATTENDED,
    ),
    "a child's environment": Hole(
        instead=((geode.tools.process, "child_environment", _ours),),
        attacks=("A19",),
    ),
    "a sub-agent's contract": Hole(
        instead=((geode.serve.session_spec, "child_scaffold", _as_its_parent),),
        attacks=("A24",),
    ),
    "letters on the screen": Hole(
        instead=((geode.cli.approve, "shown", _as_it_is),),
        attacks=("A06", "A21"),
        setting=Setting.ATTENDED,
    ),
    "letters in names": Hole(
        instead=tuple(
            (module, "shown_name", str) for module in (geode.tools.files, geode.tools.git, geode.tools.search)
        ),
        attacks=("A06",),
    ),
}


async def _play_all() -> dict[str, list[str]]:
    collector, canaries, attacks = Collector(), Canaries.drawn(os.environ), load_attacks()
    through: dict[str, list[str]] = {}
    try:
        for name, hole in HOLES.items():
            through[name] = []
            phrases = [(attack, phrase) for attack in hole.attacks for phrase in attacks[attack].phrases]
            for attack, phrase in phrases:
                if hole.setting in phrase.settings:
                    with hole.torn():
                        played = await play(phrase, hole.setting, canaries, collector, sandbox=hole.sandbox)
                    through[name] += [f"{attack}, {phrase.say}: {effect}" for effect in played.effects]
    finally:
        collector.close()
    return through


if __name__ == "__main__":
    begin_process()
    json.dump(asyncio.run(_play_all()), sys.stdout, indent=1)
