"""One episode or session as a person asks for it: found by a short key or a path, read as far as it can be read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue

from experiments.episode import EpisodeRecord
from experiments.plan import EpisodeSpec
from experiments.store import (
    EPISODE_FILE,
    SPEC_FILE,
    RecordDamaged,
    find_episodes,
    list_experiments,
    look_at,
    read_experiment,
)
from geode.config.paths import StateRoot
from geode.records.folder import SessionFolder
from geode.records.timeline import read_timeline

SHOWN_SCHEMA = "geode.shown/1"
PREFIX_DIGITS_MIN = 6
_CANDIDATES_SHOWN = 10


class EpisodeNotFound(LookupError):  # noqa: N818  (named by what happened)
    """Nothing, or more than one thing, answers to what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """What is known of one episode. An unfinished or damaged one has no `record`; a session has no `spec` either.

    `used_by` are the variants, as `experiment/variant`, whose plan holds the episode. `problems` are what a reader must
    know about the record itself.
    """

    folder: Path
    record: EpisodeRecord | None
    spec: EpisodeSpec | None
    used_by: tuple[str, ...]
    events: tuple[dict[str, JsonValue], ...]
    problems: tuple[str, ...]
    damaged: bool


def find_folder(root: StateRoot, wanted: str) -> Path:
    """Return the folder of the episode whose key begins with `wanted`, or the folder at the path `wanted`.

    Raises:
        EpisodeNotFound: if there is none, or more than one.
    """
    path = Path(wanted).expanduser()
    if path.is_dir():
        return path.resolve()
    if path.is_file():
        return path.resolve().parent
    prefix = wanted.lower().rstrip("…")
    if not prefix or not set(prefix) <= set("0123456789abcdef"):
        raise EpisodeNotFound(f"{wanted!r} is no episode key and no folder; geode ls EXPERIMENT VARIANT names the keys")
    if len(prefix) < PREFIX_DIGITS_MIN:
        raise EpisodeNotFound(f"{wanted!r} is too short: give at least {PREFIX_DIGITS_MIN} digits of the episode key")
    found = find_episodes(root, prefix)
    if not found:
        raise EpisodeNotFound(f"no episode under {root.path} begins with {wanted!r}; geode ls names what there is")
    if len(found) > 1:
        lines = [f"  {folder.name[:20]}  {_in_a_word(folder)}" for folder in found[:_CANDIDATES_SHOWN]]
        more = [f"  and {len(found) - len(lines)} more"] if len(found) > len(lines) else []
        raise EpisodeNotFound(
            "\n".join([f"{len(found)} episodes begin with {wanted!r}; give more digits:", *lines, *more])
        )
    return found[0]


def _in_a_word(folder: Path) -> str:
    state = look_at(folder)
    return f"{state.record.task_id}  {state.record.outcome.kind}" if state.record else state.kind


def view_folder(root: StateRoot, folder: Path) -> EpisodeView:
    """Read what is in `folder`. What is damaged is named in `problems`; the rest is shown.

    Raises:
        EpisodeNotFound: if the folder has no timeline and no record: it is no episode or session.
        geode.records.timeline.TimelineNewer: if a newer version wrote the timeline.
    """
    timeline = SessionFolder(folder).timeline
    if not timeline.exists() and not (folder / EPISODE_FILE).exists():
        raise EpisodeNotFound(
            f"{folder} has neither {timeline.name} nor {EPISODE_FILE}: nothing happened in it yet;"
            " geode ls EXPERIMENT VARIANT names the episodes"
        )
    problems: list[str] = []
    record = _read_record(folder, problems)
    spec = _read_spec(folder, problems)
    damaged = bool(problems)
    events = tuple(read_timeline(timeline)) if timeline.exists() else ()
    if not timeline.exists():
        damaged = True
        problems.append(f"{timeline} is gone: what happened is not on record any more, the outcome is")
    elif record is not None and record.rounds and not events:
        damaged = True
        problems.append(f"{timeline} holds no event: what happened is not on record any more, the outcome is")
    problems += [str(event["text"]) for event in events if _tells_of_a_lost_line(event)]
    problems += _gaps(events)
    if record is None and not damaged and spec is not None:
        problems.append(f"unfinished: there is no {EPISODE_FILE}; the next sweep sets it aside and runs it afresh")
    episode = record or spec
    used_by = tuple(_users(root, episode, problems)) if episode else ()
    return EpisodeView(
        folder=folder,
        record=record,
        spec=spec,
        used_by=used_by,
        events=tuple(event for event in events if not _tells_of_a_lost_line(event)),
        problems=tuple(problems),
        damaged=damaged,
    )


def view_to_json(view: EpisodeView) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {
        "schema": SHOWN_SCHEMA,
        "folder": str(view.folder),
        "record": view.record.model_dump(mode="json", by_alias=True) if view.record else None,
        "spec": view.spec.model_dump(mode="json", by_alias=True) if view.spec else None,
        "used_by": view.used_by,
        "events": view.events,
        "problems": view.problems,
    }


def _read_record(folder: Path, problems: list[str]) -> EpisodeRecord | None:
    state = look_at(folder)
    if state.kind == "damaged":
        problems.append(
            f"{folder / EPISODE_FILE} is damaged: {state.problem}; restore it from a copy, or run its experiment again"
            " with damaged=set_aside"
        )
    return state.record


def _read_spec(folder: Path, problems: list[str]) -> EpisodeSpec | None:
    path = folder / SPEC_FILE
    if not path.exists():
        return None
    try:
        # The JSON text in between: pydantic takes lists for tuples only from JSON.
        body = json.dumps(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
        return EpisodeSpec.model_validate_json(body)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        problems.append(f"{path} cannot be read ({str(error).splitlines()[0]}): which hooks it ran with is not shown")
        return None


def _tells_of_a_lost_line(event: dict[str, JsonValue]) -> bool:
    return event.get("seq", 0) is None and "text" in event


def _gaps(events: tuple[dict[str, JsonValue], ...]) -> Iterator[str]:
    expected = 1
    for event in events:
        if not isinstance(seq := event.get("seq"), int):
            continue
        if seq != expected:
            yield f"the timeline goes from event {expected - 1} to {seq}: what was between is not on record"
        expected = seq + 1


def _users(root: StateRoot, episode: EpisodeRecord | EpisodeSpec, problems: list[str]) -> Iterator[str]:
    """Yield the variants whose plan holds the episode, without hashing every plan."""
    caps = episode.caps_hash if isinstance(episode, EpisodeRecord) else episode.caps.caps_hash
    for name in list_experiments(root):
        try:
            experiment = read_experiment(root, name)
        except RecordDamaged as damage:
            problems.append(str(damage))
            continue
        ruler = experiment.ruler
        planned = (
            episode.task_hash in {task.task_hash for task in ruler.tasks}
            and episode.seed in ruler.seeds
            and episode.repetition < experiment.repeats
            and caps == ruler.caps.caps_hash
        )
        for variant in experiment.variants if planned else ():
            if (variant.scaffold_id, variant.roles) == (episode.scaffold_id, episode.roles):
                yield f"{name}/{variant.name}"
