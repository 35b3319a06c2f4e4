"""Judgments on disk: a line each in a `judgments.jsonl`, appended, never changed. None of them is paid for again."""

import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import JsonValue, ValidationError

from geode.records.jsonl import JsonLines, read_lines
from judges.judgment import Judgment, NoValue, Unscored

FILE = "judgments.jsonl"
SCHEMA = "geode.judgments/1"
_HEADER: dict[str, JsonValue] = {"schema": SCHEMA}


class LedgerNewer(ValueError):  # noqa: N818  (named by what it is)
    """A newer version wrote the file."""


class LedgerInUse(Exception):  # noqa: N818  (named by what it is)
    """Another command judges the same episode at the moment."""


class JudgmentLedger:
    """The judgments of one episode, or of the episodes of one archived log. It has one writer at a time.

    `problems` are lines that could not be read; a torn last line is one of them.

    Raises:
        LedgerInUse: if another process, or another one of this process, has it open.
        LedgerNewer: if a newer version wrote the file.
        OSError: if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.problems: list[str] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        # The kernel gives the lock back, however the process ends, and it leaves no file behind.
        self._lock = path.open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._settled = {j.key for j in read_judgments(path, self.problems) if is_settled(j)}
            self._lines = JsonLines(path, _HEADER)
        except BlockingIOError:
            self._lock.close()
            raise LedgerInUse(f"{path} is being written by another command") from None
        except BaseException:
            self._lock.close()
            raise

    def holds(self, key: str) -> bool:
        """Whether a judgment with this key is there that nobody need ask for again."""
        return key in self._settled

    def append(self, judgment: Judgment) -> None:
        """Write one judgment."""
        self._lines.append(judgment.model_dump(mode="json", by_alias=True, exclude_defaults=False))
        if is_settled(judgment):
            self._settled.add(judgment.key)

    def close(self) -> None:
        """Close the file, and let others have it."""
        self._lines.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_settled(judgment: Judgment) -> bool:
    """Whether it says something of the episode; one that infrastructure spoiled does not, and is asked for again."""
    return not any(
        isinstance(entry, NoValue) and entry.reason is Unscored.INFRASTRUCTURE for entry in judgment.dimensions.values()
    )


def read_judgments(path: Path, problems: list[str] | None = None) -> Iterator[Judgment]:
    """Yield the judgments in `path` in their order; none if there is no such file. What cannot be read is told.

    Raises:
        LedgerNewer: if a newer version wrote the file.
    """
    told = problems if problems is not None else []
    if not path.is_file():
        return
    for line in read_lines(path):
        if line.body is None:
            told.append(f"{path.parent.name}: {line.problem}")
        elif "seq" not in line.body:
            if line.body.get("schema") != SCHEMA:
                raise LedgerNewer(
                    f"{path} begins with the schema {line.body.get('schema')!r}; this version reads {SCHEMA!r}"
                )
        else:
            body = {name: value for name, value in line.body.items() if name != "seq"}
            try:
                yield Judgment.model_validate(body)
            except ValidationError as error:
                detail = error.errors()[0]
                place = ".".join(map(str, detail["loc"]))
                told.append(f"{path} line {line.number} is no judgment ({place}: {detail['msg']}) and was skipped")
