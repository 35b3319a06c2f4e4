"""The episode store: folders that are the only truth. A folder with a valid `episode.json` is a finished episode.

StoreError
├── RecordDamaged     something on record cannot be read; it is named, and nothing is guessed in its place
├── UnknownExperiment there is no experiment of this name
└── RootInUse         another process holds the list of experiments, and does not let go
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import filelock
import yaml
from pydantic import JsonValue, ValidationError

from experiments.claims import Claims, episode_name
from experiments.episode import EpisodeRecord
from experiments.overrides import nearest
from experiments.records import ExperimentRecord, Variant
from experiments.sinks import Cell, StoredEpisode
from geode.clock import Clock
from geode.config.paths import StateRoot
from geode.records.folder import write_atomically
from geode.redaction import Redactor
from geode.tools.orphans import kill_orphans

EPISODE_FILE = "episode.json"
SPEC_FILE = "spec.yaml"
EXPERIMENT_FILE = "experiment.yaml"
_KEY_DIGITS = 16  # of the episode's key, with which the name of a workspace begins
_WORKSPACE = re.compile(rf"([0-9a-f]{{{_KEY_DIGITS}}})-")


class StoreError(Exception):
    """The store cannot give or take what was asked. The text names the place and the next step."""


class RecordDamaged(StoreError):  # noqa: N818  (named by what is wrong)
    """A record cannot be read, does not belong where it lies, or was written by a newer version."""


class UnknownExperiment(StoreError):  # noqa: N818  (named by what is wrong)
    """No experiment of this name is on record."""


class RootInUse(StoreError):  # noqa: N818  (named by what is wrong)
    """Another process holds what every run needs for a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeState:
    """What the store holds of an episode. Only `done` has a record, only `damaged` a problem."""

    kind: Literal["new", "unfinished", "done", "damaged"]
    record: EpisodeRecord | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeStore:
    """The life of episode folders under one state root."""

    root: StateRoot
    clock: Clock
    redactor: Redactor

    def look(self, key: str) -> EpisodeState:
        """Say what is there of the episode `key`."""
        return look_at(self.root.episode(key))

    def begin(self, key: str, spec: dict[str, JsonValue]) -> Path:
        """Make the folder of an episode, with its `spec.yaml`. What lies there of an earlier attempt is set aside."""
        folder = self.root.episode(key)
        if folder.exists():
            self.set_aside(key)
        folder.mkdir(parents=True, mode=0o700)
        text = yaml.dump(spec, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
        write_atomically(folder / SPEC_FILE, self.redactor.redact(text))
        return folder

    def finish(self, record: EpisodeRecord) -> None:
        """Write `episode.json`, whole and on the disk. From then on the episode is done."""
        text = self.redactor.redact(record.model_dump_json(by_alias=True, indent=1))
        write_atomically(self.root.episode(record.episode_key) / EPISODE_FILE, text + "\n", durable=True)

    def set_aside(self, key: str) -> Path:
        """Move the folder of an episode out of the way, never delete it. Return where it went."""
        target = self.root.set_aside / f"{key}.{self.clock.ulid()}"
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.root.episode(key).rename(target)

    def write_experiment(self, record: ExperimentRecord) -> None:
        """Write `experiment.yaml`, whole and on the disk."""
        folder = self.root.experiment(record.name)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        body = record.model_dump(mode="json", by_alias=True)
        text = yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
        write_atomically(folder / EXPERIMENT_FILE, self.redactor.redact(text), durable=True)


def look_at(folder: Path) -> EpisodeState:
    """Say what is in an episode folder."""
    try:
        text = (folder / EPISODE_FILE).read_bytes()
    except FileNotFoundError:
        return EpisodeState(kind="unfinished" if folder.exists() else "new")
    except IsADirectoryError:
        return EpisodeState(kind="damaged", problem="it is a folder")
    try:
        record = EpisodeRecord.model_validate_json(text)
    except ValidationError as error:
        return EpisodeState(kind="damaged", problem=_why_unreadable(text, error, "geode.episode/1"))
    if record.episode_key != folder.name:
        problem = f"it is the record of another episode, {record.episode_key[:12]}"
        return EpisodeState(kind="damaged", problem=problem)
    return EpisodeState(kind="done", record=record)


def _why_unreadable(text: bytes | str, error: ValidationError, known: str) -> str:
    try:
        schema = json.loads(text).get("schema")
    except (ValueError, AttributeError, RecursionError):
        return "it is not the text of a record"
    if schema != known:
        return f"its schema is {schema!r}, which this version does not know; it may be from a newer GEODE, so use that"
    detail = error.errors()[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def list_experiments(root: StateRoot) -> tuple[str, ...]:
    """Return the names of the experiments on record, sorted."""
    if not root.experiments.is_dir():
        return ()
    # Not glob(): it takes a folder that may not be read for an empty one.
    return tuple(sorted(path.name for path in root.experiments.iterdir() if (path / EXPERIMENT_FILE).exists()))


def read_experiment(root: StateRoot, name: str) -> ExperimentRecord:
    """Read an experiment.

    Raises:
        UnknownExperiment: if there is none of this name, with the nearest one that is.
        RecordDamaged: if it cannot be read.
    """
    if name not in list_experiments(root):
        raise UnknownExperiment(f"no experiment {name!r} under {root.path}{nearest(name, list_experiments(root))}")
    path = root.experiment(name) / EXPERIMENT_FILE
    try:
        # The JSON text in between: pydantic takes lists for tuples and text for times only from JSON.
        body = json.dumps(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader), default=str)
    except (yaml.YAMLError, ValueError, RecursionError, IsADirectoryError) as error:
        raise _damaged_experiment(path, str(error).splitlines()[0]) from error
    try:
        return ExperimentRecord.model_validate_json(body)
    except ValidationError as error:
        raise _damaged_experiment(path, _why_unreadable(body, error, "geode.experiment/1")) from error


def _damaged_experiment(path: Path, why: str) -> RecordDamaged:
    return RecordDamaged(
        f"{path} cannot be read ({why}); restore it from a copy, or move it away: its episodes are safe, and the same"
        " sweep plans them anew"
    )


def load_cells(root: StateRoot, name: str) -> list[Cell]:
    """Read an experiment with its finished episodes, one cell a variant. Missing episodes are simply not in it.

    Raises:
        UnknownExperiment: if there is none of this name.
        RecordDamaged: if the experiment or one of its episodes cannot be read.
    """
    experiment = read_experiment(root, name)
    return [load_cell(root, experiment, variant) for variant in experiment.variants]


def load_cell(root: StateRoot, experiment: ExperimentRecord, variant: Variant) -> Cell:
    """Read the finished episodes of one variant.

    Raises:
        RecordDamaged: if the record of an episode cannot be used.
    """
    found = (load_episode(root, key) for _, _, _, key in experiment.episode_keys(variant))
    episodes = tuple(stored for stored in found if stored is not None)
    return Cell(experiment=experiment, variant=variant, episodes=episodes)


def load_episode(root: StateRoot, key: str) -> StoredEpisode | None:
    """Read a finished episode; None if it is not done.

    Raises:
        RecordDamaged: if its record cannot be used.
    """
    folder = root.episode(key)
    state = look_at(folder)
    if state.kind == "damaged":
        raise RecordDamaged(
            f"{folder / EPISODE_FILE} is damaged: {state.problem}; run its experiment again with damaged=set_aside"
        )
    return StoredEpisode(record=state.record, folder=folder) if state.record is not None else None


def find_episodes(root: StateRoot, prefix: str) -> tuple[Path, ...]:
    """Return the folders of the episodes whose key begins with `prefix`, finished or not, sorted."""
    if not prefix or not set(prefix) <= set("0123456789abcdef"):
        return ()
    shelves = [root.episodes / prefix[:2]] if len(prefix) > 1 else list(root.episodes.glob(f"{prefix}*"))
    episodes = (path for shelf in shelves if shelf.is_dir() for path in shelf.iterdir())
    return tuple(sorted(path for path in episodes if path.name.startswith(prefix) and path.is_dir()))


def count_set_aside(root: StateRoot, keys: frozenset[str]) -> int:
    """Count the folders that were set aside for these episodes."""
    if not root.set_aside.is_dir():
        return 0
    return sum(path.name.split(".", 1)[0] in keys for path in root.set_aside.iterdir())


@contextmanager
def locked_experiments(root: StateRoot, wait_s: float = 60.0) -> Iterator[None]:
    """Be the only process that reads an experiment in order to write it back. It is for a moment, not for a run.

    Raises:
        RootInUse: if another process holds on to it for `wait_s`.
    """
    root.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = filelock.FileLock(root.experiments_lock)
    try:
        lock.acquire(timeout=wait_s)
    except filelock.Timeout:
        raise RootInUse(
            f"another process has held {root.experiments_lock} for {wait_s:g} s, which takes a moment; see"
            f" what it is (fuser {root.experiments_lock}), or work on another root: --root PATH"
        ) from None
    try:
        yield
    finally:
        lock.release()


def clean_workspaces(root: StateRoot, claims: Claims) -> None:
    """Remove the workspaces that dead processes left, those of episodes that nobody runs."""
    if not root.workspaces.is_dir():
        return
    for begin in {found[1] for path in root.workspaces.iterdir() if (found := _WORKSPACE.match(path.name))}:
        with claims.held(episode_name(begin)) as granted:
            if granted:
                clear_workspaces(root, begin)


def clear_workspaces(root: StateRoot, key: str) -> None:
    """Remove what is left of an episode's workspaces, and end what still runs there. Call it only under its claim."""
    for leftover in root.workspaces.glob(f"{key[:_KEY_DIGITS]}-*"):
        kill_orphans(leftover)
        shutil.rmtree(leftover, ignore_errors=True)
