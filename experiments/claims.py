"""Who works on what, among all processes of a state root: names that one process at a time can claim.

A name is one byte of one file, locked by the kernel. So a claim ends with its process, however that ends, and there is
nothing to clean up. Claims are cheap (two microseconds) and never wait.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NewType

from geode.canonical import content_hash
from geode.config.paths import StateRoot

Name = NewType("Name", int)
"""What can be claimed: a place in the lock file."""

_DIGITS = 15  # hex digits, so 60 bits: an offset has 63, and two names in 2**60 do not meet
_BLOCKS = 1 << 4 * _DIGITS
_HELD = frozenset({errno.EACCES, errno.EAGAIN})


def episode_name(key: str) -> Name:
    """Return the name of an episode; the first 15 digits of its key are enough."""
    return Name(int(key[:_DIGITS], 16))


def block_name(experiment: str, task_id: str, seed: int, repetition: int) -> Name:
    """Return the name of a block of an experiment."""
    return Name(_BLOCKS + int(content_hash([experiment, task_id, seed, repetition])[:_DIGITS], 16))


class Claims:
    """The claims of this process. Make one a process and state root, and use it from one thread.

    These are POSIX locks: they belong to the process, so a second object on the same file would be granted what the
    first holds, and closing any descriptor of the file would drop all of them. A child process inherits none.
    """

    def __init__(self, root: StateRoot) -> None:
        root.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(root.claims, os.O_RDWR | os.O_CREAT, 0o600)
        self._mine: set[Name] = set()

    def take(self, name: Name) -> bool:
        """Claim `name` until it is released; False if anybody holds it, this process included.

        Raises:
            OSError: if the file system keeps no locks.
        """
        if name in self._mine:
            return False
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, name)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise
        self._mine.add(name)
        return True

    def release(self, name: Name) -> None:
        """Give up a claim of this process."""
        self._mine.remove(name)
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, name)

    @contextmanager
    def held(self, name: Name) -> Iterator[bool]:
        """Claim `name` for the length of a `with`, and yield whether it was granted."""
        granted = self.take(name)
        try:
            yield granted
        finally:
            if granted:
                self.release(name)

    def is_free(self, name: Name) -> bool:
        """Whether nobody holds `name`. To find out, it is held for a moment."""
        with self.held(name) as granted:
            return granted

    def close(self) -> None:
        """Give up all claims."""
        os.close(self._fd)
