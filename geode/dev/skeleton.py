"""Writes the first version of something of one's own: complete, running, and small enough to be changed by reading it.

A skeleton is a folder of files below `skeletons/`, each with the ending `.template`, so that no tool takes them for
parts of this package. `@NAME@` and `@CLASS@` in paths and texts are replaced.
"""

import importlib.util
import keyword
import re
import shutil
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from geode.serve.catalogues import hook_names

_ENDING = ".template"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class SkeletonKind(StrEnum):
    """What there is a skeleton of."""

    SUITE = "suite"
    HOOK = "hook"


class SkeletonRefused(ValueError):  # noqa: N818  (it names what happened to the request)
    """Nothing was written. The text says why, and what would do."""


def write_skeleton(kind: SkeletonKind, name: str, parent: Path) -> Path:
    """Write the skeleton of `kind` into the new folder `parent/name` and return it.

    Raises:
        SkeletonRefused: if the name will not do, or the folder is there already.
        OSError: if the disk refuses; what was begun is removed.
    """
    _refuse_name(kind, name)
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise SkeletonRefused(f"{folder} is there already; nothing was written: take another name, or move it away")
    try:
        _write(files("geode.dev") / "skeletons" / kind, folder, name)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _refuse_name(kind: SkeletonKind, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SkeletonRefused(f"{name!r} will not do as a name: lower-case letters, digits and _, a letter first")
    if kind is not SkeletonKind.HOOK:
        return
    if name in hook_names():
        raise SkeletonRefused(f"there is a hook {name!r} already; take another name")
    if keyword.iskeyword(name) or importlib.util.find_spec(name) is not None:
        raise SkeletonRefused(f"{name!r} is a word or a module of Python already; take another name, as my_{name}")


def _write(source: Traversable, target: Path, name: str) -> None:
    target.mkdir(parents=True)
    for entry in sorted(source.iterdir(), key=lambda entry: entry.name):
        own = target / _filled(entry.name.removesuffix(_ENDING), name)
        if entry.is_dir():
            _write(entry, own, name)
        elif entry.name.endswith(_ENDING):
            own.write_text(_filled(entry.read_text(encoding="utf-8"), name), encoding="utf-8")


def _filled(text: str, name: str) -> str:
    class_name = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("@NAME@", name).replace("@CLASS@", class_name)
