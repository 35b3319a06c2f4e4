"""All that the records of a session tell of it, read without changing them. What cannot be read is named in its place.

A session that runs is closed to others: its timeline and its status are what there is to read of it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import JsonValue

from geode.clock import Clock
from geode.records.checkpoint import PlacedMessage, SessionCheckpoint
from geode.records.copies import copied
from geode.records.database import RecordError, RecordLocked
from geode.records.folder import SessionFolder
from geode.records.receipts import EffectReceipt, EffectReceiptStore, ReceiptState
from geode.records.story import TurnTold, Used, tell, used
from geode.records.timeline import TimelineNewer, read_timeline


class Standing(StrEnum):
    """Where a session stands, whatever its status file says of the time before."""

    RUNNING = "running"
    UNFINISHED = "unfinished"
    ENDED = "ended"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """What is known of one session. A text that is empty and a figure that is None are not on record.

    `pid` is the process that last wrote the status; `owner_lives` says whether there is such a process. `in_use` says
    whether one holds the databases, which is what counts. `used` leaves out what sub-agents used: each has a report.
    """

    name: str
    mode: str
    model: str
    scaffold_id: str
    status: str
    updated_at: str
    path: tuple[str, ...]
    pid: int | None
    owner_lives: bool
    in_use: bool
    standing: Standing
    turns: tuple[TurnTold, ...]
    used: Used
    simulated: bool
    uncertain: tuple[EffectReceipt, ...]
    children: tuple["SessionReport", ...]
    problems: tuple[str, ...]


class NothingOnRecord(LookupError):  # noqa: N818  (named by what is missing)
    """The folder holds no record of a session that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stores:
    messages: tuple[PlacedMessage, ...] = ()
    in_turn: bool | None = None
    receipts: tuple[EffectReceipt, ...] = ()
    in_use: bool = False


def read_report(folder: SessionFolder, clock: Clock) -> SessionReport:
    """Read the session in `folder`, and those of its sub-agents.

    Raises:
        NothingOnRecord: if there is nothing to tell, with the reasons.
    """
    problems: list[str] = []
    state = _state(folder, problems)
    events = _events(folder.timeline, problems)
    stores = _stores(folder, state.get("session_id"), clock, problems)
    if not (state or events or stores.messages or stores.receipts or stores.in_use):
        raise NothingOnRecord("; ".join(problems) or f"{folder.path} is empty")
    turns = tell(events, stores.messages, stores.receipts)
    pid, path = state.get("pid"), state.get("path")
    return SessionReport(
        name=folder.path.name,
        mode=str(state.get("mode", "")),
        model=str(state.get("model", "")),
        scaffold_id=str(state.get("scaffold_id", "")),
        status=str(state.get("status", "")),
        updated_at=str(state.get("updated_at", "")),
        path=tuple(str(part) for part in path) if isinstance(path, list) else (),
        pid=pid if isinstance(pid, int) else None,
        owner_lives=isinstance(pid, int) and _lives(pid),
        in_use=stores.in_use,
        standing=_standing(stores, turns),
        turns=turns,
        used=used(turns),
        simulated=any(told.simulated for turn in turns for told in turn.rounds),
        uncertain=tuple(receipt for receipt in stores.receipts if receipt.state is ReceiptState.UNCERTAIN),
        children=_children(folder, clock, problems),
        problems=tuple(problems),
    )


def _state(folder: SessionFolder, problems: list[str]) -> Mapping[str, JsonValue]:
    try:
        return folder.read_state()
    except FileNotFoundError:
        problems.append(f"{folder.state} is gone: what the session is cannot be told")
    except ValueError as error:
        problems.append(str(error))
    return {}


def _events(timeline: Path, problems: list[str]) -> Sequence[Mapping[str, JsonValue]]:
    if not timeline.is_file():
        problems.append(f"{timeline} is gone: stages, reasons and usage cannot be told")
        return ()
    try:
        events = list(read_timeline(timeline))
    except TimelineNewer as error:
        problems.append(str(error))
        return ()
    problems += [str(event["text"]) for event in events if event.get("seq") is None and "text" in event]
    return events


def _stores(folder: SessionFolder, session_id: JsonValue, clock: Clock, problems: list[str]) -> _Stores:
    messages: tuple[PlacedMessage, ...] = ()
    receipts: tuple[EffectReceipt, ...] = ()
    in_turn: bool | None = None
    try:
        with copied(folder.checkpoint) as copy:
            checkpoint = SessionCheckpoint.open(copy, session_id if isinstance(session_id, str) else None)
            try:
                in_turn, messages = checkpoint.load().progress.in_turn, checkpoint.placed_messages()
            finally:
                checkpoint.close()
    except RecordLocked:
        return _Stores(in_use=True)
    except RecordError as error:
        problems.append(str(error))
    try:
        with copied(folder.receipts) as copy:
            # In the copy, what a dead process left open gets the end that it will get.
            store = EffectReceiptStore.open(copy, clock)
            try:
                receipts = tuple(store.all())
            finally:
                store.close()
    except RecordLocked:
        return _Stores(in_use=True)
    except RecordError as error:
        problems.append(str(error))
    return _Stores(messages=messages, in_turn=in_turn, receipts=receipts)


def _standing(stores: _Stores, turns: Sequence[TurnTold]) -> Standing:
    if stores.in_use:
        return Standing.RUNNING
    if stores.in_turn is None:
        return Standing.UNREADABLE
    # A prompt that was told and not stored did not begin: there is nothing to go on with.
    return Standing.UNFINISHED if stores.in_turn else Standing.ENDED


def _children(folder: SessionFolder, clock: Clock, problems: list[str]) -> tuple[SessionReport, ...]:
    reports = []
    for child in sorted(folder.children.iterdir()) if folder.children.is_dir() else ():
        try:
            reports.append(read_report(SessionFolder(child), clock))
        except NothingOnRecord as reason:
            problems.append(f"sub-agent {child.name}: {reason}")
    return tuple(reports)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # somebody else's
    except (ProcessLookupError, OverflowError):
        return False
    return True
