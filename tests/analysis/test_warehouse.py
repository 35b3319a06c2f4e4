"""The warehouse: derived rows that may be written twice, rebuilt, waited for, and never half-written."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import pytest

from analysis.warehouse import (
    DuckDBSink,
    QueryRefused,
    Warehouse,
    WarehouseBusy,
    WarehouseError,
    WarehouseMissing,
    WarehouseUnreadable,
    create_sink,
)
from experiments.sinks import Cell
from experiments.suite import OutcomeKind
from geode.config.settings import read_settings
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment

TABLES = ("runs", "cells", "episodes", "rounds", "attempts", "tool_calls", "costs", "import_issues")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(path=tmp_path / "state" / "geode.duckdb", read_wait_s=0.2, write_wait_s=0.2)


@pytest.fixture
def maker(tmp_path: Path) -> EpisodeMaker:
    return EpisodeMaker(tmp_path / "episodes", rounds=3)


def rows(warehouse: Warehouse, sql: str) -> list[tuple[object, ...]]:
    with warehouse.read() as reading:
        return list(reading.query(sql).rows)


def content(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    with warehouse.read() as reading:
        return {table: list(reading.query(f"SELECT * FROM {table} ORDER BY ALL").rows) for table in TABLES}


def test_a_cell_becomes_rows_of_every_table(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """What a query sees must be what the folders hold: three rounds and two calls an episode."""
    DuckDBSink(warehouse).write(maker.cell(make_experiment(repeats=2), "protect_tests"))
    assert {table: len(found) for table, found in content(warehouse).items()} == {
        "runs": 1,
        "cells": 1,
        "episodes": 4,
        "rounds": 12,
        "attempts": 0,
        "tool_calls": 8,
        "costs": 4,
        "import_issues": 0,
    }
    call = rows(
        warehouse, "SELECT turn, round, tool, call_end, is_error, stage, result FROM tool_calls WHERE round = 2"
    )
    assert call[0] == (1, 2, "shell", "not_started", True, "pre_hook", "Blocked: tests are not edited.")
    assert rows(warehouse, "SELECT DISTINCT source, run, cell FROM episodes") == [
        ("geode", "hook_ablation", "protect_tests")
    ]
    assert rows(warehouse, "SELECT created_at FROM runs")[0][0] == datetime(2030, 1, 1, tzinfo=UTC)


def test_what_a_provider_says_of_a_call_is_in_its_row(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Which upstream answered, how the call is named there, where its cost comes from; older timelines have none."""
    experiment = make_experiment(repeats=1)
    cell = maker.cell(experiment, "protect_tests")
    with (cell.episodes[0].folder / "timeline.jsonl").open("a", encoding="utf-8") as timeline:
        place = {"at": "2030-01-01T00:00:01.000Z", "turn": 1, "round": 9}
        answered = {"stop": "end_turn", "served_model": "m", "simulated": False, "latency_ms": 5, "text": ""}
        tokens = dict.fromkeys(("uncached_input_tokens", "cache_write_tokens", "cache_read_tokens"))
        said = {"output_tokens": 7, "reasoning_tokens": 3, "cost_usd": None, "cost_origin": "unknown"}
        who = {"provider": "Vertex", "request_id": "gen-1"}
        failed = {"error": "RateLimited", "status": 429, "request_id": "", "elapsed_ms": 4, "waited_ms": 900}
        for line in (
            {"seq": 90, "kind": "model_called", **place, **answered, **tokens, **said, **who},
            {"seq": 91, "kind": "attempt_failed", **place, **failed, "cost_usd": 0.0},
        ):
            timeline.write(json.dumps(line) + "\n")
    DuckDBSink(warehouse).write(cell)
    columns = "reasoning_tokens, cost_origin, provider, request_id, cost_usd"
    assert rows(warehouse, f"SELECT {columns} FROM rounds WHERE seq = 90") == [(3, "unknown", "Vertex", "gen-1", None)]
    assert rows(warehouse, f"SELECT DISTINCT {columns} FROM rounds WHERE seq < 90")[0][2:4] == (None, None)
    told = "SELECT error, status, request_id, elapsed_ms, waited_ms, cost_usd FROM attempts"
    assert rows(warehouse, told) == [("RateLimited", 429, None, 4, 900, 0.0)]
    assert rows(warehouse, "SELECT count(*) FROM import_issues") == [(0,)]


