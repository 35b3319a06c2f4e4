"""The one folder that a session may touch, which the model knows as `/workspace`.

A path from the model is walked by folder handles, one component at a time and without following links: a link is read
and walked in turn, and may lead anywhere inside. So what was checked is what is opened, even if somebody swaps a
folder for a link in between. Hard links cannot be told from files: reading one reads the shared content, writing
replaces the entry and leaves the shared content alone.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from geode.tools.command import quoted_for_place
from geode.tools.spec import OutOfScope, ToolFailed

MODEL_ROOT = "/workspace"
MAX_PATH_CHARS = 4_096
MAX_LINKS = 40  # as the kernel
_NOT_FOLLOWED = os.O_NOFOLLOW | os.O_CLOEXEC
# A handle of a folder that may be searched but not read will do.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | _NOT_FOLLOWED
_MODEL_ROOT_IN_COMMAND = re.compile(r"(?:(?<![\w./~-])|(?<=\s-[A-Za-z]))/workspace(?![\w-]|\.\w)")


class NotThere(ToolFailed):
    """The path lies in the workspace, and nothing is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name in a folder that is held open. `name` is "." for the workspace itself; `relative` has no link in it."""

    folder: int
    name: str
    relative: str

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open what is here and return the file descriptor.

        Raises:
            ToolFailed: if it cannot be opened, in words for the model.
        """
        try:
            # Non-blocking, because opening a pipe that nobody writes to would wait for ever.
            return os.open(self.name, flags | _NOT_FOLLOWED | os.O_NONBLOCK, mode, dir_fd=self.folder)
        except FileNotFoundError:
            raise NotThere(f"there is no {self.relative!r}{self._nearest()}") from None
        except OSError as error:
            raise _told(error, self.relative) from error

    def state(self) -> os.stat_result | None:
        """What the file system says of it; None if nothing is here."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _told(error, self.relative) from error

    def _nearest(self) -> str:
        try:
            handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.folder)
        except OSError:
            return ""
        try:
            near = get_close_matches(self.name, os.listdir(handle)[:1_000], n=1)
        finally:
            os.close(handle)
        return f"; did you mean {os.path.join(os.path.dirname(self.relative), near[0])!r}?" if near else ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder, by its real path."""

    root: Path
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given, real = os.path.abspath(self.root), os.path.realpath(self.root)
        if not os.path.isdir(real) or real == "/":
            raise NotADirectoryError(f"{given!r} cannot be a workspace: name an existing folder other than '/'")
        object.__setattr__(self, "root", Path(real))
        object.__setattr__(self, "_forms", tuple(sorted({given, real}, key=len, reverse=True)))

    def resolve(self, text: str) -> Path:
        """Return the real path that `text` names, which may not exist yet.

        `text` is relative to the workspace or begins with `/workspace`.

        Raises:
            OutOfScope: if it leads out of the workspace, by whatever way.
            ToolFailed: if it leads nowhere (through a file, in circles, back out of a folder that is not there).
        """
        try:
            with self.locate(text) as place:
                return self.root / place.relative
        except _MissingFolder as missing:
            return self.root / missing.relative

    def display(self, path: Path) -> str:
        """The path as results show it: relative to the workspace, "." for the workspace itself.

        Raises:
            OutOfScope: if `path` does not lie in the workspace.
        """
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            raise OutOfScope(f"{path.name!r} is not in the workspace") from None

    @contextmanager
    def locate(self, text: str, *, make_folders: bool = False) -> Iterator[Place]:
        """Walk to what `text` names and hold its folder open; see `resolve` for what is refused.

        Raises:
            NotThere: if a folder on the way is missing and `make_folders` is false.
        """
        walk = _Walk(self.root, text, make_folders=make_folders)
        try:
            yield walk.go()
        finally:
            walk.close()

    def hide(self, text: str, seen_as: str | None = None) -> str:
        """Replace the real path of the workspace, and the one that a sandbox has, by `/workspace` in a text."""
        for form in self._forms if seen_as in (None, MODEL_ROOT) else (*self._forms, seen_as):
            if form in text:
                text = re.sub(re.escape(form) + r"(?![\w-]|\.\w)", MODEL_ROOT, text)
        return text

    def reveal(self, command: str, seen_as: str | None = None) -> str:
        """Replace `/workspace` in a shell command by the path that it has there, quoted as its place asks for."""
        real = seen_as or str(self.root)
        return _MODEL_ROOT_IN_COMMAND.sub(lambda found: quoted_for_place(real, command, found.start()), command)


class _MissingFolder(NotThere):
    """A folder on the way is missing; `relative` is where the path would lead."""

    def __init__(self, relative: str, missing: str) -> None:
        super().__init__(f"there is no {relative!r}: the folder {missing!r} does not exist")
        self.relative = relative


