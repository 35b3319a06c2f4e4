"""The sweeps of one study as they were measured, so that a killed calibration goes on where it ended."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from experiments.calibration.study import Study
from experiments.calibration.sweeps import Sweep
from geode.records.jsonl import JsonLines, read_lines

_SCHEMA = "geode.calibration/1"


class LedgerDamaged(Exception):  # noqa: N818  (named by what is wrong)
    """A line of a ledger is no sweep of its study."""


class Ledger:
    """`FOLDER/STUDY-ID.jsonl`: a header, then a line for each sweep that has ended."""

    def __init__(self, folder: Path, study: Study) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = folder / f"{study.name}-{study.study_id}.jsonl"
        self._lines = JsonLines(
            self._path,
            {
                "schema": _SCHEMA,
                "study": study.name,
                "study_id": study.study_id,
                "variants": {one.name: one.scaffold_id for one in study.experiment.variants},
                "first_seed": study.first_seed,
            },
        )

    def sweeps(self) -> Iterator[Sweep]:
        """Yield the sweeps on record; a line that a kill cut off was never one.

        Raises:
            LedgerDamaged: if another line is no sweep.
        """
        for line in read_lines(self._path):
            if line.body is None or "schema" in line.body:
                continue
            body = {key: value for key, value in line.body.items() if key != "seq"}
            try:
                yield Sweep.model_validate(body)
            except ValidationError as error:
                raise LedgerDamaged(
                    f"{self._path} line {line.number} is no sweep ({error.errors()[0]['msg']}); move the file away, and"
                    " the same command measures its sweeps afresh"
                ) from error

    def add(self, sweep: Sweep) -> None:
        """Keep a sweep that has ended."""
        self._lines.append(sweep.model_dump(mode="json"))

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
