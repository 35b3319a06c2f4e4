"""The operator's own hooks: commands of `hooks.json` under the state root, in every session but those of experiments.

An experiment measures its scaffold, so that nothing of one machine may have a say in it.
"""

from collections.abc import Mapping
from pathlib import Path

from geode.config.paths import StateRoot
from geode.hooks.command import CommandHook, CommandPlace
from geode.hooks.hook_file import read_hook_file
from geode.hooks.vocabulary import Vocabulary

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM")
"""What a hook's command gets of our environment. Keys of providers are in none of these."""


def operator_hooks(
    root: StateRoot, *, session_id: str, mode: str, workspace: Path, timeline: Path, environment: Mapping[str, str]
) -> tuple[CommandHook, ...]:
    """Return the operator's hooks for one session, in their order.

    Raises:
        HookFileError: if their file is wrong. Without its guards a session does not begin.
    """
    entries = read_hook_file(root.hooks_file).entries
    inherited = {name: environment[name] for name in _INHERITED if name in environment}
    place = CommandPlace(
        session_id=session_id,
        mode=mode,
        workspace=workspace,
        timeline=timeline,
        environment={**inherited, "CLAUDE_PROJECT_DIR": str(workspace), "GEODE_PROJECT_DIR": str(workspace)},
    )
    return tuple(CommandHook(entry, place, Vocabulary()) for entry in entries)