class _Walk:
    """One walk from the root along a path. Holds one folder handle at a time."""

    def __init__(self, root: Path, text: str, *, make_folders: bool) -> None:
        self.root = root
        self.text = text
        self.make_folders = make_folders
        self.pending = _components(text)[::-1]
        self.done: list[str] = []
        self.links = 0
        self.handle = os.open(root, _FOLDER)

    def go(self) -> Place:
        while self.pending:
            part = self.pending.pop()
            if part == "..":
                self._step_back()
            elif target := self._link_target(part):
                self._follow(part, target)
            elif not self.pending:
                return Place(folder=self.handle, name=part, relative="/".join((*self.done, part)))
            else:
                self._enter(part)
        return Place(folder=self.handle, name=".", relative="/".join(self.done) or ".")

    def close(self) -> None:
        os.close(self.handle)

    def _enter(self, name: str) -> None:
        try:
            handle = os.open(name, _FOLDER, dir_fd=self.handle)
        except FileNotFoundError:
            relative = "/".join((*self.done, name, *reversed(self.pending)))
            if ".." in self.pending or not self.make_folders:
                missing = "/".join((*self.done, name))
                if ".." in self.pending:
                    raise NotThere(f"{self.text!r} goes back out of {missing!r}, which does not exist") from None
                raise _MissingFolder(relative, missing) from None
            self._make(name)
            self._enter(name)
            return
        except OSError as error:
            raise _told(error, "/".join((*self.done, name))) from error
        self._hold(handle)
        self.done.append(name)

    def _make(self, name: str) -> None:
        try:
            os.mkdir(name, dir_fd=self.handle)
        except FileExistsError:
            pass  # Somebody else was quicker; what they made is judged when it is entered.
        except OSError as error:
            raise _told(error, "/".join((*self.done, name))) from error

    def _step_back(self) -> None:
        if not self.done:
            raise OutOfScope(f"{self.text!r} leads out of the workspace; paths begin at {MODEL_ROOT}")
        # Not by "..": the folder may have been moved, and its parent may lie outside by then.
        names = self.done[:-1]
        self._back_to_root()
        for name in names:
            self._enter(name)

    def _link_target(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.handle)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise _told(error, "/".join((*self.done, name))) from error

    def _follow(self, name: str, target: str) -> None:
        self.links += 1
        if self.links > MAX_LINKS:
            raise ToolFailed(f"{self.text!r} leads through more than {MAX_LINKS} links")
        if os.path.isabs(target):
            inside = _below(str(self.root), target)
            if inside is None:
                inside = _below(MODEL_ROOT, target)  # as a command in a sandbox makes it
            if inside is None:
                link = "/".join((*self.done, name))
                raise OutOfScope(f"{self.text!r} leads out of the workspace: {link!r} is a link to {target!r}")
            self._back_to_root()
            target = inside
        self.pending += [part for part in reversed(target.split("/")) if part not in ("", ".")]

    def _back_to_root(self) -> None:
        self._hold(os.open(self.root, _FOLDER))
        self.done = []

    def _hold(self, handle: int) -> None:
        os.close(self.handle)
        self.handle = handle


def _components(text: str) -> list[str]:
    """The parts of a model's path below the workspace.

    Raises:
        OutOfScope: for what names a place otherwise than relative to the workspace or by `/workspace`.
    """
    if len(text) > MAX_PATH_CHARS or "\0" in text:
        raise OutOfScope(f"{text[:80]!r} is no path: it has {len(text)} characters, or a NUL among them")
    if text.startswith("~") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        raise OutOfScope(f"{text!r} is not in the workspace; give a path relative to it, or one below {MODEL_ROOT}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise OutOfScope(f"{text!r} is no path: {error.reason}") from error
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/"):
        if parts[:1] != [MODEL_ROOT[1:]]:
            raise OutOfScope(f"{text!r} is not in the workspace; give a path relative to it, or one below {MODEL_ROOT}")
        return parts[1:]
    return parts


def _below(root: str, path: str) -> str | None:
    """The rest of an absolute link target below `root`, judged by components, or None."""
    ours, theirs = root.split("/"), [part for part in path.split("/") if part not in ("", ".")]
    inside = theirs[: len(ours) - 1] == ours[1:]
    return "/".join(theirs[len(ours) - 1 :]) if inside else None


def _told(error: OSError, relative: str) -> ToolFailed:
    if error.errno == errno.ELOOP:
        return OutOfScope(f"{relative!r} became a link while it was being opened")
    return ToolFailed(f"{relative!r}: {os.strerror(error.errno or 0)}")


def is_file(state: os.stat_result) -> bool:
    """Whether this is a regular file: nothing else can be read to an end or replaced safely."""
    return stat.S_ISREG(state.st_mode)
