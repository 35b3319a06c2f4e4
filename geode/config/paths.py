"""The state root, and where everything lies under it. The only module that joins these paths."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StateRoot:
    """All that GEODE writes lies under `path`."""

    path: Path

    @property
    def experiments(self) -> Path:
        """One folder an experiment."""
        return self.path / "experiments"

    def experiment(self, name: str) -> Path:
        """The folder of one experiment: experiment.yaml, plan, verdicts."""
        return self.experiments / name

    @property
    def episodes(self) -> Path:
        """All episodes of all experiments, by key."""
        return self.path / "episodes"

    def episode(self, episode_key: str) -> Path:
        """The folder of one episode."""
        return self.episodes / episode_key[:2] / episode_key

    @property
    def set_aside(self) -> Path:
        """Unfinished or damaged folders that were moved out of the way, never deleted."""
        return self.path / "set_aside"

    @property
    def claims(self) -> Path:
        """Locked byte by byte by the processes that run blocks and episodes. It stays empty."""
        return self.path / "claims.lock"

    @property
    def experiments_lock(self) -> Path:
        """Held while an experiment is read, grown and written back."""
        return self.path / "experiments.lock"

    @property
    def sinks_lock(self) -> Path:
        """Held by the process that writes to the sinks; who it was last stands in `last_sinks_turn`."""
        return self.path / "sinks.lock"

    @property
    def last_sinks_turn(self) -> Path:
        """The mark of the process that wrote to the sinks last, so that it can tell whether another has since."""
        return self.path / "sinks.turn"

    @property
    def policy(self) -> Path:
        """The operator's rules: what may go without asking, what is asked for, and what is denied."""
        return self.path / "policy.yaml"

    @property
    def spend(self) -> Path:
        """SQLite: what was spent on models, shared by all processes."""
        return self.path / "spend.db"

    @property
    def budget(self) -> Path:
        """The operator's caps on spending."""
        return self.path / "budget.yaml"

    @property
    def sessions(self) -> Path:
        """Production sessions, in the same layout as episodes."""
        return self.path / "sessions"

    @property
    def hooks_file(self) -> Path:
        """The operator's own hooks."""
        return self.path / "hooks.json"

    @property
    def workspaces(self) -> Path:
        """Working folders of running episodes."""
        return self.path / "workspaces"

    @property
    def judgments(self) -> Path:
        """What was judged of foreign logs, a file a log. Our own episodes have theirs beside them."""
        return self.path / "judgments"

    @property
    def calibrations(self) -> Path:
        """What was measured of the gate's error rates, a file a study."""
        return self.path / "calibrations"

    @property
    def mcp_settings(self) -> Path:
        """The owner's MCP servers, and what their tools may do."""
        return self.path / "mcp.yaml"

    @property
    def mcp_trust(self) -> Path:
        """What the owner approved of MCP servers and of projects' settings."""
        return self.path / "mcp-trust.json"

    @property
    def mcp_logs(self) -> Path:
        """What MCP servers say on their standard error, a file a server."""
        return self.path / "mcp-logs"

    @property
    def mlflow_database(self) -> Path:
        """The default tracking store."""
        return self.path / "mlflow" / "mlflow.db"

    @property
    def mlflow_artifacts(self) -> Path:
        """The default artifact location."""
        return self.path / "mlflow" / "artifacts"

    @property
    def warehouse(self) -> Path:
        """The DuckDB file, derived from the episode folders and imported archives."""
        return self.path / "geode.duckdb"
