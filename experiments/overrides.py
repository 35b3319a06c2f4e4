"""Overrides as a person reads and writes them: short names for variants, the nearest right name, how to quote."""

import difflib
import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence

EXPERIMENT_KEYS = frozenset(
    {
        "name",
        "question",
        "baseline",
        "variants",
        "seeds",
        "repeats",
        "suite",
        "caps",
        "gate",
        "tracking",
        "executor",
        "budget",
        "experiment",
        "damaged",
        "invalid",
    }
)
"""Keys that all variants of an experiment share. They are not swept over, and name no variant."""

_NAME_CHARS_MAX = 80
_DIGEST_CHARS = 8
_PLAIN_KEY = re.compile(r"(?:\+{0,2}|~)[A-Za-z0-9_./@:$-]+")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.-]+")
_PLAIN_LIST = re.compile(r"\[[A-Za-z0-9_-]+(?:,[A-Za-z0-9_-]+)*\]")


def override_key(override: str) -> str:
    """Return what an override sets, without its prefix and value: `+hooks.a.k=1` sets `hooks.a.k`."""
    return override.lstrip("+~").split("=", 1)[0]


def root_key(override: str) -> str:
    """Return the first segment of what an override sets: the group, or the top of the path."""
    return re.split(r"[./@]", override_key(override), maxsplit=1)[0]


def chosen_hooks(overrides: Iterable[str]) -> frozenset[str] | None:
    """Return the hooks that the last `hooks=[a,b]` chooses; None if no override chooses any."""
    choices = [override.partition("=")[2] for override in overrides if override_key(override) == "hooks"]
    return frozenset(re.findall(r"\w+", choices[-1])) if choices else None


def without_options(overrides: Iterable[str], hooks: Iterable[str]) -> tuple[str, ...]:
    """Return the overrides but those that set an option of one of `hooks`."""
    idle = tuple(f"hooks.{name}." for name in hooks)
    return tuple(override for override in overrides if not override_key(override).startswith(idle))


def variant_name(overrides: Sequence[str]) -> str:
    """Name a variant by the overrides that make it: `hooks=[a,b]` and `repair=0` give `hooks=a+b.repair=0`.

    The name is a function of the overrides alone, so that a variant keeps it when the experiment grows. A digest is
    added where the readable form cannot tell two overrides apart.
    """
    own = [override for override in overrides if root_key(override) not in EXPERIMENT_KEYS]
    if not own:
        return "default"
    parts = [_readable(override) for override in own]
    name = ".".join(text for text, _ in parts)
    if all(exact for _, exact in parts) and len(name) <= _NAME_CHARS_MAX and name[0].isalnum():
        return name
    digest = hashlib.sha256("\0".join(own).encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{name.lstrip('_.+=-')[: _NAME_CHARS_MAX - _DIGEST_CHARS - 1]}-{digest}".lstrip("-")


def _readable(override: str) -> tuple[str, bool]:
    """Return the override in the characters of a variant name, and whether nothing else reads the same."""
    key, _, value = override.partition("=")
    plain_key = re.fullmatch(r"\+{0,2}[A-Za-z][A-Za-z0-9_/.]*", key) is not None
    key = re.sub(r"[^A-Za-z0-9_.]+", ".", key).strip(".")
    if value == "[]":
        return f"{key}=none", plain_key
    if _PLAIN_LIST.fullmatch(value):
        # A list of one reads like a plain value. Both select the same where both are allowed.
        return f"{key}={value[1:-1].replace(',', '+')}", plain_key
    value = _unquoted(value)
    exact = plain_key and _PLAIN_VALUE.fullmatch(value) is not None and value != "none"
    return f"{key}={re.sub(r'[^A-Za-z0-9_.+-]+', '.', value).strip('.')}", exact


def _unquoted(value: str) -> str:
    return value[1:-1] if re.fullmatch(r"'.*'|\".*\"", value, re.DOTALL) and len(value) > 1 else value


def nearest(wrong: str, right: Iterable[str]) -> str:
    """Return `; did you mean 'x'? There are a, b` for a name that is none of `right`, or only what there is."""
    known = sorted(set(right))
    if not known:
        return "; there are none"
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.5)
    return (f"; did you mean {close[0]!r}? There are " if close else "; there are ") + ", ".join(known)


def quoted(text: str) -> str:
    """Return `text` as Hydra reads it back unchanged: in single quotes, with what would end them escaped."""
    return "'" + re.sub(r"(\\*)('|$)", lambda end: end[1] * 2 + ("\\'" if end[2] else ""), text) + "'"


def how_to_quote(override: str) -> str:
    """Say how `override` is written so that both the shell and Hydra take its value as text."""
    key, has_value, value = override.partition("=")
    if not has_value:
        return "an override is KEY=VALUE, for instance repeats=5"
    if not _PLAIN_KEY.fullmatch(key):
        return f"the key {key!r} takes the letters A to Z, digits and _ . / - only; quotes help a value, not a key"
    text = quoted(_unquoted(value))
    shell = f'{key}="{text}"' if not set(text) & set('"$`\\!') else shlex.quote(f"{key}={text}")
    return (
        "letters outside ASCII, blanks and any of # , : = ( ) [ ] { } need quotes that reach Hydra,"
        f" inside those of the shell: {shell}"
    )
