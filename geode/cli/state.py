"""Where a command finds what it works on: the settings, and a session by the beginning of its name."""

from pathlib import Path
from typing import TYPE_CHECKING

from geode.cli.failure import fail

if TYPE_CHECKING:
    from geode.config.settings import Settings

_REFUSED = 2
_SHOWN = 10
LAST = "last"
"""How a command is told to take the newest session."""


def settings_of(root: Path | None) -> "Settings":
    """Read the settings, or end the command: a wrong state root is wrong for every command in the same way."""
    from geode.config.settings import read_settings

    try:
        return read_settings(root)
    except ValueError as error:
        fail(str(error), _REFUSED)


def session_folder(sessions: Path, wanted: str) -> Path:
    """Return the folder of the session whose name begins with `wanted`, or of the newest, or end the command."""
    # A name is a ULID, so that the newest is the last one.
    names = sorted(entry.name for entry in sessions.iterdir() if entry.is_dir()) if sessions.is_dir() else []
    found = names[-1:] if wanted == LAST else [name for name in names if wanted and name.startswith(wanted)]
    if not found:
        fail(f"no session under {sessions} begins with {wanted!r}; geode sessions ls names them", _REFUSED)
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN])
        fail(f"{len(found)} sessions begin with {wanted!r}; give more of the name: {shown}", _REFUSED)
    return sessions / found[0]
