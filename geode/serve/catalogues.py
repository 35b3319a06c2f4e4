"""What can be named in a configuration: hooks, tools and models, from the library and from installed packages."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from geode.hooks.library import LIBRARY, HookFactory
from geode.tools.catalogue import TOOLS

HOOKS_GROUP = "geode.hooks"


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
                f"the hook {point.name!r} of {point.value} cannot be imported ({error!r});"
                " repair or uninstall its package"
            ) from error
    return factories


def hook_names() -> tuple[str, ...]:
    """Return the names that a scaffold may list as hooks."""
    return tuple(sorted(hook_factories()))


def tool_names() -> tuple[str, ...]:
    """Return the names that a tool plan may list."""
    return tuple(TOOLS)
