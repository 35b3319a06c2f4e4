"""Which files a call names: those that it reads, and those that it may write."""

import posixpath
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from geode.authority import Arguments, SafetyLevel
from geode.executor.shell.command import JudgedCommand, Reading
from geode.executor.shell.started import program_of
from geode.executor.shell.syntax import Word
from geode.tools.spec import ResourceClaim, ToolSpec

_FILE_CLAIM: Final = "file:/workspace/"
_TREE_CLAIM: Final = "tree"
_PATH_CHARS_MAX = 1_024
# They only read the files that they name.
_READERS = frozenset(
    (
        *("cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "wc", "diff", "cmp", "ls", "stat", "file", "nl", "od"),
        *("md5sum", "sha1sum", "sha256sum", "cksum", "cut", "strings", "jq", "echo", "printf", "test", "["),
    )
)
_GIT_READERS = frozenset(("add", "commit", "diff", "log", "show", "status", "blame", "ls-files", "grep"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The paths that a call names, relative to the workspace where they lie in it, and its command if one was read."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reading: Reading | None = None


def touched_by_arguments(spec: ToolSpec, arguments: Arguments, claims: Sequence[ResourceClaim]) -> Touched:
    """Return what a call of a tool other than the shell touches.

    What a tool claims is where its paths really lead. One that claims no file is taken at its words: every text that it
    gets may be a path.
    """
    named = arguments.get("path")
    path = (below_workspace(named),) if isinstance(named, str) else ()
    files = [claim for claim in claims if claim.resource.startswith(_FILE_CLAIM)]
    if files:
        claimed = {claim: claim.resource.removeprefix(_FILE_CLAIM) for claim in files}
        writes = tuple(claimed[claim] for claim in files if claim.exclusive)
        # The name that was given counts beside the file that it leads to.
        return Touched(reads=(*claimed.values(), *path), writes=(*writes, *(path if writes else ())))
    if any(claim.resource == _TREE_CLAIM for claim in claims):
        return Touched(reads=path, writes=path if spec.level > SafetyLevel.READ else ())
    texts = tuple(below_workspace(text) for text in texts_in(dict(arguments)) if len(text) <= _PATH_CHARS_MAX)
    return Touched(reads=texts, writes=texts if spec.level > SafetyLevel.READ else ())


def touched_by_command(reading: Reading) -> Touched:
    """Return what a shell command names, from the workspace and from every folder that it may have changed into."""
    folders = [""]
    for simple in reading.commands:
        if program_of(simple.words[0]) in ("cd", "pushd") and len(simple.words) > 1:
            folders.append(posixpath.join(folders[-1], simple.words[-1].start))
    reads = [path for word in reading.reads for path in _paths_in(word)]
    writes = [path for word in reading.writes for path in _paths_in(word)]
    for simple in reading.commands:
        named = [path for word in simple.words[1:] for path in _paths_in(word)]
        reads += named
        if not _only_reads(simple):
            writes += named
    return Touched(reads=_from(folders, reads), writes=_from(folders, writes), reading=reading)


def below_workspace(path: str) -> str:
    """Return `path` relative to the workspace, without what does not show and some disks do not count."""
    if not path.isascii():
        path = "".join(letter for letter in path if unicodedata.category(letter) != "Cf")
    path = posixpath.normpath(path.removeprefix("/workspace").lstrip("/") or ".")
    return "" if path == "." else path


def texts_in(value: JsonValue) -> Iterator[str]:
    """Yield every text in a JSON value. Its depth is bounded where arguments are parsed."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)


def _from(folders: Sequence[str], paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(below_workspace(posixpath.join(folder, path)) for folder in folders for path in paths))


def _only_reads(command: JudgedCommand) -> bool:
    program = program_of(command.words[0])
    if program == "git" and len(command.words) > 1:
        return command.words[1].text in _GIT_READERS
    return command.carrier or program in _READERS


def _paths_in(word: Word) -> Iterator[str]:
    """Yield what a word may name as a path: itself, what stands behind `=` in it, and behind a short option."""
    yield word.start
    if "=" in word.start:
        yield word.start.partition("=")[2]
    if word.start.startswith("-") and not word.start.startswith("--"):
        yield word.start[2:]
