"""What a stranger finds in MLflow: who won and by how much, why, and a transcript behind every figure of a task."""

import html
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote

import pytest

from experiments.episode import EpisodeRecord
from tests.done.command import environment, geode, start

pytestmark = pytest.mark.slow

VARIANTS = {"baseline", "require_test_run", "protect_tests", "stop_repeats", "all_three", "placebo", "harmful"}
TASKS = ("config_port", "fix_slug")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ATTEMPTS = 3  # a page that is slow to load is loaded again
READ = """
import json, mlflow, sys
client = mlflow.MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow/mlflow.db")
experiment = client.get_experiment_by_name("geode/hook_ablation")
runs = client.search_runs([experiment.experiment_id])
traces = client.search_traces(locations=[experiment.experiment_id], max_results=500)
print(json.dumps({
    "note": experiment.tags["mlflow.note.content"],
    "runs": {
        run.info.run_name: {"id": run.info.run_id, "metrics": run.data.metrics, "tags": run.data.tags} for run in runs
    },
    "traces": {
        trace.info.trace_id: {
            "tags": trace.info.tags,
            "run": trace.info.request_metadata["mlflow.sourceRun"],
            "outputs": trace.data.spans[0].outputs,
            "spans": len(trace.data.spans),
        }
        for trace in traces
    },
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A state root with one finished sweep, and what MLflow's own client reads of it."""

    root: Path
    runs: dict[str, dict[str, dict[str, object]]]
    traces: dict[str, dict[str, dict[str, str]]]
    note: str
    page: str

    def metrics(self, variant: str) -> dict[str, float]:
        return {name: float(str(value)) for name, value in self.runs[variant]["metrics"].items()}

    def tags(self, variant: str) -> dict[str, str]:
        return {name: str(value) for name, value in self.runs[variant]["tags"].items()}

    def record(self, key: str) -> EpisodeRecord:
        (folder,) = self.root.glob(f"episodes/{key[:2]}/{key}*")
        return EpisodeRecord.model_validate_json((folder / "episode.json").read_bytes())


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    root = tmp_path_factory.mktemp("swept")
    ran = geode(
        root, "sweep", "experiment=hook_ablation", f"suite.tasks=[{','.join(TASKS)}]", "repeats=3", "tracking=mlflow",
        "--root", str(root),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    read = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, root],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(root, {"MLFLOW_DISABLE_TELEMETRY": "true"}),
        cwd=root,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    body = json.loads(read.stdout)
    (page,) = root.glob(f"mlflow/artifacts/{body['runs']['hook_ablation']['id']}/artifacts/comparison.md")
    return Swept(root=root, page=page.read_text(encoding="utf-8"), **body)


def opened_by(address: str) -> str:
    """The trace that an address of MLflow's pages opens."""
    (trace_id,) = parse_qs(address.partition("?")[2])["selectedEvaluationId"]
    return trace_id


