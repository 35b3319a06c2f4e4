"""Rebuilds what is derived, the warehouse and the tracking store, from the episode folders, which are the truth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points

from analysis.warehouse import DuckDBSink, Warehouse
from experiments.catalogue import SINKS_GROUP
from experiments.comparison import ComparisonSink, comparison_table
from experiments.sink_turns import SinkTurns
from experiments.sinks import Cell, CellSink
from experiments.store import StoreError, list_experiments, load_cell, read_experiment
from geode.config.settings import Settings

SinkFactory = Callable[[Settings], CellSink]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild wrote, and what it could not; each problem is a sentence."""

    experiments: tuple[str, ...]
    cells: int
    episodes: int
    sinks: tuple[str, ...]
    problems: tuple[str, ...]


def installed_sinks() -> dict[str, SinkFactory]:
    """Return what opens each sink that is installed, by name."""
    return {point.name: point.load() for point in sorted(entry_points(group=SINKS_GROUP))}


def rebuild(settings: Settings, factories: Mapping[str, SinkFactory]) -> Rebuilt:
    """Write every cell on record to each sink, after taking what came from experiments out of the warehouse.

    A cell that cannot be read and a sink that cannot be opened or written keep no other from it.

    Raises:
        WarehouseError: if the warehouse cannot be cleared.
        SinksBusy: if another process writes to the sinks and does not let go.
    """
    with SinkTurns(settings.root).turn():
        return _rebuild(settings, factories)


def _rebuild(settings: Settings, factories: Mapping[str, SinkFactory]) -> Rebuilt:
    DuckDBSink(Warehouse(path=settings.root.warehouse)).clear()
    done: list[str] = []
    problems: list[str] = []
    sinks = _open(settings, factories, problems)
    cells = episodes = 0
    for name in list_experiments(settings.root):
        loaded, whole = _load(settings, name, problems)
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
        if whole:
            done.append(name)
            problems += _compared(name, loaded, sinks)
    for sink in sinks.values():
        sink.close()
    return Rebuilt(
        experiments=tuple(done), cells=cells, episodes=episodes, sinks=tuple(sinks), problems=tuple(problems)
    )


def _open(settings: Settings, factories: Mapping[str, SinkFactory], problems: list[str]) -> dict[str, CellSink]:
    sinks = {}
    for name, factory in factories.items():
        try:
            sinks[name] = factory(settings)
        except Exception as error:  # noqa: BLE001  (a sink may be anybody's, as below)
            problems.append(f"{name} does not open: {type(error).__name__}: {error}")
    return sinks


def _load(settings: Settings, name: str, problems: list[str]) -> tuple[list[Cell], bool]:
    """Return the cells that can be read, and whether they are all cells of the experiment."""
    try:
        experiment = read_experiment(settings.root, name)
    except (StoreError, OSError) as error:
        problems.append(str(error))
        return [], False
    cells = []
    for variant in experiment.variants:
        try:
            cells.append(load_cell(settings.root, experiment, variant))
        except (StoreError, OSError) as error:
            problems.append(f"{name}/{variant.name}: {error}")
    return cells, len(cells) == len(experiment.variants)


def _compared(name: str, cells: Sequence[Cell], sinks: Mapping[str, CellSink]) -> list[str]:
    problems = []
    for sink_name, sink in sinks.items():
        if isinstance(sink, ComparisonSink):
            try:
                sink.write_comparison(comparison_table(cells))
            except Exception as error:  # noqa: BLE001  (as above)
                problems.append(f"{sink_name} has not the verdicts of {name}: {type(error).__name__}: {error}")
    return problems
