"""Makes one planned, interleaved experiment of a multirun. Hydra knows it as `hydra/sweeper: geode`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from experiments.job import Job
from experiments.spec import ConfigError, compose_variants


@dataclass
class GeodeSweeperConf:
    """What `hydra.sweeper` holds. `params` are sweeps that a preset brings along, as for Hydra's own sweeper."""

    _target_: str = "hydra_plugins.geode_sweeper.GeodeSweeper"
    params: dict[str, str] = field(default_factory=dict)


ConfigStore.instance().store(group="hydra/sweeper", name="geode", node=GeodeSweeperConf, provider="geode")


class GeodeSweeper(Sweeper):
    """Composes and validates every variant, then runs all of them as one experiment."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self._params = params
        self._job: Job | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """See `Sweeper`."""
        if not isinstance(task_function, Job):
            raise ConfigError("hydra/sweeper=geode runs GEODE experiments only; start it with `geode sweep`")
        self.hydra_context, self.config, self._job = hydra_context, config, task_function

    def sweep(self, arguments: list[str]) -> None:
        """Run the experiment; the exit code leaves as `SystemExit`, because `hydra.main` returns nothing."""
        assert self.hydra_context is not None
        assert self.config is not None
        assert self._job is not None
        loader = self.hydra_context.config_loader
        code = self._job.run_variants(compose_variants(loader, self.config, arguments, self._params))
        if code:
            raise SystemExit(code)
