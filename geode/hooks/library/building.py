"""From the names in a scaffold to hooks that decide."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue, ValidationError

from geode.hooks.library.options import HookOptions
from geode.hooks.points import DecisionHook
from geode.scaffold import HookChoice


class UnknownHook(ValueError):  # noqa: N818  (named by what is wrong)
    """A scaffold names a hook that is not registered, or gives it options that it does not take."""


HookFactory = Callable[[dict[str, JsonValue]], DecisionHook]
"""Builds a hook from the options in the scaffold; raises `ValueError` for options that it does not take."""


def factory(kind: Callable[..., DecisionHook], options_type: type[HookOptions]) -> HookFactory:
    """Return the factory of a hook class that is made from its validated options."""

    def build(options: dict[str, JsonValue]) -> DecisionHook:
        if unknown := sorted(set(options) - set(options_type.model_fields)):
            takes = ", ".join(options_type.model_fields) or "none"
            raise ValueError(f"{', '.join(unknown)}: no such option; it takes {takes}")
        return kind(options_type.model_validate(options))

    return build


def build_hooks(choices: tuple[HookChoice, ...], registered: Mapping[str, HookFactory]) -> tuple[DecisionHook, ...]:
    """Build the hooks of a scaffold, in its order.

    Raises:
        UnknownHook: naming the hook, what is wrong with it, and what there is instead.
    """
    hooks = []
    for choice in choices:
        if choice.name not in registered:
            raise UnknownHook(f"no hook is named {choice.name!r}; there are {', '.join(sorted(registered))}")
        try:
            hooks.append(registered[choice.name](choice.options))
        except ValueError as error:
            problems = str(error)
            if isinstance(error, ValidationError):
                problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise UnknownHook(f"hook {choice.name!r} does not take these options ({problems})") from error
    return tuple(hooks)