def test_an_episode_of_unknown_cost_has_none(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """A sum over it would be too small, and says so beside it."""
    cell = maker.cell(make_experiment(repeats=1), "protect_tests")
    record = cell.episodes[0].record
    usage = {"target": record.usage["target"].model_copy(update={"unpriced_calls": 2})}
    changed = replace(cell.episodes[0], record=record.model_copy(update={"usage": usage}))
    DuckDBSink(warehouse).write(replace(cell, episodes=(changed, *cell.episodes[1:])))
    assert rows(warehouse, "SELECT unpriced_calls FROM costs ORDER BY 1") == [(0,), (2,)]
    assert rows(warehouse, "SELECT episodes, unpriced_episodes FROM cell_totals") == [(2, 1)]


def test_writing_a_cell_twice_is_writing_it_once(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """A resumed sweep writes its cells again; nothing may be counted twice."""
    sink, cell = DuckDBSink(warehouse), maker.cell(make_experiment(repeats=2), "baseline")
    sink.write(cell)
    once = content(warehouse)
    sink.write(cell)
    assert content(warehouse) == once


def test_a_grown_cell_replaces_the_smaller_one(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Raising the repeats grows the same cell; the finished half keeps its one row an episode."""
    sink = DuckDBSink(warehouse)
    sink.write(maker.cell(make_experiment(repeats=1), "baseline"))
    sink.write(maker.cell(make_experiment(repeats=3), "baseline"))
    assert rows(warehouse, "SELECT count(*), count(DISTINCT episode_key) FROM episodes") == [(6, 6)]
    assert rows(warehouse, "SELECT repeats FROM runs") == [(3,)]


def test_an_episode_that_left_every_cell_leaves_no_rows(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """One that was set aside must not go on counting in sums over rounds and costs."""
    sink, cell = DuckDBSink(warehouse), maker.cell(make_experiment(), "baseline")
    sink.write(cell)
    sink.write(Cell(experiment=cell.experiment, variant=cell.variant, episodes=cell.episodes[:1]))
    counts = {table: len(found) for table, found in content(warehouse).items()}
    assert [counts[table] for table in ("episodes", "rounds", "tool_calls", "costs")] == [1, 3, 2, 1]


def test_an_episode_that_two_experiments_share_has_its_rounds_once(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Episodes are the unit of reuse; sums over rounds must not grow with the number of experiments that show one."""
    sink = DuckDBSink(warehouse)
    for name in ("first", "second"):
        sink.write(maker.cell(make_experiment(name=name), "baseline"))
    assert rows(warehouse, "SELECT count(*) FROM episodes") == [(4,)]
    assert rows(warehouse, "SELECT count(*) FROM rounds") == [(6,)]


def test_a_torn_last_line_is_reported_and_skipped(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """A run that was killed leaves half a line; the rest of the timeline still counts."""
    cell = maker.cell(make_experiment(tasks=1), "baseline")
    timeline = cell.episodes[0].folder / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes()[:-40])
    DuckDBSink(warehouse).write(cell)
    key = cell.episodes[0].record.episode_key
    assert rows(warehouse, "SELECT kind, episode_key, cell, text FROM import_issues") == [
        ("timeline_line_skipped", key, "baseline", "timeline.jsonl line 11 is cut off and was skipped")
    ]
    assert rows(warehouse, "SELECT count(*) FROM rounds") == [(3,)]


def test_a_word_in_place_of_a_number_is_reported_and_never_converted(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Types are fixed in advance: one "n/a" may neither become NULL nor turn a column into text."""
    cell = maker.cell(make_experiment(tasks=1), "baseline")
    timeline = cell.episodes[0].folder / "timeline.jsonl"
    timeline.write_text(timeline.read_text().replace('"latency_ms":900', '"latency_ms":"n/a"', 1))
    DuckDBSink(warehouse).write(cell)
    assert rows(warehouse, "SELECT text FROM import_issues") == [
        ("event 3 was skipped: latency_ms is 'n/a', not an integer",)
    ]
    assert rows(warehouse, "SELECT count(*), sum(latency_ms) FROM rounds") == [(2, 1800)]


def test_an_episode_without_a_timeline_is_kept_and_said_so(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Its outcome is still a measurement."""
    cell = maker.cell(make_experiment(tasks=1), "baseline")
    (cell.episodes[0].folder / "timeline.jsonl").unlink()
    DuckDBSink(warehouse).write(cell)
    assert rows(warehouse, "SELECT kind FROM import_issues") == [("timeline_missing",)]
    assert rows(warehouse, "SELECT count(*) FROM episodes") == [(1,)]


def test_invalid_is_counted_and_is_no_part_of_the_rate(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """An infrastructure failure is neither a zero nor dropped."""
    experiment = make_experiment()
    variant = experiment.variant("baseline")
    kinds = (OutcomeKind.PASS, OutcomeKind.INVALID)
    episodes = [
        maker.episode(experiment, variant, task, seed=seed, repetition=repetition, kind=kind)
        for (task, seed, repetition, _), kind in zip(experiment.episode_keys(variant), kinds, strict=True)
    ]
    DuckDBSink(warehouse).write(Cell(experiment=experiment, variant=variant, episodes=episodes))
    totals = rows(warehouse, "SELECT episodes, passes, fails, invalid, pass_rate FROM cell_totals")
    assert totals == [(2, 1, 0, 1, 1.0)]
    assert rows(warehouse, "SELECT score FROM episodes WHERE outcome = 'INVALID'") == [(None,)]


def test_nothing_of_a_broken_transaction_stays(warehouse: Warehouse) -> None:
    """Half an import would look like a whole one."""
    good = ("x", "run", "cell", None, None, None, [])

    def write(*cells: tuple[object, ...], then: type[Exception] | None = None) -> None:
        with warehouse.write() as writing:
            writing.insert("import_issues", [("x", "", "", "", "kind", "place", "text")])
            writing.insert("cells", cells)
            if then is not None:
                raise then

    with pytest.raises(ZeroDivisionError):
        write(good, then=ZeroDivisionError)
    with pytest.raises(WarehouseError, match=r"nothing was written .*table cells"):
        write(good, (None, *good[1:]))
    with warehouse.write():
        pass
    assert rows(warehouse, "SELECT (SELECT count(*) FROM cells), (SELECT count(*) FROM import_issues)") == [(0, 0)]


@pytest.mark.slow
def test_many_writers_and_a_reader_lose_no_row(warehouse: Warehouse) -> None:
    """Sweeps of several processes end at the same time; each acknowledged row is there, and once."""
    code = """
        import sys
        from pathlib import Path
        from analysis.warehouse import Warehouse
        for number in range(3):
            with Warehouse(path=Path(sys.argv[1])).write() as writing:
                writing.insert("import_issues", [(sys.argv[2], "", "", "", "kind", "place", str(number))])
    """
    with warehouse.write():
        pass
    writers = [
        subprocess.Popen([sys.executable, "-c", dedent(code), str(warehouse.path), str(name)]) for name in range(3)
    ]
    patient = Warehouse(path=warehouse.path, read_wait_s=30)
    while any(writer.poll() is None for writer in writers):
        rows(patient, "SELECT count(*) FROM import_issues")
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert rows(patient, "SELECT count(*), count(DISTINCT (source, text)) FROM import_issues") == [(9, 9)]


@contextmanager
def another_process(warehouse: Warehouse, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    """Hold the warehouse open for `kind` (read or write) in another process."""
    code = f"""
        import sys
        from pathlib import Path
        from analysis.warehouse import Warehouse
        with Warehouse(path=Path(sys.argv[1])).{kind}() as held:
            print("open", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(code), str(warehouse.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_waiting_is_bounded_and_names_the_holder(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """Who waits for ever, or reads "lock", cannot help himself; who is killed must not keep the others out."""
    DuckDBSink(warehouse).write(maker.cell(make_experiment(), "baseline"))
    with another_process(warehouse, "write") as writer:
        with pytest.raises(WarehouseBusy, match=rf"PID {writer.pid}\) for 0.2 s"), warehouse.read():
            pass
        with pytest.raises(WarehouseBusy, match=rf"writer with PID {writer.pid} for 0.2 s"), warehouse.write():
            pass
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert rows(warehouse, "SELECT count(*) FROM episodes") == [(2,)]
    with warehouse.write():
        pass


@pytest.mark.slow
def test_readers_do_not_keep_each_other_out(warehouse: Warehouse) -> None:
    """Two people may look at the same time; only a writer has to wait for them."""
    with warehouse.write():
        pass
    with another_process(warehouse, "read") as reader:
        assert rows(warehouse, "SELECT count(*) FROM runs") == [(0,)]
        with pytest.raises(WarehouseBusy, match=rf"PID {reader.pid}\)"), warehouse.write():
            pass


def test_a_reader_cannot_write_reach_files_or_change_its_limits(warehouse: Warehouse, tmp_path: Path) -> None:
    """`geode query` takes SQL from anybody: it may read the warehouse, and nothing else."""
    with warehouse.write():
        pass
    target = tmp_path / "out.csv"
    for sql in (
        "DELETE FROM runs",
        "CREATE TABLE x (a INTEGER)",
        f"COPY (SELECT 1) TO '{target}'",
        "SELECT * FROM read_csv('/etc/passwd')",
        f"ATTACH '{tmp_path / 'other.duckdb'}'",
        "SET enable_external_access = true",
        "INSTALL fts",
    ):
        with pytest.raises(QueryRefused), warehouse.read() as reading:
            reading.query(sql)
    assert not target.exists()


def test_a_file_that_is_missing_strange_or_newer_says_what_to_do(warehouse: Warehouse, tmp_path: Path) -> None:
    """Each of the three has another remedy."""
    with pytest.raises(WarehouseMissing, match="geode archive rebuild"), warehouse.read():
        pass
    with warehouse.write():
        pass
    views = rows(warehouse, "SELECT views FROM warehouse_state")[0][0]
    with warehouse.write() as writing:
        writing.delete("warehouse_state", views=[str(views)])
        writing.insert("warehouse_state", [(99, "views of the future")])
    with pytest.raises(WarehouseUnreadable, match="schema 99"), warehouse.read():
        pass
    with pytest.raises(WarehouseUnreadable, match="schema 99"), warehouse.write():
        pass
    strange = tmp_path / "strange.duckdb"
    strange.write_text("not a database" * 500)
    with pytest.raises(WarehouseUnreadable, match="archive rebuild"), Warehouse(path=strange).read():
        pass


def test_what_a_full_disk_left_of_a_new_file_is_no_obstacle(warehouse: Warehouse) -> None:
    """DuckDB refuses an empty file; deleting it by hand would be a chore after every full disk."""
    warehouse.path.parent.mkdir()
    warehouse.path.touch()
    with warehouse.write():
        pass
    assert rows(warehouse, "SELECT count(*) FROM runs") == [(0,)]


def test_a_damaged_block_says_how_the_warehouse_is_made_anew(warehouse: Warehouse, maker: EpisodeMaker) -> None:
    """A checksum tells nobody that all of it can be rebuilt."""
    sink = DuckDBSink(warehouse)
    sink.write(maker.cell(make_experiment(), "baseline"))
    whole = warehouse.path.read_bytes()
    warehouse.path.write_bytes(whole[: len(whole) // 4] + bytes(len(whole) // 2) + whole[-(len(whole) // 4) :])
    with pytest.raises(WarehouseError, match="geode archive rebuild"):
        sink.write(maker.cell(make_experiment(), "baseline"))
    with pytest.raises(WarehouseUnreadable, match=r"geode\.duckdb is damaged.*geode archive rebuild"):
        rows(warehouse, "SELECT * FROM episodes")


@pytest.mark.slow
def test_an_interrupt_ends_a_query_that_would_take_hours(warehouse: Warehouse) -> None:
    """DuckDB itself goes on until it is killed."""
    with warehouse.write():
        pass
    with warehouse.read() as reading:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            reading.query("SELECT sum(a.range) FROM range(1000000000) a, range(100000) b")


def test_the_factory_opens_the_warehouse_under_the_state_root(tmp_path: Path, maker: EpisodeMaker) -> None:
    """The entry point `geode.sinks` gets settings and nothing else."""
    settings = read_settings(tmp_path / "root", {})
    sink = create_sink(settings)
    sink.write(maker.cell(make_experiment(), "baseline"))
    sink.close()
    assert rows(Warehouse(path=settings.root.warehouse), "SELECT count(*) FROM episodes") == [(2,)]
