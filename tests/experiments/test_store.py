"""Episode folders: done, or nothing. Damage is named, never guessed away."""

import json
from pathlib import Path

import filelock
import pytest
import yaml

from experiments.claims import Claims, episode_name
from experiments.store import (
    EpisodeStore,
    RecordDamaged,
    RootInUse,
    UnknownExperiment,
    clean_workspaces,
    clear_workspaces,
    count_set_aside,
    find_episodes,
    list_experiments,
    load_cells,
    locked_experiments,
    look_at,
    read_experiment,
)
from geode.clock import ManualClock
from geode.config.paths import StateRoot
from geode.redaction import Redactor
from tests.doubles.cells import make_cells, make_experiment, store_cells
from tests.doubles.claimer import Claimer

LETTERS = {"base": {"csv_a": "PF"}, "hook": {"csv_a": "P."}}


@pytest.fixture
def store(tmp_path: Path) -> EpisodeStore:
    return EpisodeStore(StateRoot(tmp_path), ManualClock(), Redactor(("hunter2hunter2",)))


@pytest.fixture
def filled(store: EpisodeStore) -> EpisodeStore:
    store_cells(store.root, make_cells(LETTERS))
    return store


def keys_of(store: EpisodeStore) -> list[str]:
    return [stored.record.episode_key for cell in load_cells(store.root, "ablation") for stored in cell.episodes]


def test_what_was_stored_comes_back_as_cells(filled: EpisodeStore) -> None:
    """The analysis reads this and nothing else."""
    read = load_cells(filled.root, "ablation")
    assert [[stored.record for stored in cell.episodes] for cell in read] == [
        [stored.record for stored in cell.episodes] for cell in make_cells(LETTERS)
    ]
    assert read[0].episodes[0].folder == filled.root.episode(read[0].episodes[0].record.episode_key)
    assert read_experiment(filled.root, "ablation") == make_experiment(LETTERS)
    assert list_experiments(filled.root) == ("ablation",)


def test_an_episode_is_done_by_the_presence_of_its_record(store: EpisodeStore) -> None:
    """Killed between any two of these steps, the episode is run again; killed after the last, never."""
    record = make_cells(LETTERS)[0].episodes[0].record
    assert store.look(record.episode_key).kind == "new"
    folder = store.begin(record.episode_key, {"schema": "x"})
    assert store.look(record.episode_key).kind == "unfinished"
    (folder / ".episode.json.1.tmp").write_text(record.model_dump_json()[:50], encoding="utf-8")
    assert store.look(record.episode_key).kind == "unfinished", "a record that is being written is none yet"
    store.finish(record)
    assert store.look(record.episode_key).record == record


def test_an_unfinished_folder_is_set_aside_and_never_deleted(store: EpisodeStore) -> None:
    """What a killed run left may be the only trace of what it did outside."""
    folder = store.begin("ab" * 32, {"attempt": 1})
    (folder / "timeline.jsonl").write_text("what happened", encoding="utf-8")
    again = store.begin("ab" * 32, {"attempt": 2})
    assert [path.name for path in again.iterdir()] == ["spec.yaml"]
    (aside,) = store.root.set_aside.iterdir()
    assert (aside / "timeline.jsonl").read_text(encoding="utf-8") == "what happened"
    assert count_set_aside(store.root, frozenset({"ab" * 32})) == 1


def test_secrets_do_not_enter_the_folder(store: EpisodeStore) -> None:
    """A prompt can hold a value of the environment by interpolation, a verifier's reason can quote one."""
    record = make_cells(LETTERS)[0].episodes[0].record
    told = record.model_copy(update={"outcome": record.outcome.model_copy(update={"reasons": ("hunter2hunter2",)})})
    folder = store.begin(record.episode_key, {"prompt": "use hunter2hunter2"})
    store.finish(told)
    assert not [path for path in folder.iterdir() if "hunter2" in path.read_text(encoding="utf-8")]
    assert yaml.safe_load((folder / "spec.yaml").read_text(encoding="utf-8")) == {"prompt": "use [redacted]"}


