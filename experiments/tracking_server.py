"""Runs MLflow's own pages over the store, for one reader on this machine, and ends what it started."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from experiments.tracking import Landing, find_landing
from experiments.tracking_links import compare_link, comparison_link
from experiments.tracking_store import ENVIRONMENT, TrackingError, is_remote
from geode.config.settings import Settings

HOST = "127.0.0.1"
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
_POLL_S = 0.2
_LOG_TAIL_CHARS = 2_000


class CannotShow(Exception):  # noqa: N818  (named by what happened)
    """The pages cannot be shown; the message says what to do instead."""


def show(settings: Settings, port: int, *, open_browser: bool, say: Callable[[str], None]) -> None:
    """Serve the tracking store on `port` until interrupted; for a store on a server only say where to look.

    Raises:
        CannotShow: if there is no store, the port is taken, or MLflow's server does not start.
    """
    if settings.tracking_uri and is_remote(settings.tracking_uri):
        say(directions(settings.tracking_uri.rstrip("/"), _landing(settings)))
        return
    if not settings.tracking_uri and not settings.root.mlflow_database.exists():
        raise CannotShow(
            f"there is no tracking store under {settings.root.path} yet; fill one with "
            "`geode sweep experiment=quickstart`, or name another state root with --root"
        )
    _refuse_taken(port)
    address = f"http://{HOST}:{port}"
    uri = settings.tracking_uri or f"sqlite:///{settings.root.mlflow_database}"
    say(f"MLflow is starting on {address}; this takes some seconds.")
    with _server(settings, uri, port) as child:
        text = directions(address, _landing(settings))
        wait_until_healthy(child, port, _log_path(settings))
        say(text)
        say("Ctrl-C ends it.")
        if open_browser:
            webbrowser.open(text.split()[-1])
        child.wait()
    raise CannotShow(f"MLflow's server ended by itself with exit code {child.returncode}; see {_log_path(settings)}")


def directions(address: str, landing: Landing | None) -> str:
    """Say where on MLflow's pages to look; the last word is the address to open first."""
    if landing is None:
        return f"The store holds no experiment of GEODE's yet. Look around at {address}"
    experiment = f"{address}/#/experiments/{landing.experiment_id}"
    text = (
        f"Experiment {landing.name}\n"
        f"  its cells (select some, then Actions, Compare): {experiment}/evaluation-runs\n"
        f"  its episodes, one trace each: {experiment}/traces?startTimeLabel=ALL\n"
        f"  {len(landing.run_ids)} cells side by side:\n"
        f"    {address}/{compare_link(landing.experiment_id, landing.run_ids)}"
    )
    if landing.compared_in is None:
        return text
    page = comparison_link(landing.experiment_id, landing.compared_in)
    return f"{text}\n  the verdicts, and the transcripts behind each figure:\n    {address}/{page}"


def _landing(settings: Settings) -> Landing | None:
    try:
        return find_landing(settings)
    except TrackingError as error:
        raise CannotShow(str(error)) from error
    # What is damaged further in shows up in errors of MLflow, of SQLAlchemy or of a driver.
    except Exception as error:
        where = settings.tracking_uri or str(settings.root.mlflow_database)
        way_out = "if it is damaged, move its folder away, and run `geode archive rebuild`"
        raise CannotShow(f"the tracking store {where!r} cannot be read ({error}); {way_out}") from error


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise CannotShow(
                f"port {port} on {HOST} cannot be used ({error.strerror}); if MLflow already runs there, open "
                f"http://{HOST}:{port}, else choose another with --port {port + 1}"
            ) from error


def _log_path(settings: Settings) -> Path:
    return settings.root.mlflow_database.with_name("server.log")


@contextmanager
def _server(settings: Settings, uri: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run MLflow's server as the leader of its own session, so that all of it, and nothing else, can be ended."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", uri, "--default-artifact-root", settings.root.mlflow_artifacts.as_uri()]
    environment = {**ENVIRONMENT, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **settings.environment}
    log = _log_path(settings)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603  (our own interpreter, no shell)
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    # A terminal's Ctrl-C raises by itself; `kill` must end the child as well.
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield child
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(child)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(child: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        # The group lives as long as one of the server's workers does, which may be longer than its leader.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, ending)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(STOP_TIMEOUT_S)


def wait_until_healthy(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the server answers.

    Raises:
        CannotShow: if it ends, or does not answer in time; with what it said last.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        if _is_healthy(port):
            return
        time.sleep(_POLL_S)
    said = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_CHARS:]
    end = f"did not answer within {START_TIMEOUT_S:.0f} s" if child.returncode is None else "ended by itself"
    raise CannotShow(f"MLflow's server {end}; it said:\n{said}")


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False  # not listening yet
    finally:
        connection.close()
