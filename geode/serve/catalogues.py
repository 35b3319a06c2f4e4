"""What can be named in a configuration: hooks, tools and models, from the library and from installed packages."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from geode.hooks.library import LIBRARY, HookFactory
from geode.tools import delegate
from geode.tools.catalogue import TOOLS

HOOKS_GROUP = "geode.hooks"

_CODE_DIGITS = 12


@cache
def hook_factories() -> Mapping[str, HookFactory]:
    """Return every registered hook by name: the library's, then those of the entry-point group `geode.hooks`.

    Raises:
        ValueError: if a package offers a hook under a name that is taken, since nobody may shadow a guard, or cannot
            be imported.
    """
    factories = dict(LIBRARY)
    for point in entry_points(group=HOOKS_GROUP):
        if point.name in factories:
            raise ValueError(f"{point.value} offers a hook named {point.name!r}, which is taken; rename one of them")
        try:
            factories[point.name] = point.load()
        except Exception as error:  # whatever foreign code raises on import is that package's fault, and is named so
            raise ValueError(
                f"the hook {point.name!r} of {point.value} cannot be imported ({type(error).__name__}: {error});"
                " repair or uninstall its package"
            ) from error
    return factories


@cache
def hook_code(name: str) -> str | None:
    """Return the digest of the code of an installed package's hook; None for a hook of the library.

    It covers every Python file of the package that the entry point names, or the module's one file if it is in none.
    It is taken once a process, when the code is loaded, so that it is the digest of what runs.
    """
    if name in LIBRARY:
        return None
    (point,) = entry_points(group=HOOKS_GROUP, name=name)
    top = find_spec(point.module.partition(".")[0])
    folders = [Path(folder) for folder in (top.submodule_search_locations or ())] if top else []
    files = [(file.relative_to(folder).as_posix(), file) for folder in folders for file in folder.rglob("*.py")]
    if not folders and top and top.origin:
        files = [("", Path(top.origin))]
    digest = hashlib.sha256()
    for shown, file in sorted(files):
        content = file.read_bytes()
        digest.update(f"{shown}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_CODE_DIGITS]


def hook_names() -> tuple[str, ...]:
    """Return the names that a scaffold may list as hooks."""
    return tuple(sorted(hook_factories()))


def tool_names() -> tuple[str, ...]:
    """Return the names that a tool plan may list. `delegate_task` needs sub-agents in the scaffold besides."""
    return (*TOOLS, delegate.NAME)