def damage(folder: Path, how: str) -> None:
    path = folder / "episode.json"
    body = json.loads(path.read_text(encoding="utf-8"))
    match how:
        case "cut off":
            path.write_bytes(path.read_bytes()[:100])
        case "empty":
            path.write_bytes(b"")
        case "another key":
            path.write_text(json.dumps({**body, "episode_key": "0" * 64}), encoding="utf-8")
        case "a folder":
            path.unlink()
            path.mkdir()
        case "newer":
            path.write_text(json.dumps({**body, "schema": "geode.episode/2", "extra": 1}), encoding="utf-8")
        case "a score of NaN":
            path.write_text(json.dumps({**body, "outcome": {"kind": "PASS", "score": float("nan")}}), encoding="utf-8")


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("cut off", "not the text of a record"),
        ("empty", "not the text of a record"),
        ("another key", "the record of another episode, 000000000000"),
        ("newer", "'geode.episode/2', which this version does not know"),
        ("a score of NaN", "outcome.score"),
        ("a folder", "it is a folder"),
    ],
)
def test_a_damaged_record_is_named_with_what_is_wrong(filled: EpisodeStore, how: str, problem: str) -> None:
    """A record that cannot be trusted is neither a result nor a missing one, and reading on would hide it."""
    folder = filled.root.episode(keys_of(filled)[0])
    damage(folder, how)
    assert problem in look_at(folder).problem
    with pytest.raises(RecordDamaged, match=folder.name):
        load_cells(filled.root, "ablation")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("schema: geode.experiment/1", "schema: geode.experiment/2", "newer GEODE, so use that"),
        ("baseline: ", "baseline: no-such-", "is none of the variants"),
        ("name: ", "name: [", "while parsing"),
    ],
)
def test_a_damaged_experiment_is_named_with_what_is_wrong(
    filled: EpisodeStore, old: str, new: str, problem: str
) -> None:
    """`1 validation error` tells nobody what to repair."""
    path = filled.root.experiment("ablation") / "experiment.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RecordDamaged, match=problem):
        read_experiment(filled.root, "ablation")


def test_an_unknown_experiment_is_refused_with_the_nearest(filled: EpisodeStore) -> None:
    """The name is typed by hand."""
    with pytest.raises(UnknownExperiment, match="did you mean 'ablation'"):
        read_experiment(filled.root, "abaltion")


@pytest.mark.parametrize("text", ["", "name: [", "schema: geode.experiment/9\n", "[1, 2]", "a: &a [*a]"])
def test_a_damaged_experiment_is_named(filled: EpisodeStore, text: str) -> None:
    """Its episodes are safe, and the message says so."""
    (filled.root.experiment("ablation") / "experiment.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RecordDamaged, match="its episodes are safe"):
        read_experiment(filled.root, "ablation")


def test_episodes_are_found_by_the_beginning_of_their_key(filled: EpisodeStore) -> None:
    """Nobody types 64 digits."""
    key = keys_of(filled)[0]
    for digits in (1, 2, 3, 12, 64):
        assert filled.root.episode(key) in find_episodes(filled.root, key[:digits])
    assert find_episodes(filled.root, key[:12]) == (filled.root.episode(key),)
    assert find_episodes(filled.root, "") == find_episodes(filled.root, "../..") == ()


def test_an_experiment_is_read_and_written_back_by_one_process_at_a_time(store: EpisodeStore) -> None:
    """Else one of two sweeps that add a variant would lose its own. Who cannot get it is told what to look at."""
    with (
        filelock.FileLock(store.root.experiments_lock),  # as another process would hold it
        pytest.raises(RootInUse, match=r"has held .*experiments\.lock for 0\.1 s"),
        locked_experiments(store.root, wait_s=0.1),
    ):
        pass
    with locked_experiments(store.root):
        pass


def test_workspaces_of_dead_processes_are_removed_and_no_others(store: EpisodeStore) -> None:
    """A workspace is a copy; what it was is in the folder of its episode. While that runs, it is in use."""
    names = [f"{digit * 16}-01JZ" for digit in "abc"]
    for name in (*names, "of-somebody-else"):
        (store.root.workspaces / name / "deep").mkdir(parents=True)
    claims = Claims(store.root)

    def left() -> list[str]:
        return sorted(path.name for path in store.root.workspaces.iterdir())

    with Claimer(store.root.path) as another:
        assert another.take(episode_name("a" * 64))
        clear_workspaces(store.root, "c" * 64)
        assert left() == [*names[:2], "of-somebody-else"]
        clean_workspaces(store.root, claims)
        assert left() == [names[0], "of-somebody-else"]
    clean_workspaces(store.root, claims)
    assert left() == ["of-somebody-else"]
