"""Where on MLflow's pages something stands. Every address begins with `#`, so that it holds on any host and port."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from experiments.episode import EpisodeRecord
from experiments.tracking_store import TrackedExperiment
from experiments.tracking_traces import TASK_TAG, VARIANT_TAG, TraceHome, trace_id_of

COMPARISON_PAGE = "comparison.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The addresses of one experiment. `run_ids` are those of the cells that are written, by variant."""

    home: TrackedExperiment
    parent_id: str
    baseline: str
    run_ids: Mapping[str, str]

    def comparison(self) -> str:
        """The page with every variant, task and transcript."""
        return comparison_link(self.home.experiment_id, self.parent_id)

    def cell(self, variant: str) -> str | None:
        """The run of a cell."""
        run_id = self.run_ids.get(variant)
        return run_id and f"#/experiments/{self.home.experiment_id}/runs/{run_id}"

    def pairs(self, variant: str, record: EpisodeRecord | None = None) -> str | None:
        """The traces of a candidate beside those of the baseline; with a record, the two of its block, opened."""
        run_id, baseline_id = self.run_ids.get(variant), self.run_ids.get(self.baseline)
        if run_id is None or baseline_id is None:
            return None
        opened = {"selectedEvaluationId": self._trace_id(variant, run_id, record)} if record else {}
        query = urlencode({"compareToRunUuid": baseline_id, **opened})
        return f"#/experiments/{self.home.experiment_id}/runs/{run_id}/traces?{query}"

    def episode(self, variant: str, record: EpisodeRecord) -> str | None:
        """The trace of an episode, opened, on the list of all episodes of its variant on its task."""
        run_id = self.run_ids.get(variant)
        if run_id is None:
            return None
        query = [
            ("startTimeLabel", "ALL"),  # without it, the list is that of the last seven days
            ("tag", f"{TASK_TAG}={quote(record.task_id)}"),  # MLflow escapes tags a second time
            ("tag", f"{VARIANT_TAG}={quote(variant)}"),
            ("selectedEvaluationId", self._trace_id(variant, run_id, record)),
        ]
        return f"#/experiments/{self.home.experiment_id}/traces?{urlencode(query, quote_via=quote)}"

    def _trace_id(self, variant: str, run_id: str, record: EpisodeRecord) -> str:
        return trace_id_of(TraceHome(experiment=self.home, run_id=run_id, variant=variant), record)


def comparison_link(experiment_id: str, parent_id: str) -> str:
    """Return the address of the page that `Links.comparison` names."""
    return f"#/experiments/{experiment_id}/runs/{parent_id}/artifacts/{COMPARISON_PAGE}"


def compare_link(experiment_id: str, run_ids: Sequence[str]) -> str:
    """Return the address of MLflow's own table of some runs side by side."""
    chosen = {"runs": list(run_ids), "experiments": [experiment_id]}
    compared = {name: json.dumps(ids, separators=(",", ":")) for name, ids in chosen.items()}
    return f"#/compare-runs?{urlencode(compared, quote_via=quote)}"
