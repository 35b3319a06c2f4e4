"""`geode ui`: says where to look, starts MLflow's pages on this machine only, and leaves no process behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from experiments.comparison import comparison_table
from experiments.tracking import MLflowSink
from experiments.tracking_cli import register
from experiments.tracking_server import CannotShow, directions, show, wait_until_healthy
from experiments.tracking_store import TrackingStore
from geode.config.settings import Settings, read_settings
from tests.doubles.tracked_episodes import EpisodeMaker, make_experiment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # MLflow's own use of SQLAlchemy
]

UI = """
import typer
from experiments.tracking_cli import register
app = typer.Typer()
register(app)
app.command()(lambda: None)
app()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ui(*arguments: object) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"MLFLOW_TRACKING_URI": ""})
    return result.exit_code, result.stderr


def test_without_a_store_it_says_how_to_fill_one(tmp_path: Path) -> None:
    """The first command that a newcomer tries must not end in a stack trace, nor make an empty store."""
    code, said = ui("--root", tmp_path / "new", "--no-open")
    assert code == 1
    assert str(tmp_path / "new") in said
    assert "geode sweep experiment=quickstart" in said
    assert not (tmp_path / "new").exists()


def test_a_taken_port_is_named_with_the_next_one(tracking_settings: Settings) -> None:
    """MLflow itself would start, fail in a worker, and go on waiting."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = ui("--root", tracking_settings.root.path, "--no-open", "--port", port)
    assert code == 1
    assert f"port {port} on 127.0.0.1" in said
    assert f"--port {port + 1}" in said


def test_an_empty_store_is_no_error(tracking_settings: Settings) -> None:
    """There may be a store of which no experiment is ours."""
    assert "no experiment of GEODE's yet" in directions("http://127.0.0.1:5000", None)


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """A slip in one variable of the environment should not cost a search through a stack trace."""
    settings = read_settings(tmp_path, {"MLFLOW_TRACKING_URI": "nonsense://store"})
    with pytest.raises(CannotShow, match=r"'nonsense://store'.*correct or unset MLFLOW_TRACKING_URI"):
        show(settings, free_port(), open_browser=False, say=lambda _: None)


def test_a_server_that_does_not_start_shows_what_it_said(tmp_path: Path) -> None:
    """The reason stands in the server's own words, and nobody waits for one that is gone."""
    log = tmp_path / "server.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(["/bin/sh", "-c", "echo no such store; exit 3"], stdout=output) as gone,
    ):
        pass
    with pytest.raises(CannotShow, match=r"ended by itself; it said:\nno such store"):
        wait_until_healthy(gone, free_port(), log)


@pytest.mark.slow
def test_the_pages_start_serve_traces_of_a_team_and_end(tracking_settings: Settings, tmp_path: Path) -> None:
    """One start of MLflow, used for both: what a reader sees, and a sink that writes to a server instead of a file."""
    port, root = free_port(), tracking_settings.root.path
    experiment = make_experiment()
    cell = EpisodeMaker(tmp_path / "episodes", rounds=3).cell(experiment, "baseline")
    sink = MLflowSink(tracking_settings)
    sink.write(cell)
    sink.write_comparison(comparison_table([cell]))
    with subprocess.Popen(
        [sys.executable, "-c", UI, "ui", "--root", root, "--port", str(port), "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"},
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C ends it" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            assert f"http://127.0.0.1:{port}/#/experiments/1/evaluation-runs" in said
            assert f"http://127.0.0.1:{port}/#/compare-runs?runs=" in said
            assert said.split("\nCtrl-C")[0].split()[-1].endswith("/artifacts/comparison.md"), "what a browser opens"
            remote = read_settings(tmp_path / "elsewhere", {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"})
            team = experiment.model_copy(update={"name": "team"})
            MLflowSink(remote).write(replace(cell, experiment=team))
        finally:
            process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=30)[0]
    assert (process.returncode, said.splitlines()[-1]) == (0, "MLflow was stopped.")
    wait_until_free(port)
    store = TrackingStore(tracking_settings)
    home = store.experiment("geode/team", "")
    (run,) = store.runs(home.experiment_id, "params.variant = 'baseline'")
    found = store.client.search_traces(locations=[home.experiment_id], run_id=run.run_id)
    assert len(found) == len(cell.episodes)
    assert {len(trace.data.spans) for trace in found} == {8}
    assert all(trace.info.token_usage["input_tokens"] == 4_500 for trace in found)
    assert all(trace.info.assessments[0].name == "passed" for trace in found)


def wait_until_free(port: int) -> None:
    """The port belongs to MLflow's worker, which must be gone as well."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"something still listens on port {port}")
