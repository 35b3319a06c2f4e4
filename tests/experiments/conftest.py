"""What the tests of the bench share: a tracking store that is made once and copied, since making one takes seconds."""

import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.tracking_store import load_mlflow
from geode.config.settings import Settings, read_settings

_OPEN = """
import sys
from pathlib import Path
from experiments.tracking_store import ensure_store
from geode.config.settings import read_settings
print(ensure_store(read_settings(Path(sys.argv[1]), {})))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAtOnce:
    """A state root whose tracking store several processes opened at the same time, and what each of them printed."""

    root: Path
    printed: tuple[str, ...]
    failures: tuple[str, ...]


@pytest.fixture(scope="session")
def opened_at_once(tmp_path_factory: pytest.TempPathFactory) -> OpenedAtOnce:
    """The one new store of the tests, made as MLflow alone could not make it: by four processes in a race."""
    root = tmp_path_factory.mktemp("tracking") / "root 한글"
    processes = [
        subprocess.Popen([sys.executable, "-c", _OPEN, root], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ends = [process.communicate(timeout=100) for process in processes]
    return OpenedAtOnce(
        root=root, printed=tuple(out for out, _ in ends), failures=tuple(error for _, error in ends if error)
    )


@pytest.fixture
def tracking_settings(opened_at_once: OpenedAtOnce, tmp_path: Path) -> Settings:
    """Settings of an own state root with an empty tracking store."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what MLflow and its dependencies deprecate is not ours to fix
        load_mlflow()
    shutil.copytree(opened_at_once.root, tmp_path / "root")
    return read_settings(tmp_path / "root", {})
