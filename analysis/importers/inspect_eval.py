"""Reads Inspect's `.eval` logs without Inspect: each part when it is asked for, and no more of it than that.

A log is a zip with zstd members (method 93): `_journal/start.json`, `samples/<id>_epoch_<n>.json`,
`_journal/summaries/<k>.json`, and at the end `summaries.json`, `reductions.json` and `header.json`. A killed run lacks
those three; what it did is then in its journal, and its status is `started`. JSON here may hold the bare token NaN.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from analysis.importers.files import DamagedArchive
from analysis.importers.inspect_records import (
    Header,
    Sample,
    Score,
    identity,
    parse_header,
    parse_sample,
    parse_scores,
)

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile  # the standard library's own, which knows method 93 from 3.14 on

MEMBER_BYTES_MAX = 1024 * 1024 * 1024
_SAMPLE = re.compile(r"samples/(?P<key>.+_epoch_[0-9]+)\.json")
_JOURNAL = re.compile(r"_journal/summaries/(?P<number>[0-9]+)\.json")


@dataclass(frozen=True)
class EvalLog:
    """One log. Opening reads the directory of the zip alone; each member is read when it is asked for."""

    path: Path
    members: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the log at `path`.

        Raises:
            DamagedArchive: if it is no zip, or no Inspect log.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                members = tuple(dict.fromkeys(archive.namelist()))
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DamagedArchive(f"{path} is no whole .eval log: {error}") from error
        if "header.json" not in members and "_journal/start.json" not in members:
            raise DamagedArchive(f"{path} has neither header.json nor _journal/start.json, so it is no Inspect log")
        return cls(path, members)

    @cached_property
    def header(self) -> Header:
        """What the log says of itself: header.json, or of a killed run `_journal/start.json`.

        Raises:
            DamagedArchive: if that is unreadable, or of a version that this reader does not know.
        """
        has_header = "header.json" in self.members
        name = "header.json" if has_header else "_journal/start.json"
        with self._reader() as reader:
            return parse_header(reader.object(name), has_header, f"{self.path}: {name}")

    @cached_property
    def sample_keys(self) -> tuple[str, ...]:
        """`<id>_epoch_<n>` of each sample, in the order in which they ended."""
        return tuple(found["key"] for name in self.members if (found := _SAMPLE.fullmatch(name)))

    def scores(self) -> tuple[Score, ...]:
        """Every score, from the summaries; only a sample that no summary tells of is read whole.

        Raises:
            DamagedArchive: if a summary, or such a sample, is unreadable.
        """
        found: dict[str, tuple[Score, ...]] = {}
        with self._reader() as reader:
            for name in self._summaries:
                for body in reader.array(name):
                    sample_id, epoch = identity(body, f"{self.path}: {name}")
                    found[f"{sample_id}_epoch_{epoch}"] = parse_scores(body, sample_id, epoch)
        for key in self.sample_keys:
            if key not in found:
                found[key] = self._sample(key).scores
        return tuple(score for scores in found.values() for score in scores)

    def samples(self) -> Iterator[Sample]:
        """Each sample whole, one after the other.

        Raises:
            DamagedArchive: if one is unreadable.
        """
        with self._reader() as reader:
            for key in self.sample_keys:
                yield self._parsed(reader, key)

    def sample(self, sample_id: str | int, epoch: int = 1) -> Sample:
        """One sample.

        Raises:
            KeyError: if the log has none of that name.
            DamagedArchive: if it is unreadable.
        """
        key = f"{sample_id}_epoch_{epoch}"
        if key not in self.sample_keys:
            raise KeyError(f"{self.path.name} has no sample {key!r}; it has {', '.join(self.sample_keys) or 'none'}")
        return self._sample(key)

    @property
    def _summaries(self) -> tuple[str, ...]:
        if "summaries.json" in self.members:
            return ("summaries.json",)
        numbered = [(int(found["number"]), name) for name in self.members if (found := _JOURNAL.fullmatch(name))]
        return tuple(name for _, name in sorted(numbered))

    def _sample(self, key: str) -> Sample:
        with self._reader() as reader:
            return self._parsed(reader, key)

    def _parsed(self, reader: "_Members", key: str) -> Sample:
        name = f"samples/{key}.json"
        return parse_sample(reader.object(name), self.header.roles, f"{self.path}: {name}")

    def _reader(self) -> "_Members":
        return _Members(self.path)


class _Members:
    """The members of one zip, parsed. Used in a `with`, so that many reads open the file once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise DamagedArchive(f"{path} is no whole .eval log: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def object(self, name: str) -> dict[str, JsonValue]:
        value = self._value(name)
        if not isinstance(value, dict):
            raise DamagedArchive(f"{self._path}: {name} holds {type(value).__name__}, not a JSON object")
        return value

    def array(self, name: str) -> list[dict[str, JsonValue]]:
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise DamagedArchive(f"{self._path}: {name} holds no list of JSON objects")
        return [item for item in value if isinstance(item, dict)]

    def _value(self, name: str) -> JsonValue:
        try:
            if (size := self._zip.getinfo(name).file_size) > MEMBER_BYTES_MAX:
                raise DamagedArchive(f"{self._path}: {name} has {size} bytes, more than {MEMBER_BYTES_MAX}")
            parsed: JsonValue = json.loads(self._zip.read(name))
        except DamagedArchive:
            raise
        # A broken member raises whatever its decompressor does: BadZipFile, ZstdError, zlib.error, EOFError, KeyError.
        except Exception as error:
            raise DamagedArchive(f"{self._path}: {name} is damaged ({type(error).__name__}: {error})") from error
        return parsed
