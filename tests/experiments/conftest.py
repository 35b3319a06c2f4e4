"""What the tests of the bench share: a tracking store that is made once and copied, since making one takes seconds."""

import shutil
import warnings
from pathlib import Path

import pytest

from experiments.tracking_store import ensure_store, load_mlflow
from geode.config.settings import Settings, read_settings


@pytest.fixture(scope="session")
def new_tracking_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state root with an empty tracking store. Copy it; do not write to it."""
    root = tmp_path_factory.mktemp("tracking")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what MLflow and its dependencies deprecate is not ours to fix
        load_mlflow()
        ensure_store(read_settings(root, {}))
    return root


@pytest.fixture
def tracking_settings(new_tracking_store: Path, tmp_path: Path) -> Settings:
    """Settings of an own state root with an empty tracking store."""
    shutil.copytree(new_tracking_store, tmp_path / "root")
    return read_settings(tmp_path / "root", {})
