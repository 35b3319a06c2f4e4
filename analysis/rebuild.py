"""Rebuilds what is derived, the warehouse and the tracking store, from the episode folders, which are the truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from analysis.warehouse import DuckDBSink, Warehouse
from experiments.catalogue import SINKS_GROUP
from experiments.gate import comparison_rows
from experiments.sinks import Cell, CellSink, ComparisonSink
from experiments.store import StoreError, list_experiments, load_cells
from geode.config.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild wrote, and what it could not; each problem is a sentence."""

    experiments: tuple[str, ...]
    cells: int
    episodes: int
    sinks: tuple[str, ...]
    problems: tuple[str, ...]


def installed_sinks(settings: Settings) -> dict[str, CellSink]:
    """Open every sink that is installed."""
    return {point.name: point.load()(settings) for point in sorted(entry_points(group=SINKS_GROUP))}


def rebuild(settings: Settings, sinks: Mapping[str, CellSink]) -> Rebuilt:
    """Write every cell on record to each of `sinks`, after taking what came from experiments out of the warehouse.

    One that cannot be read or written does not keep the others from it.

    Raises:
        WarehouseError: if the warehouse cannot be cleared.
    """
    DuckDBSink(Warehouse(path=settings.root.warehouse)).clear()
    done: list[str] = []
    problems: list[str] = []
    cells = episodes = 0
    for name in list_experiments(settings.root):
        try:
            loaded = load_cells(settings.root, name)
        except StoreError as error:
            problems.append(str(error))
            continue
        done.append(name)
        for cell in loaded:
            cells += 1
            episodes += len(cell.episodes)
            for sink_name, sink in sinks.items():
                try:
                    sink.write(cell)
                # A sink may be anybody's and may raise anything (`CellSink`): the other sinks are still written, and
                # what went wrong is shown and ends in the exit code.
                except Exception as error:  # noqa: BLE001
                    problems.append(f"{sink_name} has not {name}/{cell.variant.name}: {type(error).__name__}: {error}")
        problems += _compared(name, loaded, sinks)
    for sink in sinks.values():
        sink.close()
    return Rebuilt(
        experiments=tuple(done), cells=cells, episodes=episodes, sinks=tuple(sinks), problems=tuple(problems)
    )


def _compared(name: str, cells: Sequence[Cell], sinks: Mapping[str, CellSink]) -> list[str]:
    problems = []
    for sink_name, sink in sinks.items():
        if isinstance(sink, ComparisonSink):
            try:
                sink.write_comparison(cells[0].experiment, comparison_rows(cells))
            except Exception as error:  # noqa: BLE001  (as above)
                problems.append(f"{sink_name} has not the verdicts of {name}: {type(error).__name__}: {error}")
    return problems