def task_table(page: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(task, variant) -> figure and address, from the page's table of tasks."""
    head, _, *lines = page.partition("## Tasks\n")[2].partition("\n| ")[2].partition("\n\n")[0].splitlines()
    variants = [name.strip() for name in head.split("|")[2:-1]]
    found = {}
    for line in lines:
        task, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for variant, cell in zip(variants, cells, strict=True):
            match = re.fullmatch(r"\[(.*)\]\((#/.*)\)", cell)
            assert match is not None, cell
            found[task, variant] = (match[1], match[2])
    return found


def test_the_compare_page_says_which_variant_won_by_how_much_and_why(swept: Swept) -> None:
    """Every cell has the same figures under the same names, the verdict beside them, and a trace an episode."""
    assert set(swept.runs) == {"hook_ablation", *VARIANTS}
    names = swept.metrics("baseline").keys()
    assert {
        "pass_rate", "invalid", "missing", "episodes", "diff_vs_baseline", "diff_low", "diff_high", "families_better",
        "pairs_won", "pairs_lost", "mcnemar_p", "tasks_better", "tasks_worse", "drift_p", "cost_usd_per_episode",
        "tokens_in_per_episode", "wall_s_per_episode", "repairs_per_episode",
    } <= names  # fmt: skip
    for name in VARIANTS:
        metrics, tags = swept.metrics(name), swept.tags(name)
        assert metrics.keys() == names
        difference = metrics["pass_rate"] - swept.metrics("baseline")["pass_rate"]
        assert metrics["diff_vs_baseline"] == pytest.approx(difference, abs=1e-9)
        if name != "baseline":
            assert tags["verdict"] in {"KEEP", "REJECT", "UNDECIDED"}
            assert tags["verdict_reasons"]
            assert tags["generalises"] == "not tested: 2 families, 10 needed"
            assert metrics["tasks_better"] == tags["tasks_better"].count("(+")
            assert tags["mlflow.note.content"].startswith(f"**{tags['verdict']}**: ")
    assert swept.tags("baseline")["verdict"] == "baseline"
    assert swept.note.startswith(("**No variant is shown", "**all_three", "**require_test_run", "**stop_repeats"))
    assert len(swept.traces) == len(VARIANTS) * len(TASKS) * 3
    assert all(int(str(trace["spans"])) > 2 for trace in swept.traces.values())


def test_each_figure_of_a_task_names_a_trace_of_its_variant_and_task(swept: Swept) -> None:
    """The figure, the trace, the episode folder and the command for the terminal are of one episode."""
    table = task_table(swept.page)
    assert set(table) == {(task, variant) for task in TASKS for variant in VARIANTS}
    for (task, variant), (figure, address) in table.items():
        trace = swept.traces[opened_by(address)]
        tags = trace["tags"]
        assert (tags["geode.task"], tags["geode.variant"]) == (task, variant)
        assert trace["run"] == swept.runs[variant]["id"]
        record = swept.record(tags["geode.episode_key"])
        assert (record.task_id, record.outcome.kind.value) == (task, tags["outcome"])
        assert trace["outputs"]["transcript"] == f"geode show {record.episode_key[:12]}"
        passes, measured = map(int, figure.split("/"))
        assert tags["outcome"] == ("PASS" if passes == measured else "FAIL"), "a failed one, if there is one"


@pytest.fixture(scope="module")
def server(swept: Swept) -> Iterator[list[str]]:
    """`geode ui` over the sweep; the addresses that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = start(swept.root, "ui", "--root", str(swept.root), "--port", str(port), "--no-open")
    try:
        assert process.stdout is not None
        said = ""
        while "Ctrl-C ends it" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        yield re.findall(r"http://\S+", said)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def show(address: str, awaited: str, folder: Path) -> str:
    """Return the document that a browser makes of a page, once `awaited` is in it."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--virtual-time-budget=20000", "--dump-dom",
    ]  # fmt: skip
    for attempt in range(ATTEMPTS):
        profile = f"--user-data-dir={folder / f'profile-{attempt}'}"
        done = subprocess.run(
            [*command, profile, address],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(folder),
            check=False,
        )
        if awaited in done.stdout:
            break
    else:
        pytest.fail(f"no {awaited!r} on {address}, but {done.stdout[-2_000:]!r}")
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine; the addresses are tested above")
def test_in_a_browser_one_click_on_a_figure_shows_the_transcript(
    swept: Swept, server: list[str], tmp_path: Path
) -> None:
    """What `geode ui` opens has the links; the first opens one episode, the second both ends of a pair."""
    page = show(server[-1], "side by side", tmp_path / "comparison")
    links = [html.unescape(found) for found in re.findall(r'<a [^>]*href="([^"]*selectedEvaluationId[^"]*)"', page)]
    figure = next(
        link for link in links if "geode.task=fix_slug" in unquote(link) and "variant=harmful" in unquote(link)
    )
    tags = swept.traces[opened_by(figure)]["tags"]
    host = server[-1].partition("#")[0]
    transcript = show(host + figure, f"geode show {tags['geode.episode_key'][:12]}", tmp_path / "figure")
    assert "round 1" in transcript
    assert f"fix_slug seed {tags['geode.seed']} repetition {tags['geode.repetition']}" in transcript
    assert "fix_slug · seed" in transcript, "the list behind it"
    assert "config_port · seed" not in transcript, "which is of this task only"

    pair = next(link for link in links if "compareToRunUuid" in link)
    candidate = swept.traces[opened_by(pair)]["tags"]
    block = ("geode.task", "geode.seed", "geode.repetition")
    (other,) = (
        trace_id
        for trace_id, trace in swept.traces.items()
        if trace["tags"]["geode.variant"] == "baseline"
        and [trace["tags"][name] for name in block] == [candidate[name] for name in block]
    )
    both = show(host + pair, "Comparing 2 traces", tmp_path / "pair")
    assert other in both
    assert {swept.traces[trace_id]["tags"]["outcome"] for trace_id in (other, opened_by(pair))} == {"PASS", "FAIL"}
