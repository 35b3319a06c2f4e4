"""Hooks that a project brings along: inert until the owner trusts exactly its file, and never missed in silence after.

A file that was trusted and is another one by now is refused, not left out: a guard that changed is not a guard less.
"""

import hashlib
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from geode.config.paths import StateRoot
from geode.hooks.hook_file import FILE_BYTES_MAX, HookFile, HookFileError, parse_hook_file
from geode.tools.mcp.trust import TrustStore

PROJECT_FILES = (Path(".geode") / "hooks.json", Path(".claude") / "settings.json")
FOLDER_VARIABLES = ("CLAUDE_PROJECT_DIR", "GEODE_PROJECT_DIR")
"""How a command is told where its project is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHooks:
    """A project's hook file as it is on the disk. `digest` covers it, and the project's own files that it names."""

    path: Path
    workspace: Path
    digest: str
    hooks: HookFile
    programs: tuple[Path, ...]

    @property
    def short(self) -> str:
        """Its name in the project."""
        return self.path.relative_to(self.workspace).as_posix()

    def unchanged(self) -> bool:
        """Whether the disk still holds this."""
        try:
            found = read_project_file(self.path, self.workspace)
        except (HookFileError, OSError):
            return False
        return found is not None and found.digest == self.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundProjectHooks:
    """The files that may be used, and what was left out, with the reason."""

    trusted: tuple[ProjectHooks, ...] = ()
    left_out: tuple[str, ...] = ()


def find_project_hooks(root: StateRoot, workspace: Path, trust: TrustStore) -> FoundProjectHooks:
    """Read the hook files of the project at `workspace`.

    Raises:
        HookFileError: if one that was trusted has changed, is gone, or cannot be read any more.
        OSError: if one cannot be read.
    """
    trusted: list[ProjectHooks] = []
    left_out: list[str] = []
    for path in project_paths(root, workspace):
        known = trust.trusted_file(path)
        try:
            found = read_project_file(path, path.parent.parent)
        except HookFileError as error:
            if known is not None:
                raise HookFileError(f"{error}. You trusted it as it was; {_after(path)}") from error
            left_out.append(f"{error}; its hooks are left out")
            continue
        if found is None:
            if known is not None:
                raise HookFileError(
                    f"{path} is gone with the guards that you trusted; restore it, or give them up with:"
                    f" geode hooks trust {path} --forget"
                )
        elif known is None:
            if count := len(found.hooks.commands):
                left_out.append(
                    f"{path} is not trusted, so its hooks ({count}) do not run; look at them with:"
                    f" geode hooks trust {path}"
                )
        elif known != found.digest:
            raise HookFileError(f"{path}, or a program that it names, has changed since you trusted it; {_after(path)}")
        else:
            trusted.append(found)
    return FoundProjectHooks(trusted=tuple(trusted), left_out=tuple(left_out))


def standings(root: StateRoot, workspace: Path, trust: TrustStore) -> dict[Path, str]:
    """Say of each hook file that the project has, or had when it was trusted, where it stands.

    Raises:
        OSError: if one cannot be read.
    """
    found = {}
    for path in project_paths(root, workspace):
        known = trust.trusted_file(path)
        try:
            file = read_project_file(path, path.parent.parent)
        except HookFileError as error:
            found[path] = f"cannot be used: {error}"
            continue
        if file is None and known is not None:
            found[path] = "trusted, and gone: no session begins here"
        elif file is not None and known is None:
            found[path] = f"not trusted: {len(file.hooks.commands)} hooks do not run"
        elif file is not None:
            changed = "changed since it was trusted: no session begins here"
            found[path] = f"trusted: {len(file.hooks.commands)} hooks" if known == file.digest else changed
    return found


def project_paths(root: StateRoot, workspace: Path) -> tuple[Path, ...]:
    """Return where the project at `workspace` may have hook files. The owner's own file is none."""
    paths = (workspace.resolve() / name for name in PROJECT_FILES)
    return tuple(path for path in paths if path.resolve() != root.hooks_file.resolve())


def read_project_file(path: Path, workspace: Path) -> ProjectHooks | None:
    """Read one file; None if there is none.

    Raises:
        HookFileError: if it cannot be used.
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    hooks = parse_hook_file(content, path)
    programs = _own_programs(hooks, workspace)
    digest = hashlib.sha256(content)
    # What is hashed is what was parsed. The project's own files that its commands name count as a part of it; what
    # those load in turn does not.
    for program in programs:
        with program.open("rb") as file:
            digest.update(f"\0{program}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return ProjectHooks(path=path, workspace=workspace, digest=digest.hexdigest(), hooks=hooks, programs=programs)


def _own_programs(hooks: HookFile, folder: Path) -> tuple[Path, ...]:
    words = {word for command in hooks.commands for word in _words(command)}
    for variable in FOLDER_VARIABLES:
        words = {w.replace(f"${{{variable}}}", str(folder)).replace(f"${variable}", str(folder)) for w in words}
    words |= {word.rpartition("=")[2] for word in words}
    files = {Path(os.path.realpath(folder / word)) for word in words if word and "\0" not in word}
    # `os.path` answers for a word that can be no file's name, too.
    return tuple(sorted(file for file in files if file.is_relative_to(folder) and os.path.isfile(file)))


def _words(command: str) -> list[str]:
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        return list(words)
    except ValueError:  # an open quote
        return command.split()


def _after(path: Path) -> str:
    return f"look at it, and trust it again with: geode hooks trust {path}"
