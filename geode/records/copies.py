"""Looks into a store without opening it: whoever opens one writes to it, and is its owner from then on.

A copy is read in its place, with the log of what its owner had not folded in. Not for the process that has the session
open: closing any handle of a file gives up the locks that the process holds on it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from geode.records.database import RecordError, RecordLocked

_LOG = "-wal"


@contextmanager
def copied(store: Path) -> Iterator[Path]:
    """Give a copy of `store` that may be opened, for as long as the block lasts.

    Raises:
        RecordLocked: if a living process has it open.
        RecordError: if it is gone, or what its copy is opened with raises it; the text names `store`.
    """
    if not store.is_file():
        raise RecordError(f"{store} is gone; restore it from a copy")
    with tempfile.TemporaryDirectory(prefix="geode-look-") as folder:
        copy = Path(folder) / store.name
        _refuse_if_open(store)
        for file in (store, store.with_name(store.name + _LOG)):
            if file.exists():
                shutil.copyfile(file, copy.with_name(file.name))
        _refuse_if_open(store)  # by somebody who came in between: the copy may hold half of a write
        try:
            yield copy
        except RecordError as error:
            raise type(error)(str(error).replace(str(copy), str(store))) from error


def _refuse_if_open(store: Path) -> None:
    with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # else it leaves a file of shared memory behind
            connection.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            # Other errors say that it cannot be read without writing to it, which is why there is a copy.
            if "locked" in str(error):
                raise RecordLocked(f"{store} is in use by another process") from error
