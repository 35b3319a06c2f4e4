"""The hooks of whoever runs a session: commands of `hooks.json` under the state root, and of projects that they trust.

They are in every session but those of experiments, which measure their scaffold: nothing of one machine may have a say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from geode.config.paths import StateRoot
from geode.hooks.command import CommandEntry, CommandHook, CommandPlace
from geode.hooks.hook_file import read_hook_file
from geode.hooks.observing import Watching
from geode.hooks.outcomes import NoAnswer
from geode.hooks.points import Decision, DecisionHook, HookEvent, Pass
from geode.hooks.vocabulary import Vocabulary
from geode.serve.project_hooks import FOLDER_VARIABLES, ProjectHooks, find_project_hooks
from geode.tools.mcp.trust import TrustStore

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM")
"""What a hook's command gets of our environment. Keys of providers are in none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHooks:
    """The hooks of one session besides its scaffold's, in their order, and what was left out, with the reason."""

    deciding: tuple[DecisionHook, ...] = ()
    watching: tuple[Watching, ...] = ()
    left_out: tuple[str, ...] = ()


def own_hooks(
    root: StateRoot, *, session_id: str, mode: str, workspace: Path, timeline: Path, environment: Mapping[str, str]
) -> OwnHooks:
    """Return the hooks for one session. Those of the project come first: the operator's see what these made of a call.

    Raises:
        HookFileError: if the operator's file is wrong, or the project's is not what it was when it was trusted. Without
            its guards a session does not begin.
        TrustUnreadable: if the record of what was trusted is damaged.
    """
    own = read_hook_file(root.hooks_file)
    found = find_project_hooks(root, workspace, TrustStore(root.mcp_trust))
    inherited = {name: environment[name] for name in _INHERITED if name in environment}
    place = CommandPlace(
        session_id=session_id,
        mode=mode,
        workspace=workspace,
        timeline=timeline,
        environment={**inherited, **dict.fromkeys(FOLDER_VARIABLES, str(workspace))},
    )
    return OwnHooks(
        deciding=(
            *_of_projects(found.trusted, place),
            *(CommandHook(entry, place, Vocabulary()) for entry in own.entries),
        ),
        watching=(
            *(Watching(entry=entry, place=place) for entry in own.observing),
            *_watching(found.trusted, place),
        ),
        left_out=found.left_out,
    )


def _of_projects(files: tuple[ProjectHooks, ...], place: CommandPlace) -> Iterator[DecisionHook]:
    for file in files:
        for entry in file.hooks.entries:
            yield _ProjectHook(file, replace(entry, name=f"{file.short}:{entry.name}"), place)


def _watching(files: tuple[ProjectHooks, ...], place: CommandPlace) -> Iterator[Watching]:
    for file in files:
        for entry in file.hooks.observing:
            named = replace(entry, name=f"{file.short}:{entry.name}")
            yield Watching(entry=named, place=place, may_run=file.unchanged)


class _ProjectHook:
    """A command that a project brought along. It runs as long as it is what was trusted: its session can write to it.

    Commands run outside of the sandbox, so that whoever could change one would be outside, too.
    """

    def __init__(self, file: ProjectHooks, entry: CommandEntry, place: CommandPlace) -> None:
        self._file, self._hook = file, CommandHook(entry, place, Vocabulary())
        self._is_guard = not (entry.observer or entry.on_error_allow)
        self.name, self.points, self.time_limit_s = entry.name, self._hook.points, self._hook.time_limit_s

    async def decide(self, event: HookEvent) -> Decision:
        """Run the command on one event.

        Raises:
            NoAnswer: if it gave none, or is another one by now.
        """
        if self._file.unchanged():
            return await self._hook.decide(event)
        if self._is_guard:
            raise NoAnswer(f"{self._file.path}, or a program that it names, has changed since it was trusted")
        return Pass()

    def snapshot(self) -> JsonValue:
        """A command keeps its own memory."""
        return None

    def restore(self, memory: JsonValue) -> None:
        """See `snapshot`."""
